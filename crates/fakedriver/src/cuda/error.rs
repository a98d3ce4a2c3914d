//! Names of the codes that tests return.

use core::ffi::{CStr, c_char, c_int};

use super::{INVALID_VALUE, SUCCESS};

const NAMES: [(c_int, &CStr, &CStr); 15] = [
    (0, c"CUDA_SUCCESS", c"no error"),
    (1, c"CUDA_ERROR_INVALID_VALUE", c"invalid argument"),
    (2, c"CUDA_ERROR_OUT_OF_MEMORY", c"out of memory"),
    (3, c"CUDA_ERROR_NOT_INITIALIZED", c"initialization error"),
    (34, c"CUDA_ERROR_STUB_LIBRARY", c"CUDA driver is a stub library"),
    (46, c"CUDA_ERROR_DEVICE_UNAVAILABLE", c"CUDA-capable device(s) is/are busy or unavailable"),
    (100, c"CUDA_ERROR_NO_DEVICE", c"no CUDA-capable device is detected"),
    (101, c"CUDA_ERROR_INVALID_DEVICE", c"invalid device ordinal"),
    (201, c"CUDA_ERROR_INVALID_CONTEXT", c"invalid device context"),
    (304, c"CUDA_ERROR_OPERATING_SYSTEM", c"OS call failed or operation not supported on this OS"),
    (800, c"CUDA_ERROR_NOT_PERMITTED", c"operation not permitted"),
    (802, c"CUDA_ERROR_SYSTEM_NOT_READY", c"system not yet initialized"),
    (
        803,
        c"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
        c"system has unsupported display driver / cuda driver combination",
    ),
    (
        804,
        c"CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
        c"forward compatibility was attempted on non supported HW",
    ),
    (999, c"CUDA_ERROR_UNKNOWN", c"unknown error"),
];

/// # Safety
///
/// `text` must be valid for writing.
unsafe fn answer(text: *mut *const c_char, found: Option<&'static CStr>) -> c_int {
    // SAFETY: cuda.h demands a valid pointer.
    unsafe { crate::put::value(text, found.map_or(core::ptr::null(), CStr::as_ptr)) };
    if found.is_some() { SUCCESS } else { INVALID_VALUE }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorName(code: c_int, text: *mut *const c_char) -> c_int {
    let found = NAMES.iter().find(|entry| entry.0 == code).map(|entry| entry.1);
    // SAFETY: the caller keeps cuda.h's contract.
    unsafe { answer(text, found) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorString(code: c_int, text: *mut *const c_char) -> c_int {
    let found = NAMES.iter().find(|entry| entry.0 == code).map(|entry| entry.2);
    // SAFETY: the caller keeps cuda.h's contract.
    unsafe { answer(text, found) }
}
