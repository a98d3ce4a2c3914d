//! The kernel's own answers, beneath the hooks.
//!
//! These are raw system calls rather than the next definition of each symbol: they cannot come
//! back to a hook, and they work while the dynamic linker is still busy.

use core::ffi::{CStr, c_char, c_int, c_long, c_void};
use std::ffi::CString;

/// Sets errno and gives the −1 that libc's functions return on failure.
pub(crate) fn fail(errno: c_int) -> c_int {
    // SAFETY: libc's errno location is valid for the calling thread.
    unsafe { *libc::__errno_location() = errno };
    -1
}

/// The calling thread's errno.
pub(crate) fn errno() -> c_int {
    // SAFETY: libc's errno location is valid for the calling thread.
    unsafe { *libc::__errno_location() }
}

#[expect(clippy::cast_possible_truncation, reason = "these calls return an int")]
fn int(value: c_long) -> c_int {
    value as c_int
}

/// openat(2).
///
/// # Safety
///
/// `path` must be a valid C string.
pub(crate) unsafe fn openat(folder: c_int, path: *const c_char, flags: c_int, mode: u32) -> c_int {
    // SAFETY: the caller vouches for the path; the kernel checks the rest.
    int(unsafe { libc::syscall(libc::SYS_openat, folder, path, flags, mode) })
}

/// Asks the kernel for a node in a way that it always refuses before it looks for the path: for a
/// temporary file that nobody may write. Tells whether it gave that answer; any other is from a
/// tracer, and stands in errno.
pub(crate) fn refused_open(path: &str) -> bool {
    let Ok(path) = CString::new(path) else { return true };
    let before = errno();
    // SAFETY: the path is a C string.
    let opened = unsafe { openat(libc::AT_FDCWD, path.as_ptr(), libc::O_TMPFILE, 0) };
    if opened >= 0 || errno() == libc::EINVAL {
        fail(before);
        return true;
    }
    false
}

/// Asks the kernel for a mapping that it always refuses before it looks at the file: one that ends
/// beyond all addresses. Tells whether it gave that answer; any other is from a tracer, and stands
/// in errno. The tracer sees the arguments as they are but for the address.
pub(crate) fn refused_map(
    length: usize,
    protection: c_int,
    flags: c_int,
    descriptor: c_int,
    offset: i64,
) -> bool {
    let before = errno();
    // The last page that an address can name, where nothing of a process can lie.
    let address = usize::MAX & !0xfff;
    let flags = flags | libc::MAP_FIXED;
    // SAFETY: the kernel refuses the address, so that nothing is mapped.
    let mapped = unsafe {
        libc::syscall(libc::SYS_mmap, address, length, protection, flags, descriptor, offset)
    };
    if mapped != -1 || matches!(errno(), libc::ENOMEM | libc::EINVAL | libc::EOVERFLOW) {
        fail(before);
        return true;
    }
    false
}

/// ioctl(2).
///
/// # Safety
///
/// `argument` must be what the request demands.
pub(crate) unsafe fn ioctl(descriptor: c_int, request: u64, argument: *mut c_void) -> c_int {
    // SAFETY: passed on as it came.
    int(unsafe { libc::syscall(libc::SYS_ioctl, descriptor, request, argument) })
}

/// Closes a descriptor of our own.
pub(crate) fn close(descriptor: c_int) {
    // SAFETY: closing affects the descriptor alone.
    unsafe { libc::syscall(libc::SYS_close, descriptor) };
}

/// Writes all of `bytes`, as far as the kernel takes them in one call.
pub(crate) fn write(descriptor: c_int, bytes: &[u8]) {
    // SAFETY: the buffer is valid for its length.
    unsafe { libc::syscall(libc::SYS_write, descriptor, bytes.as_ptr(), bytes.len()) };
}

/// A memfd of this name, or −1 with errno set.
pub(crate) fn memfd(name: &str, close_on_exec: bool) -> c_int {
    let Ok(name) = CString::new(name) else {
        return fail(libc::ENAMETOOLONG);
    };
    let flags = if close_on_exec { libc::MFD_CLOEXEC } else { 0 };
    // SAFETY: the name is a valid C string.
    int(unsafe { libc::syscall(libc::SYS_memfd_create, name.as_ptr(), flags) })
}

/// Moves a descriptor's position back to the start.
pub(crate) fn rewind(descriptor: c_int) {
    // SAFETY: seeking affects the descriptor alone.
    unsafe { libc::syscall(libc::SYS_lseek, descriptor, 0, libc::SEEK_SET) };
}

/// Where a symbolic link leads, if it is one and can be read.
pub(crate) fn readlink(path: &str) -> Option<String> {
    let path = CString::new(path).ok()?;
    let mut buffer = [0_u8; 4096];
    // SAFETY: the path is a C string and the buffer is valid for its length.
    let length = unsafe {
        libc::syscall(
            libc::SYS_readlinkat,
            libc::AT_FDCWD,
            path.as_ptr(),
            buffer.as_mut_ptr(),
            buffer.len(),
        )
    };
    let bytes = buffer.get(..usize::try_from(length).ok()?)?;
    Some(String::from_utf8_lossy(bytes).into_owned())
}

/// A whole text file of the real system; empty when it cannot be read.
pub(crate) fn read_text(path: &CStr) -> String {
    // SAFETY: the path is a C string.
    let descriptor =
        unsafe { openat(libc::AT_FDCWD, path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC, 0) };
    if descriptor < 0 {
        return String::new();
    }
    let mut text = Vec::new();
    let mut chunk = [0_u8; 4096];
    loop {
        // SAFETY: the buffer is valid for its length.
        let length =
            unsafe { libc::syscall(libc::SYS_read, descriptor, chunk.as_mut_ptr(), chunk.len()) };
        match usize::try_from(length) {
            Ok(length) if length > 0 => text.extend_from_slice(chunk.get(..length).unwrap_or(&[])),
            _ => break,
        }
    }
    close(descriptor);
    String::from_utf8_lossy(&text).into_owned()
}

/// The next definition of a libc function behind ours, or null.
pub(crate) fn next(symbol: &CStr) -> *mut c_void {
    // SAFETY: a look-up by name.
    unsafe { libc::dlsym(libc::RTLD_NEXT, symbol.as_ptr()) }
}
