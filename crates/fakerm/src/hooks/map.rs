//! `mmap`: mapping a pretended node gives memory of nobody's.

use core::ffi::{c_int, c_void};

use super::target;
use crate::real;
use crate::settings::settings;
use crate::tree::Entry;

/// # Safety
///
/// As mmap(2).
unsafe fn answer(
    address: *mut c_void,
    length: usize,
    protection: c_int,
    flags: c_int,
    descriptor: c_int,
    offset: i64,
) -> *mut c_void {
    let (mut flags, mut descriptor, mut offset) = (flags, descriptor, offset);
    if descriptor >= 0
        && flags & libc::MAP_ANONYMOUS == 0
        && let Some((_, Entry::Device { .. })) = target::behind(descriptor)
    {
        if settings().pass && !real::refused_map(length, protection, flags, descriptor, offset) {
            return libc::MAP_FAILED;
        }
        let kind = libc::MAP_SHARED | libc::MAP_PRIVATE;
        flags = (flags & !kind) | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        (descriptor, offset) = (-1, 0);
    }
    // SAFETY: the caller keeps the contract of mmap(2); the kind of memory alone was changed.
    let result = unsafe {
        libc::syscall(libc::SYS_mmap, address, length, protection, flags, descriptor, offset)
    };
    core::ptr::with_exposed_provenance_mut(usize::from_ne_bytes(result.to_ne_bytes()))
}

macro_rules! mmap_like {
    ($($name:ident)*) => {$(
        /// # Safety
        ///
        /// As the C library's.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(
            address: *mut c_void,
            length: usize,
            protection: c_int,
            flags: c_int,
            descriptor: c_int,
            offset: i64,
        ) -> *mut c_void {
            // SAFETY: the caller keeps the C library's contract.
            unsafe { answer(address, length, protection, flags, descriptor, offset) }
        }
    )*};
}
mmap_like!(mmap mmap64);
