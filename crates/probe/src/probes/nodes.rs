//! Opening the nodes that a CUDA program of this process would open: the errno is evidence.
//!
//! Measured trap: opening a node whose major number no driver has registered makes the kernel load
//! a module for it (nvidia.ko carries the alias `char-major-195-*`). Such a node is left alone.
//! One whose number belongs to another driver is left alone too: opening may do anything there.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use facts::parse::proc_devices::proc_devices;

use super::Options;
use crate::child::report::Report;
use crate::sys::{errno_of, process};

/// Major number of nvidiactl and of the GPUs' nodes, fixed since the first driver.
const NVIDIA_MAJOR: u32 = 195;
/// Said of every node where nothing tells which majors are registered.
pub(super) const UNKNOWN_MAJORS: &str =
    "/proc/devices cannot be read, so opening it could load a module";
/// Most GPU nodes that are opened.
const GPU_NODES_LIMIT: usize = 64;

/// Opens the nodes, the ones that initialize nothing first, and keeps them open until the process
/// ends: closing the last one would tear a GPU down that another probe is just waking.
pub(super) fn run(report: &mut Report, _: &Options) {
    report.note("euid", process::effective_user().to_string());
    let majors = Majors::read();
    let mut opened: Vec<File> = Vec::new();
    let nodes = ["/dev/nvidiactl", "/dev/nvidia-uvm"].map(str::to_owned);
    for path in nodes.into_iter().chain(gpu_nodes()) {
        let unknown = || Some(UNKNOWN_MAJORS.to_owned());
        if let Some(reason) = majors.as_ref().map_or_else(unknown, |m| m.objection(&path)) {
            report.not_called("open", &path, &reason);
            continue;
        }
        let open = || open(&path).map_err(|error| errno_of(&error));
        opened.extend(report.system_call("open", Some(&path), open));
    }
}

/// Opens for reading and writing, as the libraries do.
pub(super) fn open(path: &str) -> std::io::Result<File> {
    OpenOptions::new().read(true).write(true).open(path)
}

/// The nodes of GPUs that are there, by number.
fn gpu_nodes() -> Vec<String> {
    let Ok(entries) = std::fs::read_dir("/dev") else { return Vec::new() };
    let number = |entry: std::fs::DirEntry| -> Option<u32> {
        entry.file_name().to_str()?.strip_prefix("nvidia")?.parse().ok()
    };
    let mut numbers: Vec<u32> = entries.flatten().filter_map(number).collect();
    numbers.sort_unstable();
    numbers.truncate(GPU_NODES_LIMIT);
    numbers.into_iter().map(|number| format!("/dev/nvidia{number}")).collect()
}

/// The character majors that drivers have registered.
pub(super) struct Majors(Vec<(u32, String)>);

impl Majors {
    /// Reads /proc/devices.
    pub(super) fn read() -> Option<Majors> {
        let text = std::fs::read_to_string("/proc/devices").ok()?;
        let majors = proc_devices(&text).value.into_iter();
        Some(Majors(majors.map(|at| (at.value.major, at.value.name)).collect()))
    }

    fn names(&self, major: u32) -> impl Iterator<Item = &str> {
        let of_major = self.0.iter().filter(move |(number, _)| *number == major);
        of_major.map(|(_, name)| name.as_str())
    }

    /// Why a node is better not opened; `None` when opening does no more than it should, also
    /// where nothing is at the path.
    pub(super) fn objection(&self, path: &str) -> Option<String> {
        let metadata = std::fs::metadata(path).ok()?;
        if !metadata.file_type().is_char_device() {
            return Some("it is no character device".to_owned());
        }
        let major = libc::major(metadata.rdev());
        if self.names(major).any(|name| name.starts_with("nvidia")) {
            return None;
        }
        Some(match self.names(major).next() {
            Some(owner) => format!("its major {major} belongs to {owner}"),
            None => {
                format!("its major {major} is not registered, so opening it could load a module")
            }
        })
    }
}

/// Why loading a driver library would load the nvidia module: the module is not there, but nodes
/// with its number are, and the kernel may load modules. The libraries open nvidiactl first thing.
pub(super) fn would_load_module() -> Option<String> {
    let loaded = Path::new("/sys/module/nvidia").exists()
        || Majors::read().is_some_and(|majors| majors.names(NVIDIA_MAJOR).next().is_some());
    if loaded || !kernel_may_load() {
        return None;
    }
    let has_number = |path: &String| {
        std::fs::metadata(path).is_ok_and(|metadata| {
            metadata.file_type().is_char_device() && libc::major(metadata.rdev()) == NVIDIA_MAJOR
        })
    };
    let node = ["/dev/nvidiactl".to_owned()].into_iter().chain(gpu_nodes()).find(has_number)?;
    Some(format!(
        "the nvidia module is not loaded and {node} exists: the library would open it, and the kernel would load the module"
    ))
}

/// Whether the kernel loads modules on demand. Where /proc does not say, it might.
fn kernel_may_load() -> bool {
    let setting = |name: &str| std::fs::read_to_string(format!("/proc/sys/kernel/{name}"));
    let disabled = setting("modules_disabled").is_ok_and(|text| text.trim() == "1");
    let helper = match setting("modprobe") {
        Ok(path) => !path.trim().is_empty(),
        // A kernel without modules has no such file, and neither has gVisor.
        Err(_) => !Path::new("/proc/sys/kernel").exists(),
    };
    helper && !disabled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_of_other_drivers_and_of_none_are_left_alone() {
        let majors = Majors(vec![(1, "mem".into()), (195, "nvidia".into())]);
        assert_eq!(majors.objection("/dev/null").as_deref(), Some("its major 1 belongs to mem"));
        let none = Majors(Vec::new());
        assert!(none.objection("/dev/null").unwrap().contains("not registered"));
        assert!(majors.objection("/proc/self/status").unwrap().contains("no character device"));
        assert_eq!(majors.objection("/dev/nvidia-that-is-not-there"), None);
        let null_is_nvidia = Majors(vec![(1, "nvidia-frontend".into())]);
        assert_eq!(null_is_nvidia.objection("/dev/null"), None);
    }
}
