//! The `stat` family, old and new.

use core::ffi::{c_char, c_int};

use super::target;
use crate::real;
use crate::tree::{self, Entry};

/// Mode and device numbers of an entry, and its size.
struct Shape {
    mode: u32,
    device: (u32, u32),
    size: i64,
}

/// What `stat` tells of an entry; `None` for the one that is nothing.
fn shape(entry: &Entry) -> Option<Shape> {
    let plain =
        |mode, size: usize| Shape { mode, device: (0, 0), size: size.try_into().unwrap_or(0) };
    Some(match entry {
        Entry::Device { major, minor, mode, .. } => {
            Shape { mode: libc::S_IFCHR | mode, device: (*major, *minor), size: 0 }
        }
        Entry::Text(_) | Entry::Added(..) => {
            plain(libc::S_IFREG | 0o444, tree::contents(entry).map_or(0, |text| text.len()))
        }
        Entry::Link(target) => plain(libc::S_IFLNK | 0o777, target.len()),
        Entry::Folder => plain(libc::S_IFDIR | 0o755, 0),
        Entry::Nothing => return None,
    })
}

/// # Safety
///
/// `buffer` must be valid for writing.
unsafe fn fill(entry: &Entry, buffer: *mut libc::stat64) -> c_int {
    let Some(shape) = shape(entry) else {
        return real::fail(libc::ENOENT);
    };
    // SAFETY: all zeroes are a valid stat, and the caller vouches for the buffer.
    unsafe {
        buffer.write_bytes(0, 1);
        (*buffer).st_mode = shape.mode;
        (*buffer).st_nlink = 1;
        (*buffer).st_rdev = libc::makedev(shape.device.0, shape.device.1);
        (*buffer).st_size = shape.size;
        (*buffer).st_blksize = 4096;
    }
    0
}

/// # Safety
///
/// As fstatat(2).
unsafe fn at(folder: c_int, path: *const c_char, buffer: *mut libc::stat64, flags: c_int) -> c_int {
    // SAFETY: the caller keeps the C library's contract.
    unsafe {
        let entry = if flags & libc::AT_SYMLINK_NOFOLLOW != 0 {
            target::itself(folder, path)
        } else {
            target::followed(folder, path).map(|found| found.1)
        };
        if let Some(entry) = entry {
            return fill(entry, buffer);
        }
        let result = libc::syscall(libc::SYS_newfstatat, folder, path, buffer, flags);
        if result == 0 { 0 } else { -1 }
    }
}

/// # Safety
///
/// As fstat(2).
unsafe fn of(descriptor: c_int, buffer: *mut libc::stat64) -> c_int {
    // SAFETY: the caller keeps the C library's contract.
    unsafe {
        match target::behind(descriptor) {
            Some((_, entry)) => fill(entry, buffer),
            None if libc::syscall(libc::SYS_fstat, descriptor, buffer) == 0 => 0,
            None => -1,
        }
    }
}

macro_rules! by_path {
    ($($name:ident($($version:ident)?) $flags:expr;)*) => {$(
        /// # Safety
        ///
        /// As the C library's.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(
            $($version: c_int,)?
            path: *const c_char,
            buffer: *mut libc::stat64,
        ) -> c_int {
            // SAFETY: the caller keeps the C library's contract.
            unsafe { at(libc::AT_FDCWD, path, buffer, $flags) }
        }
    )*};
}
by_path! {
    stat() 0;
    stat64() 0;
    lstat() libc::AT_SYMLINK_NOFOLLOW;
    lstat64() libc::AT_SYMLINK_NOFOLLOW;
    __xstat(_version) 0;
    __xstat64(_version) 0;
    __lxstat(_version) libc::AT_SYMLINK_NOFOLLOW;
    __lxstat64(_version) libc::AT_SYMLINK_NOFOLLOW;
}

macro_rules! by_descriptor {
    ($($name:ident($($version:ident)?);)*) => {$(
        /// # Safety
        ///
        /// As the C library's.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(
            $($version: c_int,)?
            descriptor: c_int,
            buffer: *mut libc::stat64,
        ) -> c_int {
            // SAFETY: the caller keeps the C library's contract.
            unsafe { of(descriptor, buffer) }
        }
    )*};
}
by_descriptor! {
    fstat();
    fstat64();
    __fxstat(_version);
    __fxstat64(_version);
}

macro_rules! from_folder {
    ($($name:ident($($version:ident)?);)*) => {$(
        /// # Safety
        ///
        /// As the C library's.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(
            $($version: c_int,)?
            folder: c_int,
            path: *const c_char,
            buffer: *mut libc::stat64,
            flags: c_int,
        ) -> c_int {
            // SAFETY: the caller keeps the C library's contract.
            unsafe { at(folder, path, buffer, flags) }
        }
    )*};
}
from_folder! {
    fstatat();
    fstatat64();
    __fxstatat(_version);
    __fxstatat64(_version);
}

/// # Safety
///
/// As the C library's.
#[unsafe(no_mangle)]
unsafe extern "C" fn statx(
    folder: c_int,
    path: *const c_char,
    flags: c_int,
    mask: u32,
    buffer: *mut libc::statx,
) -> c_int {
    // SAFETY: the caller keeps the C library's contract; all zeroes are a valid statx.
    unsafe {
        let entry = if flags & libc::AT_SYMLINK_NOFOLLOW != 0 {
            target::itself(folder, path)
        } else {
            target::followed(folder, path).map(|found| found.1)
        };
        let Some(entry) = entry else {
            let result = libc::syscall(libc::SYS_statx, folder, path, flags, mask, buffer);
            return if result == 0 { 0 } else { -1 };
        };
        let Some(shape) = shape(entry) else {
            return real::fail(libc::ENOENT);
        };
        buffer.write_bytes(0, 1);
        (*buffer).stx_mask = libc::STATX_BASIC_STATS;
        (*buffer).stx_mode = u16::try_from(shape.mode).unwrap_or(0);
        (*buffer).stx_nlink = 1;
        (*buffer).stx_blksize = 4096;
        (*buffer).stx_size = u64::try_from(shape.size).unwrap_or(0);
        (*buffer).stx_rdev_major = shape.device.0;
        (*buffer).stx_rdev_minor = shape.device.1;
    }
    0
}
