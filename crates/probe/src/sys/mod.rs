//! The operating system and the driver libraries, behind small safe functions.
//!
//! This folder holds the only unsafe code of the product. Each function does one thing, returns
//! the errno as it came, and never waits without a limit. System calls that glibc 2.17 does not
//! wrap are made by number, which keeps the binary's floor low.

#![expect(unsafe_code, reason = "system calls and foreign functions; nothing else is unsafe")]

pub(crate) mod arch;
pub(crate) mod cuda;
pub(crate) mod cuda_context;
pub(crate) mod descriptors;
pub(crate) mod filter;
pub(crate) mod host;
pub(crate) mod identity;
pub(crate) mod isolate;
pub(crate) mod library;
pub(crate) mod micro;
pub(crate) mod nvidiactl;
pub(crate) mod nvml;
pub(crate) mod nvml_health;
pub(crate) mod pipe;
pub(crate) mod process;
pub(crate) mod ptrace;
pub(crate) mod spawn;
pub(crate) mod traced;

use facts::Errno;

/// The errno of the call that has just failed.
fn last_errno() -> Errno {
    errno_of(&std::io::Error::last_os_error())
}

/// The errno inside an error of the standard library; `EIO` where it has none, as for a read that
/// ended early.
pub(crate) fn errno_of(error: &std::io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno)
}

/// Turns the usual "minus one and errno" into a result.
fn check(returned: libc::c_int) -> Result<libc::c_int, Errno> {
    if returned < 0 { Err(last_errno()) } else { Ok(returned) }
}

/// The same for calls made by number.
fn check_long(returned: libc::c_long) -> Result<libc::c_long, Errno> {
    if returned < 0 { Err(last_errno()) } else { Ok(returned) }
}
