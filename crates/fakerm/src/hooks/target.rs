//! Which pretended entry a path or a descriptor means.

use core::ffi::{CStr, c_char, c_int};

use crate::real;
use crate::tree::{self, Entry};

/// How a memfd shows in `/proc/self/fd`, before and after its name.
const MEMFD: (&str, &str) = ("/memfd:", " (deleted)");

/// The absolute path that `path` means from `folder`; `None` if it is not one to be pretended.
///
/// # Safety
///
/// `path` must be null or a valid C string.
pub(super) unsafe fn absolute(folder: c_int, path: *const c_char) -> Option<String> {
    if path.is_null() {
        return None;
    }
    // SAFETY: the caller vouches for the string.
    let path = unsafe { CStr::from_ptr(path) }.to_str().ok()?;
    if path.starts_with('/') {
        return Some(path.to_owned());
    }
    if folder == libc::AT_FDCWD {
        return None;
    }
    let folder = path_of(folder)?;
    Some(if path.is_empty() { folder } else { format!("{folder}/{path}") })
}

/// The entry at a path and its final path, links followed.
///
/// # Safety
///
/// As for [`absolute`].
pub(super) unsafe fn followed(
    folder: c_int,
    path: *const c_char,
) -> Option<(String, &'static Entry)> {
    // SAFETY: the caller vouches for the string.
    tree::find_followed(&unsafe { absolute(folder, path) }?)
}

/// The entry at a path, a link at its end not followed.
///
/// # Safety
///
/// As for [`absolute`].
pub(super) unsafe fn itself(folder: c_int, path: *const c_char) -> Option<&'static Entry> {
    // SAFETY: the caller vouches for the string.
    tree::find(&unsafe { absolute(folder, path) }?)
}

/// The path behind a descriptor: the name of one of our memfds, or what the kernel says.
pub(super) fn path_of(descriptor: c_int) -> Option<String> {
    if descriptor < 0 {
        return None;
    }
    let link = real::readlink(&format!("/proc/self/fd/{descriptor}"))?;
    Some(pretended_name(&link).map_or(link.clone(), str::to_owned))
}

/// The pretended path that one of our memfds is named after.
pub(super) fn pretended_name(link: &str) -> Option<&str> {
    let name = link.strip_prefix(MEMFD.0)?.strip_suffix(MEMFD.1)?;
    name.starts_with('/').then_some(name)
}

/// The entry behind one of our memfds.
pub(super) fn behind(descriptor: c_int) -> Option<(String, &'static Entry)> {
    if descriptor < 0 {
        return None;
    }
    let link = real::readlink(&format!("/proc/self/fd/{descriptor}"))?;
    tree::find_followed(pretended_name(&link)?)
}
