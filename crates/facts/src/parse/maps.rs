//! `/proc/PID/maps`: which driver libraries a process has really mapped.

use super::elf_library::soname_of_path;
use super::{At, Parsed, numbered};

/// A mapped file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappedFile {
    /// Path, without the mark of a deleted file.
    pub path: String,
    /// True when the file was replaced or removed since it was mapped.
    pub deleted: bool,
}

/// What of the mappings matters here, each file once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Maps {
    /// Files named as libcuda or libnvidia-ml are.
    pub driver_libraries: Vec<At<MappedFile>>,
    /// Libraries that are known to stand between programs and the driver.
    pub interposers: Vec<At<MappedFile>>,
    /// Mapped device nodes of NVIDIA.
    pub nodes: Vec<At<String>>,
}

/// Parts of the names of libraries that stand between program and driver: HAMi's and KubeShare's
/// device-sharing shims, tracers.
const INTERPOSERS: [&str; 6] = [
    "libvgpu",
    "libgemhook",
    "libcuda_hook",
    "libcuda-control",
    "libnvshare",
    "libnvidia-intercept",
];

/// Most lines that are read; Linux allows 65530 mappings a process by default.
const LINES_LIMIT: usize = 1 << 17;
/// Most files of one kind that are kept.
const FILES_LIMIT: usize = 256;

/// Whether a path is that of a library known to stand between program and driver.
pub fn is_interposer(path: &str) -> bool {
    let file = path.rsplit('/').next().unwrap_or(path);
    INTERPOSERS.iter().any(|name| file.contains(name))
}

/// Reads the mappings.
pub fn parse(text: &str) -> Parsed<Maps> {
    let mut parsed: Parsed<Maps> = Parsed::default();
    for (number, line) in numbered(text).take(LINES_LIMIT) {
        match mapped_path(line) {
            Ok(Some(path)) => enter(number, path, &mut parsed.value),
            Ok(None) => {}
            Err(NotALine) => {
                if !line.trim().is_empty() {
                    parsed.complain(number, "no line of a process's mappings");
                }
            }
        }
    }
    parsed
}

struct NotALine;

/// The path that a line ends with: address range, permissions, offset, device, inode, path.
fn mapped_path(line: &str) -> Result<Option<&str>, NotALine> {
    let mut rest = line.trim();
    let mut fields = [""; 5];
    for field in &mut fields {
        let (head, tail) = rest.split_once(' ').unwrap_or((rest, ""));
        *field = head;
        rest = tail.trim_start();
    }
    let [range, permissions, ..] = fields;
    let hex = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let well_formed = range.split_once('-').is_some_and(|(from, to)| hex(from) && hex(to))
        && permissions.len() == 4;
    if !well_formed {
        return Err(NotALine);
    }
    Ok(Some(rest).filter(|path| path.starts_with('/')))
}

fn enter(number: u32, path: &str, maps: &mut Maps) {
    let (path, deleted) = match path.strip_suffix(" (deleted)") {
        Some(path) => (path, true),
        None => (path, false),
    };
    if path.starts_with("/dev/nvidia") {
        if maps.nodes.len() < FILES_LIMIT && !maps.nodes.iter().any(|node| node.value == path) {
            maps.nodes.push(At::new(number, path.to_owned()));
        }
        return;
    }
    let list = if is_interposer(path) {
        &mut maps.interposers
    } else if soname_of_path(path).is_some() {
        &mut maps.driver_libraries
    } else {
        return;
    };
    if list.len() < FILES_LIMIT && !list.iter().any(|file| file.value.path == path) {
        list.push(At::new(number, MappedFile { path: path.to_owned(), deleted }));
    }
}
