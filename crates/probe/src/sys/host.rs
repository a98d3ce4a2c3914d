//! What the kernel tells about the machine and about files, beyond the standard library.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use facts::Errno;

use super::check;

/// Largest kernel log that is copied, in bytes; the ring is 128 KiB to a few MiB.
const KERNEL_LOG_LIMIT: usize = 4 * 1024 * 1024;

/// `SYSLOG_ACTION_READ_ALL` of syslog(2): copies the ring and changes nothing.
const SYSLOG_ACTION_READ_ALL: libc::c_int = 3;

/// Size and free space of the file system at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileSystem {
    /// Bytes in all.
    pub(crate) size_bytes: u64,
    /// Bytes free to anybody.
    pub(crate) available_bytes: u64,
}

/// Size of the file system at a path.
pub(crate) fn file_system(path: &Path) -> Result<FileSystem, Errno> {
    let path = CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno::EINVAL)?;
    // SAFETY: plain data for which zero is valid.
    let mut stat: libc::statvfs64 = unsafe { std::mem::zeroed() };
    // SAFETY: a C string and a structure that are valid for the whole call.
    check(unsafe { libc::statvfs64(path.as_ptr(), &raw mut stat) })?;
    let block: u64 = stat.f_frsize;
    Ok(FileSystem {
        size_bytes: stat.f_blocks.saturating_mul(block),
        available_bytes: stat.f_bavail.saturating_mul(block),
    })
}

/// The kernel log as syslog(2) gives it: lines with their `<level>` prefixes. Oldest lines are
/// cut where it is larger than the limit.
pub(crate) fn kernel_log() -> Result<Vec<u8>, Errno> {
    let mut buffer = vec![0_u8; KERNEL_LOG_LIMIT];
    let room = libc::c_int::try_from(buffer.len()).map_err(|_| Errno::EINVAL)?;
    // SAFETY: the buffer is as long as the call is told.
    let copied =
        check(unsafe { libc::klogctl(SYSLOG_ACTION_READ_ALL, buffer.as_mut_ptr().cast(), room) })?;
    buffer.truncate(usize::try_from(copied).unwrap_or(0));
    Ok(buffer)
}
