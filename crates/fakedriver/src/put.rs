//! Handing results to the caller by pointer.

use core::ffi::c_char;

/// Stores a value unless the caller passed null.
///
/// # Safety
///
/// `to` must be null or valid for writing.
pub(crate) unsafe fn value<T>(to: *mut T, value: T) {
    if !to.is_null() {
        // SAFETY: the caller vouches for the pointer.
        unsafe { to.write(value) };
    }
}

/// Stores text with its NUL, cut to `size` bytes.
///
/// # Safety
///
/// `to` must be null or valid for writing `size` bytes.
pub(crate) unsafe fn text(to: *mut c_char, size: usize, text: &str) {
    if to.is_null() || size == 0 {
        return;
    }
    let bytes = text.as_bytes();
    let length = bytes.len().min(size - 1);
    // SAFETY: the caller vouches for the buffer; the length leaves room for the NUL.
    unsafe {
        to.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), length);
        to.add(length).write(0);
    }
}

/// Stores numbers at byte offsets of a structure.
///
/// # Safety
///
/// `to` must be null or valid for writing at each offset.
pub(crate) unsafe fn fields<T: Copy>(to: *mut u8, fields: &[(usize, T)]) {
    if to.is_null() {
        return;
    }
    for (offset, value) in fields {
        // SAFETY: the caller vouches for the structure; alignment is not relied on.
        unsafe { to.add(*offset).cast::<T>().write_unaligned(*value) };
    }
}
