//! Initialization, versions, the list of devices.

use core::ffi::{c_char, c_int, c_uint, c_void};
use core::sync::atomic::Ordering;

use super::{INITIALIZED, INVALID_ARGUMENT, SUCCESS, begin, handle};
use crate::settings::settings;
use crate::{act, put};

fn initialize(function: &str) -> c_int {
    let code = act::perform("nvml").or_else(|| act::perform(&format!("nvml.{function}")));
    if let Some(code) = code {
        return code;
    }
    INITIALIZED.store(true, Ordering::Relaxed);
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn nvmlInit_v2() -> c_int {
    initialize("nvmlInit_v2")
}

#[unsafe(no_mangle)]
extern "C" fn nvmlInitWithFlags(_flags: c_uint) -> c_int {
    initialize("nvmlInitWithFlags")
}

#[unsafe(no_mangle)]
extern "C" fn nvmlShutdown() -> c_int {
    if let Some(code) = begin("nvmlShutdown") {
        return code;
    }
    INITIALIZED.store(false, Ordering::Relaxed);
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn nvmlErrorString(code: c_int) -> *const c_char {
    let text = match code {
        0 => c"Success",
        1 => c"Uninitialized",
        2 => c"Invalid Argument",
        3 => c"Not Supported",
        4 => c"Insufficient Permissions",
        6 => c"Not Found",
        9 => c"Driver Not Loaded",
        12 => c"NVML Shared Library Not Found",
        15 => c"GPU is lost",
        16 => c"GPU requires reset",
        17 => c"GPU access blocked by the operating system",
        18 => c"Driver/library version mismatch",
        _ => c"Unknown Error",
    };
    text.as_ptr()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlSystemGetDriverVersion(to: *mut c_char, size: c_uint) -> c_int {
    if let Some(code) = begin("nvmlSystemGetDriverVersion") {
        return code;
    }
    // SAFETY: nvml.h demands a buffer of this size.
    unsafe { put::text(to, size as usize, &settings().driver) };
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlSystemGetNVMLVersion(to: *mut c_char, size: c_uint) -> c_int {
    if let Some(code) = begin("nvmlSystemGetNVMLVersion") {
        return code;
    }
    let version = format!("{}.{}", settings().cuda / 1000, settings().driver);
    // SAFETY: nvml.h demands a buffer of this size.
    unsafe { put::text(to, size as usize, &version) };
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlSystemGetCudaDriverVersion_v2(to: *mut c_int) -> c_int {
    if let Some(code) = begin("nvmlSystemGetCudaDriverVersion_v2") {
        return code;
    }
    // SAFETY: nvml.h demands a valid pointer.
    unsafe { put::value(to, settings().cuda) };
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetCount_v2(to: *mut c_uint) -> c_int {
    if let Some(code) = begin("nvmlDeviceGetCount_v2") {
        return code;
    }
    // SAFETY: nvml.h demands a valid pointer.
    unsafe { put::value(to, settings().count) };
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetHandleByIndex_v2(index: c_uint, to: *mut *mut c_void) -> c_int {
    if let Some(code) = begin("nvmlDeviceGetHandleByIndex_v2") {
        return code;
    }
    if index >= settings().count {
        return INVALID_ARGUMENT;
    }
    // SAFETY: nvml.h demands a valid pointer.
    unsafe { put::value(to, handle(index)) };
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlSystemGetConfComputeState(to: *mut u8) -> c_int {
    if let Some(code) = begin("nvmlSystemGetConfComputeState") {
        return code;
    }
    let [on, _] = settings().confidential;
    // SAFETY: nvml.h demands a valid structure: environment, feature, tools mode.
    unsafe { put::fields(to, &[(0, 0), (4, on), (8, 0)]) };
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlSystemGetConfComputeGpusReadyState(to: *mut c_uint) -> c_int {
    if let Some(code) = begin("nvmlSystemGetConfComputeGpusReadyState") {
        return code;
    }
    let [_, ready] = settings().confidential;
    // SAFETY: nvml.h demands a valid pointer.
    unsafe { put::value(to, ready) };
    SUCCESS
}
