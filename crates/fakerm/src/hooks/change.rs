//! Changing nodes. As root the driver's libraries make missing nodes, replace wrong ones and set
//! modes; on pretended nodes all of that succeeds, is traced, and changes nothing.

use core::ffi::{c_char, c_int, c_long};

use super::target;
use crate::trace;

/// Whether `path` is one of the driver's nodes, or a link to one under /dev/char.
///
/// # Safety
///
/// `path` must be a valid C string.
unsafe fn pretended(folder: c_int, path: *const c_char, verb: &str) -> bool {
    // SAFETY: the caller vouches for the string.
    let Some(path) = (unsafe { target::absolute(folder, path) }) else {
        return false;
    };
    let ours = path.starts_with("/dev/nvidia") || path.starts_with("/dev/char/195:");
    if ours {
        trace::note(&format!("{verb} {path}"));
    }
    ours
}

fn result(value: c_long) -> c_int {
    if value == 0 { 0 } else { -1 }
}

/// Defines interposed functions: each names the folder and path that it changes, and the system
/// call that the C library would make.
macro_rules! changes {
    ($($name:ident($($argument:ident: $type:ty),*), $folder:expr, $path:ident,
        $call:ident($($passed:expr),*);)*) => {$(
        /// # Safety
        ///
        /// As the C library's.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
            // SAFETY: the caller keeps the C library's contract.
            unsafe {
                if pretended($folder, $path, stringify!($name)) {
                    return 0;
                }
                result(libc::syscall(libc::$call, $($passed),*))
            }
        }
    )*};
}

changes! {
    mknod(path: *const c_char, mode: u32, device: u64), libc::AT_FDCWD, path,
        SYS_mknodat(libc::AT_FDCWD, path, mode, device);
    mknodat(folder: c_int, path: *const c_char, mode: u32, device: u64), folder, path,
        SYS_mknodat(folder, path, mode, device);
    __xmknod(_version: c_int, path: *const c_char, mode: u32, device: *const u64),
        libc::AT_FDCWD, path, SYS_mknodat(libc::AT_FDCWD, path, mode, *device);
    unlink(path: *const c_char), libc::AT_FDCWD, path,
        SYS_unlinkat(libc::AT_FDCWD, path, 0);
    unlinkat(folder: c_int, path: *const c_char, flags: c_int), folder, path,
        SYS_unlinkat(folder, path, flags);
    chmod(path: *const c_char, mode: u32), libc::AT_FDCWD, path,
        SYS_fchmodat(libc::AT_FDCWD, path, mode);
    chown(path: *const c_char, user: u32, group: u32), libc::AT_FDCWD, path,
        SYS_fchownat(libc::AT_FDCWD, path, user, group, 0);
    symlink(target: *const c_char, path: *const c_char), libc::AT_FDCWD, path,
        SYS_symlinkat(target, libc::AT_FDCWD, path);
}
