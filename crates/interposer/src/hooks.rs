//! `open`, `openat` and `ioctl`, as the driver's libraries call them.
//!
//! They are variadic in C. On the calling conventions of x86-64 and aarch64 Linux the optional
//! argument arrives in the same register as a fixed one.

use core::ffi::{c_char, c_int, c_long, c_ulong, c_void};

use crate::act;

fn fail(errno: c_int) -> c_int {
    // SAFETY: libc's errno location is valid for the calling thread.
    unsafe { *libc::__errno_location() = errno };
    -1
}

#[expect(clippy::cast_possible_truncation, reason = "these calls return an int")]
fn int(value: c_long) -> c_int {
    value as c_int
}

/// # Safety
///
/// As openat(2).
unsafe fn open_at(folder: c_int, path: *const c_char, flags: c_int, mode: u32) -> c_int {
    // SAFETY: the caller vouches for the string.
    if unsafe { act::is_node(path) }
        && let Some(errno) = act::at_open()
    {
        return fail(errno);
    }
    // SAFETY: passed on as it came.
    int(unsafe { libc::syscall(libc::SYS_openat, folder, path, flags, mode) })
}

macro_rules! open_like {
    ($($name:ident)*) => {$(
        /// # Safety
        ///
        /// As the C library's.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(path: *const c_char, flags: c_int, mode: u32) -> c_int {
            // SAFETY: the caller keeps the C library's contract.
            unsafe { open_at(libc::AT_FDCWD, path, flags, mode) }
        }
    )*};
}
open_like!(open open64 __open_2 __open64_2);

macro_rules! openat_like {
    ($($name:ident)*) => {$(
        /// # Safety
        ///
        /// As the C library's.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(
            folder: c_int,
            path: *const c_char,
            flags: c_int,
            mode: u32,
        ) -> c_int {
            // SAFETY: the caller keeps the C library's contract.
            unsafe { open_at(folder, path, flags, mode) }
        }
    )*};
}
openat_like!(openat openat64);

/// # Safety
///
/// As the C library's.
#[unsafe(no_mangle)]
unsafe extern "C" fn ioctl(descriptor: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    if act::is_of_node(descriptor)
        && let Some(errno) = act::at_ioctl((request & 0xffff_ffff) as u32)
    {
        return fail(errno);
    }
    // SAFETY: passed on as it came.
    int(unsafe { libc::syscall(libc::SYS_ioctl, descriptor, request, argument) })
}
