//! Module files on disk, and compressed firmware: what may take a second to unpack, so that it runs
//! beside the other probes and nobody waits for it before asking the driver.

use super::Options;
use super::elf_file;
use super::reader::Reader;
use crate::child::report::Report;

/// Folders below /lib/modules/RELEASE in which distributions and installers put the driver.
const FOLDERS: [&str; 9] = [
    "updates",
    "updates/dkms",
    "extra",
    "extra/nvidia",
    "extra/nvidia-open",
    "weak-updates/nvidia",
    "kernel/drivers/video",
    "kernel/drivers/video/nvidia",
    "kernel/nvidia-*",
];
/// Most module files that are described.
const MODULES_LIMIT: usize = 24;

/// Tells both.
pub(super) fn run(report: &mut Report, options: &Options) {
    let reader = Reader::new(&options.root);
    let running = reader.text("/proc/sys/kernel/osrelease").map(|text| text.trim().to_owned());
    let loaded = reader.metadata("/sys/module/nvidia").is_some();
    let mut left = MODULES_LIMIT;
    for release in reader.names("/lib/modules") {
        let folder = format!("/lib/modules/{release}");
        let is_running = running.as_deref() == Some(release.as_str());
        for path in module_paths(&reader, &folder) {
            if left == 0 {
                return;
            }
            left -= 1;
            // With the module loaded, /sys tells its version; a compressed file of another kernel
            // is not worth a second of work, but that it is there is.
            let worthwhile = is_running && !loaded;
            describe(report, &reader, &path, worthwhile);
        }
    }
    for path in reader.matches("/lib/firmware/nvidia/*/gsp*") {
        if elf_file::is_compressed(&reader.place(&path)) {
            elf_file::tell_unpacked(report, &reader, &path);
        }
    }
}

/// The driver's module files below a kernel's folder.
fn module_paths(reader: &Reader, folder: &str) -> Vec<String> {
    let folders = FOLDERS.iter().flat_map(|sub| reader.matches(&format!("{folder}/{sub}")));
    let is_module = |name: &String| name.starts_with("nvidia") && name.contains(".ko");
    folders
        .flat_map(|folder| {
            let names = reader.names(&folder).into_iter().filter(is_module);
            names.map(move |name| format!("{folder}/{name}")).collect::<Vec<_>>()
        })
        .collect()
}

fn describe(report: &mut Report, reader: &Reader, path: &str, unpack: bool) {
    if unpack || !elf_file::is_compressed(&reader.place(path)) {
        elf_file::tell_unpacked(report, reader, path);
    } else {
        report.note("module-file", path);
    }
}
