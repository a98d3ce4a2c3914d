//! Opening.

use core::ffi::{CStr, c_char, c_int};

use super::target;
use crate::faults::{self, Effect, Site};
use crate::settings::settings;
use crate::tree::{self, Entry};
use crate::{real, trace};

/// # Safety
///
/// `path` must be a valid C string.
unsafe fn answer(folder: c_int, path: *const c_char, flags: c_int, mode: u32) -> c_int {
    // SAFETY: the caller vouches for the string.
    match unsafe { target::followed(folder, path) } {
        Some((path, entry)) => open_entry(&path, entry, flags & libc::O_CLOEXEC != 0),
        // SAFETY: as above.
        None => unsafe { real::openat(folder, path, flags, mode) },
    }
}

fn open_entry(path: &str, entry: &Entry, close_on_exec: bool) -> c_int {
    if let Entry::Device { right, .. } = entry {
        trace::note(&format!("open {path}"));
        if settings().pass && !real::refused_open(path) {
            return -1;
        }
        match faults::strike(&Site::Open(path.to_owned())) {
            Effect::Errno(errno) => return real::fail(errno),
            Effect::Status(_) => return real::fail(libc::EIO),
            Effect::Usual if !right => return real::fail(libc::ENXIO),
            Effect::Usual => {}
        }
    }
    if *entry == Entry::Nothing {
        return real::fail(libc::ENOENT);
    }
    let descriptor = real::memfd(path, close_on_exec);
    if descriptor >= 0
        && let Some(text) = tree::contents(entry)
    {
        real::write(descriptor, text.as_bytes());
        real::rewind(descriptor);
    }
    descriptor
}

macro_rules! open_like {
    ($($name:ident)*) => {$(
        /// # Safety
        ///
        /// As the C library's.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(path: *const c_char, flags: c_int, mode: u32) -> c_int {
            // SAFETY: the caller keeps the C library's contract.
            unsafe { answer(libc::AT_FDCWD, path, flags, mode) }
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
            unsafe { answer(folder, path, flags, mode) }
        }
    )*};
}
openat_like!(openat openat64 __openat_2 __openat64_2);

type Fopen = unsafe extern "C" fn(*const c_char, *const c_char) -> *mut libc::FILE;

/// # Safety
///
/// Both must be valid C strings.
unsafe fn open_stream(symbol: &CStr, path: *const c_char, mode: *const c_char) -> *mut libc::FILE {
    // SAFETY: the caller vouches for the string.
    if let Some((path, entry)) = unsafe { target::followed(libc::AT_FDCWD, path) } {
        // SAFETY: as above.
        let close_on_exec = unsafe { CStr::from_ptr(mode) }.to_bytes().contains(&b'e');
        let descriptor = open_entry(&path, entry, close_on_exec);
        if descriptor < 0 {
            return core::ptr::null_mut();
        }
        // SAFETY: the descriptor was just opened and is handed over.
        return unsafe { libc::fdopen(descriptor, mode) };
    }
    let next = real::next(symbol);
    if next.is_null() {
        return core::ptr::null_mut();
    }
    // SAFETY: libc's function of this name has this type.
    unsafe { core::mem::transmute::<*mut core::ffi::c_void, Fopen>(next)(path, mode) }
}

/// # Safety
///
/// As the C library's.
#[unsafe(no_mangle)]
unsafe extern "C" fn fopen(path: *const c_char, mode: *const c_char) -> *mut libc::FILE {
    // SAFETY: the caller keeps the C library's contract.
    unsafe { open_stream(c"fopen", path, mode) }
}

/// # Safety
///
/// As the C library's.
#[unsafe(no_mangle)]
unsafe extern "C" fn fopen64(path: *const c_char, mode: *const c_char) -> *mut libc::FILE {
    // SAFETY: the caller keeps the C library's contract.
    unsafe { open_stream(c"fopen64", path, mode) }
}
