//! Contexts. There is one at most, and it is just a flag.

use core::ffi::{c_int, c_uint, c_void};
use core::sync::atomic::{AtomicBool, Ordering};

use super::{INVALID_CONTEXT, SUCCESS, begin, begin_for};
use crate::put;

static CURRENT: AtomicBool = AtomicBool::new(false);

/// The handle of the only context.
fn handle() -> *mut c_void {
    core::ptr::without_provenance_mut(0xc0de)
}

/// As [`begin`], for calls that need a current context.
pub(super) fn begin_in_context(function: &str, group: &str) -> Option<c_int> {
    begin(function, group).or_else(|| (!CURRENT.load(Ordering::Relaxed)).then_some(INVALID_CONTEXT))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDevicePrimaryCtxRetain(context: *mut *mut c_void, device: c_int) -> c_int {
    let code = begin_for("cuDevicePrimaryCtxRetain", device)
        .or_else(|| begin("cuDevicePrimaryCtxRetain", "context"));
    if let Some(code) = code {
        return code;
    }
    // SAFETY: cuda.h demands a valid pointer.
    unsafe { put::value(context, handle()) };
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxRelease_v2(device: c_int) -> c_int {
    if let Some(code) = begin_for("cuDevicePrimaryCtxRelease_v2", device) {
        return code;
    }
    CURRENT.store(false, Ordering::Relaxed);
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxSetCurrent(context: *mut c_void) -> c_int {
    if let Some(code) = begin("cuCtxSetCurrent", "") {
        return code;
    }
    if !context.is_null() && context != handle() {
        return INVALID_CONTEXT;
    }
    CURRENT.store(!context.is_null(), Ordering::Relaxed);
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxCreate_v2(
    context: *mut *mut c_void,
    _flags: c_uint,
    device: c_int,
) -> c_int {
    let code = begin_for("cuCtxCreate_v2", device).or_else(|| begin("cuCtxCreate_v2", "context"));
    if let Some(code) = code {
        return code;
    }
    CURRENT.store(true, Ordering::Relaxed);
    // SAFETY: cuda.h demands a valid pointer.
    unsafe { put::value(context, handle()) };
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxDestroy_v2(_context: *mut c_void) -> c_int {
    if let Some(code) = begin("cuCtxDestroy_v2", "") {
        return code;
    }
    CURRENT.store(false, Ordering::Relaxed);
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxSynchronize() -> c_int {
    begin_in_context("cuCtxSynchronize", "").unwrap_or(SUCCESS)
}
