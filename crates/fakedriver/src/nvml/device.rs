//! What a device is.

use core::ffi::{c_char, c_int, c_uint};

use super::for_device;
use crate::cuda::{MEMORY_BYTES, bus, uuid_text};
use crate::put;
use crate::settings::settings;

/// `NVML_DEVICE_ARCH_*` of the compute capability: Hopper is 9, Blackwell 10.
fn architecture() -> c_uint {
    match settings().capability {
        (7, 5) => 6,
        (8, 9) => 8,
        (8, _) => 7,
        (9, _) => 9,
        (10.., _) => 10,
        _ => c_uint::MAX,
    }
}

/// Fills `nvmlPciInfo_t`.
///
/// # Safety
///
/// `to` must be null or valid for its 68 bytes.
unsafe fn pci(to: *mut u8, index: u32) {
    const H200: u32 = 0x2335_10de;
    let bus = bus(index);
    // SAFETY: the caller vouches for the structure.
    unsafe {
        put::text(to.cast(), 16, &format!("0000:{bus:02X}:00.0"));
        put::fields(to, &[(16, 0), (20, bus), (24, 0), (28, H200), (32, 0x18be_10de_u32)]);
        put::text(to.wrapping_add(36).cast(), 32, &format!("00000000:{bus:02X}:00.0"));
    }
}

for_device! {
    nvmlDeviceGetName(to: *mut c_char, size: c_uint) |_index|
        put::text(to, size as usize, &settings().name);
    nvmlDeviceGetUUID(to: *mut c_char, size: c_uint) |index|
        put::text(to, size as usize, &uuid_text(index));
    nvmlDeviceGetPciInfo_v3(to: *mut u8) |index| pci(to, index);
    nvmlDeviceGetMinorNumber(to: *mut c_uint) |index| put::value(to, index);
    nvmlDeviceGetArchitecture(to: *mut c_uint) |_index| put::value(to, architecture());
    nvmlDeviceGetCudaComputeCapability(major: *mut c_int, minor: *mut c_int) |_index| {
        put::value(major, settings().capability.0);
        put::value(minor, settings().capability.1);
    };
    nvmlDeviceGetMemoryInfo(to: *mut u8) |_index|
        put::fields(to, &[(0, MEMORY_BYTES), (8, MEMORY_BYTES), (16, 0)]);
    nvmlDeviceGetMemoryInfo_v2(to: *mut u8) |_index|
        put::fields(to, &[(8, MEMORY_BYTES), (16, 0), (24, MEMORY_BYTES), (32, 0)]);
    nvmlDeviceGetGspFirmwareVersion(to: *mut c_char) |_index|
        put::text(to, 64, &settings().driver);
}
