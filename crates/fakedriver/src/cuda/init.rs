//! `cuInit` and the version.

use core::ffi::{c_int, c_uint};
use core::sync::atomic::{AtomicU32, Ordering};

use super::{INVALID_VALUE, SUCCESS};
use crate::settings::settings;
use crate::{act, put};

/// The process in which `cuInit` succeeded; 0 before. A forked child is another process, and as
/// with the real library initialization does not carry over to it.
static INITIALIZED_IN: AtomicU32 = AtomicU32::new(0);

/// Whether `cuInit` succeeded in this very process.
pub(super) fn is_initialized() -> bool {
    INITIALIZED_IN.load(Ordering::Relaxed) == std::process::id()
}

#[unsafe(no_mangle)]
extern "C" fn cuInit(flags: c_uint) -> c_int {
    const NO_DEVICE: c_int = 100;
    const NOT_INITIALIZED: c_int = 3;
    if flags != 0 {
        return INVALID_VALUE;
    }
    if let Some(code) = act::perform("cuinit").or_else(|| act::perform("cuda.cuInit")) {
        return code;
    }
    if settings().count == 0 {
        return NO_DEVICE;
    }
    let before = INITIALIZED_IN.load(Ordering::Relaxed);
    if before != 0 && before != std::process::id() {
        return NOT_INITIALIZED;
    }
    INITIALIZED_IN.store(std::process::id(), Ordering::Relaxed);
    SUCCESS
}

/// Needs no `cuInit`, as with the real library.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuDriverGetVersion(version: *mut c_int) -> c_int {
    if let Some(code) = act::perform("cuda.cuDriverGetVersion") {
        return code;
    }
    // SAFETY: cuda.h demands a valid pointer.
    unsafe { put::value(version, settings().cuda) };
    SUCCESS
}
