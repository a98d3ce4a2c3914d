//! Policy around this process: beside what /proc says of it, micro-probes, small calls that the
//! driver libraries make and that policies refuse more often than one would think.
//!
//! A Landlock rule set, for one, shows nowhere in /proc, but forbids the write of a thread's name
//! with which libcuda begins.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::fd::AsFd;

use facts::Errno;

use super::Options;
use crate::child::report::Report;
use crate::sys::{errno_of, micro};

/// Makes the small calls, beside reading the rows of the group.
pub(super) fn run(report: &mut Report, _: &Options) {
    let _ = report.system_call("comm", None, write_own_name);
    let _ = report.system_call("memfd_create", None, micro::memory_file);
    let _ = report.system_call("mincore", None, micro::mincore);
    let _ = report.system_call("sched_setaffinity", None, micro::keep_affinity);
    let _ = report.system_call("ioctl", Some("/dev/null"), ioctl_on_null);
}

/// Writes this thread's own name, as it is, to /proc.
fn write_own_name() -> Result<(), Errno> {
    let path = format!("/proc/self/task/{}/comm", micro::thread_id());
    let write = || {
        let name = std::fs::read(&path)?;
        OpenOptions::new().write(true).open(&path)?.write_all(name.trim_ascii_end())
    };
    write().map_err(|error: std::io::Error| errno_of(&error))
}

/// An ioctl that has nothing to find: "not a terminal" is the right answer and counts as success.
fn ioctl_on_null() -> Result<(), Errno> {
    let null = std::fs::File::open("/dev/null").map_err(|error| errno_of(&error))?;
    match micro::terminal_settings(null.as_fd()) {
        Err(Errno::ENOTTY) => Ok(()),
        other => other,
    }
}
