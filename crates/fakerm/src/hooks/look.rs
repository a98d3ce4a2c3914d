//! Looking at a path without opening it: `access`, `readlink`, `realpath`.

use core::ffi::{c_char, c_int};

use super::target;
use crate::real;
use crate::tree::{self, Entry};

/// # Safety
///
/// `path` must be a valid C string.
unsafe fn may_access(folder: c_int, path: *const c_char, mode: c_int, flags: c_int) -> c_int {
    // SAFETY: the caller keeps the C library's contract.
    let Some((_, entry)) = (unsafe { target::followed(folder, path) }) else {
        // SAFETY: as above.
        let result = unsafe { libc::syscall(libc::SYS_faccessat2, folder, path, mode, flags) };
        return if result == 0 { 0 } else { -1 };
    };
    match entry {
        Entry::Nothing => real::fail(libc::ENOENT),
        Entry::Device { .. } | Entry::Text(_) | Entry::Added(..) if mode & libc::X_OK != 0 => {
            real::fail(libc::EACCES)
        }
        _ => 0,
    }
}

/// # Safety
///
/// As the C library's.
#[unsafe(no_mangle)]
unsafe extern "C" fn access(path: *const c_char, mode: c_int) -> c_int {
    // SAFETY: the caller keeps the C library's contract.
    unsafe { may_access(libc::AT_FDCWD, path, mode, 0) }
}

/// # Safety
///
/// As the C library's.
#[unsafe(no_mangle)]
unsafe extern "C" fn faccessat(
    folder: c_int,
    path: *const c_char,
    mode: c_int,
    flags: c_int,
) -> c_int {
    // SAFETY: the caller keeps the C library's contract.
    unsafe { may_access(folder, path, mode, flags) }
}

/// Where a link leads: a pretended link's target, or for a descriptor's link in `/proc` that names
/// one of our memfds the path that is pretended.
///
/// # Safety
///
/// `path` must be a valid C string.
unsafe fn link_target(folder: c_int, path: *const c_char) -> Option<Result<String, c_int>> {
    // SAFETY: the caller keeps the C library's contract.
    if let Some(entry) = unsafe { target::itself(folder, path) } {
        return Some(match entry {
            Entry::Link(target) => Ok(target.clone()),
            Entry::Nothing => Err(libc::ENOENT),
            _ => Err(libc::EINVAL),
        });
    }
    // SAFETY: as above.
    let path = unsafe { target::absolute(folder, path) }?;
    if !path.starts_with("/proc/") || !path.contains("/fd/") {
        return None;
    }
    let link = real::readlink(&path)?;
    target::pretended_name(&link).map(|name| Ok(name.to_owned()))
}

/// # Safety
///
/// As readlinkat(2).
unsafe fn read_link(folder: c_int, path: *const c_char, buffer: *mut c_char, size: usize) -> isize {
    // SAFETY: the caller keeps the C library's contract.
    unsafe {
        match link_target(folder, path) {
            Some(Ok(target)) => {
                let length = target.len().min(size);
                buffer.cast::<u8>().copy_from_nonoverlapping(target.as_ptr(), length);
                length.try_into().unwrap_or(0)
            }
            Some(Err(errno)) => real::fail(errno) as isize,
            None => {
                let result = libc::syscall(libc::SYS_readlinkat, folder, path, buffer, size);
                result.try_into().unwrap_or(-1)
            }
        }
    }
}

/// # Safety
///
/// As the C library's.
#[unsafe(no_mangle)]
unsafe extern "C" fn readlink(path: *const c_char, buffer: *mut c_char, size: usize) -> isize {
    // SAFETY: the caller keeps the C library's contract.
    unsafe { read_link(libc::AT_FDCWD, path, buffer, size) }
}

/// # Safety
///
/// As the C library's.
#[unsafe(no_mangle)]
unsafe extern "C" fn readlinkat(
    folder: c_int,
    path: *const c_char,
    buffer: *mut c_char,
    size: usize,
) -> isize {
    // SAFETY: the caller keeps the C library's contract.
    unsafe { read_link(folder, path, buffer, size) }
}

type Realpath = unsafe extern "C" fn(*const c_char, *mut c_char) -> *mut c_char;

/// # Safety
///
/// As the C library's.
#[unsafe(no_mangle)]
unsafe extern "C" fn realpath(path: *const c_char, resolved: *mut c_char) -> *mut c_char {
    // SAFETY: the caller keeps the C library's contract; `resolved` has room for PATH_MAX bytes.
    unsafe {
        match target::absolute(libc::AT_FDCWD, path).and_then(|path| tree::find_followed(&path)) {
            Some((_, Entry::Nothing)) => {
                real::fail(libc::ENOENT);
                core::ptr::null_mut()
            }
            Some((path, _)) => {
                let Ok(path) = std::ffi::CString::new(path) else {
                    return core::ptr::null_mut();
                };
                if resolved.is_null() {
                    return libc::strdup(path.as_ptr());
                }
                libc::strcpy(resolved, path.as_ptr())
            }
            None => {
                let next = real::next(c"realpath");
                if next.is_null() {
                    return core::ptr::null_mut();
                }
                core::mem::transmute::<*mut core::ffi::c_void, Realpath>(next)(path, resolved)
            }
        }
    }
}
