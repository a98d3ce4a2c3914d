//! Pipes whose reading end never blocks, and waiting on many descriptors at once.

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

use facts::Errno;

use super::{check, last_errno};

/// A pipe: the reading end does not block, the writing end does; neither survives an exec.
pub(crate) struct Pipe {
    /// The end that the parent keeps.
    pub(crate) read: OwnedFd,
    /// The end that becomes the child's output.
    pub(crate) write: OwnedFd,
}

/// Opens a pipe.
pub(crate) fn pipe() -> Result<Pipe, Errno> {
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for the two descriptors that the call writes.
    check(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) })?;
    let [read, write] = ends;
    // SAFETY: both descriptors were just made by the kernel and nobody else owns them.
    let pipe =
        unsafe { Pipe { read: OwnedFd::from_raw_fd(read), write: OwnedFd::from_raw_fd(write) } };
    // SAFETY: the descriptor is open; F_SETFL takes an integer.
    check(unsafe { libc::fcntl(read, libc::F_SETFL, libc::O_NONBLOCK) })?;
    Ok(pipe)
}

/// Waits until one of the descriptors is readable or closed at the other end, or the time is up.
/// Tells for each whether there is something to read. An interrupted wait counts as "nothing yet".
pub(crate) fn wait_readable(fds: &[BorrowedFd<'_>], limit: Duration) -> Vec<bool> {
    let mut entries: Vec<libc::pollfd> = fds
        .iter()
        .map(|fd| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 })
        .collect();
    let count = libc::nfds_t::try_from(entries.len()).unwrap_or(0);
    // One is added so that a limit of less than a millisecond does not become a busy loop.
    let limit_ms = libc::c_int::try_from(limit.as_millis()).unwrap_or(libc::c_int::MAX - 1) + 1;
    // SAFETY: `entries` holds `count` initialised entries for the whole call.
    let ready = unsafe { libc::poll(entries.as_mut_ptr(), count, limit_ms) };
    entries.iter().map(|entry| ready > 0 && entry.revents != 0).collect()
}

/// Moves this process's standard output to a private descriptor that no child inherits, and lets
/// descriptor 1 lead to standard error. A library that prints then cannot spoil the report.
pub(crate) fn take_standard_output() -> Result<OwnedFd, Errno> {
    // SAFETY: duplicates a descriptor number; fails with EBADF when 1 is closed.
    let private = check(unsafe { libc::fcntl(1, libc::F_DUPFD_CLOEXEC, 3) })?;
    // SAFETY: the descriptor was just made and nobody else owns it.
    let private = unsafe { OwnedFd::from_raw_fd(private) };
    // SAFETY: redirects descriptor 1 to descriptor 2; both are plain numbers.
    if unsafe { libc::dup2(2, 1) } < 0 {
        return Err(last_errno());
    }
    Ok(private)
}
