//! The driver's libraries: which files this process would map, which others lie about, and the
//! firmware that goes with the module.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;

use facts::parse::elf_library::soname_of_path;
use facts::version::DriverVersion;
use facts::wanted::{Group, Kind};

use super::Options;
use super::elf_file;
use super::library_search::Search;
use super::reader::Reader;
use crate::child::report::{Failure, Report};
use crate::sys::{cuda, nvml};

/// Folders in which drivers, toolkits and containers put these libraries, beside those that the
/// loader searches.
const USUAL_FOLDERS: [&str; 16] = [
    "/usr/lib/x86_64-linux-gnu/nvidia/current",
    "/usr/lib/aarch64-linux-gnu/nvidia/current",
    "/usr/lib/nvidia*",
    "/usr/local/nvidia/lib64",
    "/usr/local/nvidia/lib",
    "/usr/local/cuda*/compat",
    "/usr/local/cuda*/compat/lib",
    "/usr/local/cuda*/compat/lib.real",
    "/usr/local/cuda*/lib64",
    "/usr/local/cuda*/lib64/stubs",
    "/usr/local/cuda*/targets/*/lib/stubs",
    "/opt/cuda/lib64/stubs",
    "/opt/nvidia/lib64",
    "/usr/lib/wsl/lib",
    "/run/opengl-driver/lib",
    "/usr/lib/cuda*/compat",
];
/// Most library files that are described.
const LIBRARIES_LIMIT: usize = 64;
/// Most firmware folders that are looked into.
const FIRMWARE_FOLDERS_LIMIT: usize = 16;

/// Tells both.
pub(super) fn run(report: &mut Report, options: &Options) {
    let reader = Reader::new(&options.root);
    libraries(report, &reader);
    firmware(report, &reader);
}

fn libraries(report: &mut Report, reader: &Reader) {
    let library_path = std::env::var_os("LD_LIBRARY_PATH").filter(|_| reader.is_live());
    let library_path = library_path.map(|path| path.to_string_lossy().into_owned());
    let search = Search::new(reader, library_path);
    let mut described = Described::by_rows(reader);
    for name in [cuda::LIBRARY, nvml::LIBRARY] {
        let find = || {
            let none = Failure { code: i64::from(libc::ENOENT), text: None };
            search.find(name).ok_or(none)
        };
        let found = report.call("would-map", Some(name), find, |(path, _)| Some(path.clone()));
        if let Ok((path, by)) = found {
            report.note(&format!("would-map-{name}"), format!("{path} by {}", by.words()));
            described.library(report, reader, &path, true);
        }
    }
    let usual = USUAL_FOLDERS.iter().flat_map(|pattern| reader.matches(pattern));
    for folder in search.folders().into_iter().chain(usual) {
        for name in reader.names(&folder) {
            if soname_of_path(&name).is_some() {
                described.library(report, reader, &format!("{folder}/{name}"), false);
            }
        }
    }
}

/// What was described already: a driver's folder has several names for one file.
#[derive(Default)]
struct Described {
    files: BTreeSet<(u64, u64)>,
    paths: BTreeSet<String>,
}

impl Described {
    /// Takes what the rows of the group have told.
    fn by_rows(reader: &Reader) -> Described {
        let rows = Group::Libraries.rows().filter(|row| row.kind == Kind::Elf);
        let mut described = Described::default();
        for path in rows.flat_map(|row| reader.matches(row.pattern)) {
            if let Some(metadata) = reader.metadata(&path) {
                described.files.insert((metadata.dev(), metadata.ino()));
                described.paths.insert(path);
            }
        }
        described
    }

    fn library(&mut self, report: &mut Report, reader: &Reader, path: &str, always: bool) {
        let known = reader.metadata(path).map(|metadata| (metadata.dev(), metadata.ino()));
        let new_file = known.is_none_or(|file| self.files.insert(file));
        let worth_telling = (new_file || always) && self.paths.len() < LIBRARIES_LIMIT;
        if worth_telling && self.paths.insert(path.to_owned()) {
            elf_file::tell(report, reader, path);
        }
    }
}

/// GSP firmware: the folders of the loaded module's version, wherever the kernel would look, and
/// those of other versions that lie there.
fn firmware(report: &mut Report, reader: &Reader) {
    let version = reader.text("/sys/module/nvidia/version").map(|text| text.trim().to_owned());
    let custom = reader.text("/sys/module/firmware_class/parameters/path");
    let custom = custom.map(|path| path.trim().to_owned()).unwrap_or_default();
    let mut bases = vec!["/lib/firmware".to_owned(), "/lib/firmware/updates".to_owned()];
    if custom.starts_with('/') {
        bases.insert(0, custom);
    }
    for base in bases {
        let folder = format!("{base}/nvidia");
        let mut versions = reader.names(&folder);
        versions.retain(|name| DriverVersion::parse(name).is_some());
        versions.truncate(FIRMWARE_FOLDERS_LIMIT);
        // The folder of the loaded module is told also when it is missing: that is the evidence.
        if base == "/lib/firmware"
            && let Some(version) = version.as_ref().filter(|v| !versions.contains(v))
        {
            versions.push(version.clone());
        }
        for version in versions {
            firmware_folder(report, reader, &format!("{folder}/{version}"));
        }
    }
}

fn firmware_folder(report: &mut Report, reader: &Reader, folder: &str) {
    for name in reader.listing(report, folder) {
        if name.starts_with("gsp") {
            elf_file::tell(report, reader, &format!("{folder}/{name}"));
        }
    }
}
