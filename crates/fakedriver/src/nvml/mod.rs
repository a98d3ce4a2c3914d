//! NVML, so far as the product's probes call it (`nvml.h` has the signatures).

mod device;
mod state;
mod system;

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicBool, Ordering};

use crate::act;
use crate::settings::settings;

/// `NVML_SUCCESS`.
const SUCCESS: c_int = 0;
/// `NVML_ERROR_UNINITIALIZED`.
const UNINITIALIZED: c_int = 1;
/// `NVML_ERROR_INVALID_ARGUMENT`.
const INVALID_ARGUMENT: c_int = 2;

static INITIALIZED: AtomicBool = AtomicBool::new(false);

/// Begins a call: does what the settings say of it and gives the code to return at once, if any.
fn begin(function: &str) -> Option<c_int> {
    act::perform(&format!("nvml.{function}"))
        .or_else(|| (!INITIALIZED.load(Ordering::Relaxed)).then_some(UNINITIALIZED))
}

/// As [`begin`], for calls that name a device. Gives the device's index otherwise.
fn begin_for(function: &str, device: *mut c_void) -> Result<u32, c_int> {
    if let Some(code) = begin(function) {
        return Err(code);
    }
    u32::try_from(device.addr())
        .ok()
        .and_then(|handle| handle.checked_sub(1))
        .filter(|index| *index < settings().count)
        .ok_or(INVALID_ARGUMENT)
}

/// The handle of a device: its index and one, so that none is null.
fn handle(index: u32) -> *mut c_void {
    core::ptr::without_provenance_mut(index as usize + 1)
}

/// Defines functions that fill results for one device.
macro_rules! for_device {
    ($($name:ident($($to:ident: $type:ty),*) |$index:ident| $body:expr;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(device: *mut core::ffi::c_void $(, $to: $type)*) -> c_int {
            match $crate::nvml::begin_for(stringify!($name), device) {
                Err(code) => code,
                // SAFETY: nvml.h demands valid pointers and buffers of the sizes passed.
                Ok($index) => unsafe {
                    $body;
                    $crate::nvml::SUCCESS
                },
            }
        }
    )*};
}
use for_device;
