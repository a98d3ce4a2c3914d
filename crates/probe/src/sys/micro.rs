//! Micro-probes: small harmless calls that the driver libraries make, and that policies around a
//! process refuse more often than one would think.

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use facts::Errno;

use super::{check, check_long};

/// Makes an anonymous memory file and drops it.
pub(crate) fn memory_file() -> Result<(), Errno> {
    // SAFETY: the name is a C string; the descriptor is new.
    let fd = check_long(unsafe {
        libc::syscall(libc::SYS_memfd_create, c"gpudx".as_ptr(), libc::MFD_CLOEXEC)
    })?;
    let fd = RawFd::try_from(fd).map_err(|_| Errno::EINVAL)?;
    // SAFETY: the descriptor was just made and nobody else owns it; it is closed here.
    drop(unsafe { OwnedFd::from_raw_fd(fd) });
    Ok(())
}

/// Asks whether a page of this process's own stack is in memory.
pub(crate) fn mincore() -> Result<(), Errno> {
    // SAFETY: takes an integer and returns one.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let page = usize::try_from(page).map_err(|_| Errno::EINVAL)?;
    let mut resident = [0_u8; 1];
    let here = (&raw const resident).addr() & !(page - 1);
    let start = std::ptr::with_exposed_provenance_mut::<libc::c_void>(here);
    // SAFETY: one page is asked about, so one byte is written, to `resident`; the page belongs to
    // this thread's stack and is not changed.
    check(unsafe { libc::mincore(start, page, resident.as_mut_ptr()) })?;
    Ok(())
}

/// Sets this thread's CPU affinity to what it is already.
pub(crate) fn keep_affinity() -> Result<(), Errno> {
    /// Room for 8192 CPUs, the most that Linux can be built for.
    const MASK_BYTES: usize = 1024;
    let mut mask = [0_u64; MASK_BYTES / 8];
    // SAFETY: the mask is as long as the call is told; 0 is this thread.
    let length = check_long(unsafe {
        libc::syscall(libc::SYS_sched_getaffinity, 0, MASK_BYTES, mask.as_mut_ptr())
    })?;
    // SAFETY: the mask holds the `length` bytes that the kernel has just written.
    check_long(unsafe { libc::syscall(libc::SYS_sched_setaffinity, 0, length, mask.as_ptr()) })?;
    Ok(())
}

/// Asks a descriptor for its terminal settings. On anything but a terminal the right answer is
/// ENOTTY; EPERM or ENOSYS betrays a filter on ioctl.
pub(crate) fn terminal_settings(fd: BorrowedFd<'_>) -> Result<(), Errno> {
    // SAFETY: plain data for which zero is valid.
    let mut settings: libc::termios = unsafe { std::mem::zeroed() };
    // SAFETY: TCGETS writes one structure, which is valid for the whole call.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::TCGETS, &raw mut settings) })?;
    Ok(())
}

/// This thread's id.
pub(crate) fn thread_id() -> i64 {
    // SAFETY: cannot fail and touches no memory.
    unsafe { libc::syscall(libc::SYS_gettid) }
}
