//! Programs as files: which one a name means, and what about one hinders tracing.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::sys::process::effective_user;

/// Where programs are looked for when PATH is not set (confstr of glibc).
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// The file that a program's name means: the name itself when it has a slash, else the first
/// executable file of that name in the folders of PATH.
pub(super) fn find(name: &OsStr) -> Option<CString> {
    let is_path = name.as_bytes().contains(&b'/');
    let found = if is_path { Some(PathBuf::from(name)) } else { in_path(name) };
    CString::new(found?.into_os_string().as_bytes()).ok()
}

fn in_path(name: &OsStr) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_else(|| DEFAULT_PATH.into());
    let mut candidates = std::env::split_paths(&path).map(|folder| folder.join(name));
    candidates.find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    let metadata = std::fs::metadata(file);
    metadata.is_ok_and(|metadata| metadata.is_file() && metadata.mode() & 0o111 != 0)
}

/// What about the program that a process runs makes its trace differ from an untraced run.
pub(super) fn remarks(pid: u32) -> Vec<String> {
    let link = format!("/proc/{pid}/exe");
    let name = std::fs::read_link(&link).map(|path| path.display().to_string());
    let name = name.unwrap_or_else(|_| format!("the program of process {pid}"));
    let mut remarks = Vec::new();
    if is_32_bit(Path::new(&link)) {
        remarks.push(format!("{name} is a 32-bit program: its calls are not decoded"));
    }
    let mode = std::fs::metadata(&link).map_or(0, |metadata| metadata.permissions().mode());
    let raises = if mode & 0o4000 != 0 {
        Some("setuid")
    } else if mode & 0o2010 == 0o2010 {
        Some("setgid")
    } else {
        None
    };
    if let Some(raises) = raises
        && effective_user() != 0
    {
        remarks.push(format!(
            "{name} is {raises}: under a tracer without root it runs without the rights that this \
             would give it"
        ));
    }
    remarks
}

/// True for an ELF file of class 32.
fn is_32_bit(file: &Path) -> bool {
    let mut head = [0_u8; 5];
    let read = File::open(file).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && head == *b"\x7fELF\x01"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_as_a_shell_finds_them() {
        assert!(find(OsStr::new("sh")).unwrap().to_bytes().ends_with(b"/sh"));
        assert_eq!(find(OsStr::new("./not-there")).unwrap().to_bytes(), b"./not-there");
        assert_eq!(find(OsStr::new("no-program-has-this-name")), None);
    }

    #[test]
    fn the_class_of_an_elf_file_is_its_fifth_byte() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("program");
        std::fs::write(&file, b"\x7fELF\x01\x01").unwrap();
        assert!(is_32_bit(&file));
        assert!(!is_32_bit(Path::new("/proc/self/exe")));
    }
}
