//! Devices and their properties.

use core::ffi::{c_char, c_int};

use super::{SUCCESS, begin, begin_for};
use crate::put;
use crate::settings::settings;

/// Memory of each device: 141 GB as on an H200.
pub(crate) const MEMORY_BYTES: u64 = 143_771 << 20;

/// The bytes of a device's UUID; NVML tells the same.
pub(crate) fn uuid(index: u32) -> [u8; 16] {
    let mut uuid = *b"\xfa\x4e\x00\x00\x00\x00\x40\x00\x80\x00\x00\x00\x00\x00\x00\x00";
    let [.., last] = index.to_be_bytes();
    uuid[15] = last;
    uuid
}

/// The same as the driver's tools print it.
pub(crate) fn uuid_text(index: u32) -> String {
    let hex = format!("{:032x}", u128::from_be_bytes(uuid(index)));
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32];
    parts
        .into_iter()
        .fold("GPU".to_owned(), |text, part| text + "-" + hex.get(part).unwrap_or_default())
}

/// PCI bus of a device; domain and slot are 0.
pub(crate) fn bus(index: u32) -> u32 {
    0x18 + index * 0x10
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetCount(count: *mut c_int) -> c_int {
    if let Some(code) = begin("cuDeviceGetCount", "") {
        return code;
    }
    // SAFETY: cuda.h demands a valid pointer.
    unsafe { put::value(count, settings().count.cast_signed()) };
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGet(device: *mut c_int, ordinal: c_int) -> c_int {
    if let Some(code) = begin_for("cuDeviceGet", ordinal) {
        return code;
    }
    // SAFETY: cuda.h demands a valid pointer.
    unsafe { put::value(device, ordinal) };
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetName(name: *mut c_char, size: c_int, device: c_int) -> c_int {
    if let Some(code) = begin_for("cuDeviceGetName", device) {
        return code;
    }
    // SAFETY: cuda.h demands a buffer of this size.
    unsafe { put::text(name, usize::try_from(size).unwrap_or(0), &settings().name) };
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetUuid(to: *mut [u8; 16], device: c_int) -> c_int {
    if let Some(code) = begin_for("cuDeviceGetUuid", device) {
        return code;
    }
    // SAFETY: cuda.h demands a valid pointer.
    unsafe { put::value(to, uuid(device.cast_unsigned())) };
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetUuid_v2(to: *mut [u8; 16], device: c_int) -> c_int {
    if let Some(code) = begin_for("cuDeviceGetUuid_v2", device) {
        return code;
    }
    // SAFETY: cuda.h demands a valid pointer.
    unsafe { put::value(to, uuid(device.cast_unsigned())) };
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetPCIBusId(to: *mut c_char, size: c_int, device: c_int) -> c_int {
    if let Some(code) = begin_for("cuDeviceGetPCIBusId", device) {
        return code;
    }
    let address = format!("0000:{:02X}:00.0", bus(device.cast_unsigned()));
    // SAFETY: cuda.h demands a buffer of this size.
    unsafe { put::text(to, usize::try_from(size).unwrap_or(0), &address) };
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceTotalMem_v2(bytes: *mut u64, device: c_int) -> c_int {
    if let Some(code) = begin_for("cuDeviceTotalMem_v2", device) {
        return code;
    }
    // SAFETY: cuda.h demands a valid pointer.
    unsafe { put::value(bytes, MEMORY_BYTES) };
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetAttribute(
    value: *mut c_int,
    attribute: c_int,
    device: c_int,
) -> c_int {
    if let Some(code) = begin_for("cuDeviceGetAttribute", device) {
        return code;
    }
    let settings = settings();
    let answer = match attribute {
        // MAX_THREADS_PER_BLOCK, WARP_SIZE, MULTIPROCESSOR_COUNT
        1 => 1024,
        10 => 32,
        16 => 132,
        // COMPUTE_MODE
        20 => settings.compute_mode,
        // PCI_BUS_ID
        33 => bus(device.cast_unsigned()).cast_signed(),
        // COMPUTE_CAPABILITY_MAJOR, COMPUTE_CAPABILITY_MINOR
        75 => settings.capability.0,
        76 => settings.capability.1,
        // PAGEABLE_MEMORY_ACCESS: so with HMM or ATS.
        88 => c_int::from(settings.addressing != 0),
        _ => 0,
    };
    // SAFETY: cuda.h demands a valid pointer.
    unsafe { put::value(value, answer) };
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceCanAccessPeer(can: *mut c_int, device: c_int, peer: c_int) -> c_int {
    let code = begin_for("cuDeviceCanAccessPeer", device)
        .or_else(|| begin_for("cuDeviceCanAccessPeer", peer));
    if let Some(code) = code {
        return code;
    }
    let answer = if device == peer { 0 } else { settings().peers };
    // SAFETY: cuda.h demands a valid pointer.
    unsafe { put::value(can, answer) };
    SUCCESS
}
