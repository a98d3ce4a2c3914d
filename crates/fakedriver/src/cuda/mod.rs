//! The CUDA driver API, so far as the product's probes call it (`cuda.h` has the signatures).

mod context;
mod device;
mod error;
mod init;
mod kernel;
mod memory;

use core::ffi::c_int;

pub(crate) use device::{MEMORY_BYTES, bus, uuid_text};

use crate::act;
use crate::settings::settings;

/// `CUDA_SUCCESS`.
const SUCCESS: c_int = 0;
/// `CUDA_ERROR_INVALID_VALUE`.
const INVALID_VALUE: c_int = 1;
/// `CUDA_ERROR_NOT_INITIALIZED`.
const NOT_INITIALIZED: c_int = 3;
/// `CUDA_ERROR_INVALID_DEVICE`.
const INVALID_DEVICE: c_int = 101;
/// `CUDA_ERROR_INVALID_CONTEXT`.
const INVALID_CONTEXT: c_int = 201;

/// Begins a call that needs `cuInit`: does what the settings say of it and gives the code to
/// return at once, if any. `group` is the setting that covers several functions.
fn begin(function: &str, group: &str) -> Option<c_int> {
    act::perform(&format!("cuda.{function}"))
        .or_else(|| act::perform(group))
        .or_else(|| (!init::is_initialized()).then_some(NOT_INITIALIZED))
}

/// As [`begin`], for calls that name a device.
fn begin_for(function: &str, device: c_int) -> Option<c_int> {
    begin(function, "").or_else(|| {
        let known = u32::try_from(device).is_ok_and(|index| index < settings().count);
        (!known).then_some(INVALID_DEVICE)
    })
}
