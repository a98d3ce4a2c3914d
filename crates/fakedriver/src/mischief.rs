//! What the real libraries do to device nodes when they run as root (measured: they make nodes
//! that are missing, replace nodes with other numbers, set modes, and run a program that loads
//! modules). Each deed and its errno goes to the record, so that a test sees what was prevented.

use core::ffi::c_int;
use std::ffi::CString;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use crate::act::record;

/// Nodes and the numbers that they should have.
const NODES: [(&str, u32, u32); 3] =
    [("nvidiactl", 195, 255), ("nvidia0", 195, 0), ("nvidia-uvm", 511, 0)];

/// Plays in this folder as if it were /dev.
pub(crate) fn play(folder: &str) {
    for (name, major, minor) in NODES {
        let path = format!("{folder}/{name}");
        let Ok(c_path) = CString::new(path.clone()) else {
            return;
        };
        let device = libc::makedev(major, minor);
        // SAFETY: the path is a C string and the buffer is valid.
        unsafe {
            let mut stat: libc::stat = core::mem::zeroed();
            let exists = libc::lstat(c_path.as_ptr(), &raw mut stat) == 0;
            if exists && stat.st_rdev != device {
                note("unlink", &path, libc::unlink(c_path.as_ptr()));
            }
            if !exists || stat.st_rdev != device {
                note("mknod", &path, libc::mknod(c_path.as_ptr(), libc::S_IFCHR | 0o666, device));
            }
            note("chmod", &path, libc::chmod(c_path.as_ptr(), 0o666));
        }
    }
    let modprobe = Command::new("/bin/true")
        .arg0("nvidia-modprobe")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    record(&format!("modprobe {}", if modprobe.is_ok() { "ok" } else { "refused" }));
}

fn note(deed: &str, path: &str, result: c_int) {
    let outcome = if result == 0 {
        "ok".to_owned()
    } else {
        let error = std::io::Error::last_os_error();
        format!("errno {}", error.raw_os_error().unwrap_or(0))
    };
    record(&format!("{deed} {path} {outcome}"));
}
