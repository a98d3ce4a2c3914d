//! The modes and states that a device is in.

use core::ffi::{c_int, c_uint};

use super::for_device;
use crate::put;
use crate::settings::settings;

/// Writes the second number of `nvmlFieldValue_t` records, 40 bytes each: id, scope, time, latency,
/// value type, return, value. Fields that were not set are not supported.
///
/// # Safety
///
/// `to` must be valid for that many records.
unsafe fn fields(count: c_int, to: *mut u8) {
    const UNSIGNED_INT: u32 = 1;
    const NOT_SUPPORTED: u32 = 3;
    for index in 0..usize::try_from(count).unwrap_or(0) {
        let at = to.wrapping_add(index * 40);
        // SAFETY: the caller vouches for the records.
        unsafe {
            let id = at.cast::<u32>().read_unaligned();
            let set = settings().fields.iter().find(|(known, _)| *known == id);
            let code = if set.is_some() { 0 } else { NOT_SUPPORTED };
            put::fields(at, &[(24, UNSIGNED_INT), (28, code)]);
            put::fields(at, &[(32, set.map_or(0, |(_, value)| *value))]);
        }
    }
}

for_device! {
    nvmlDeviceGetFieldValues(count: c_int, to: *mut u8) |_index| fields(count, to);
    nvmlDeviceGetPerformanceState(to: *mut c_uint) |_index| put::value(to, settings().pstate);
    nvmlDeviceGetCurrPcieLinkGeneration(to: *mut c_uint) |_index| put::value(to, settings().link[0]);
    nvmlDeviceGetMaxPcieLinkGeneration(to: *mut c_uint) |_index| put::value(to, settings().link[1]);
    nvmlDeviceGetCurrPcieLinkWidth(to: *mut c_uint) |_index| put::value(to, settings().link[2]);
    nvmlDeviceGetMaxPcieLinkWidth(to: *mut c_uint) |_index| put::value(to, settings().link[3]);
    nvmlDeviceGetUtilizationRates(to: *mut u8) |_index|
        put::fields(to, &[(0, settings().utilization), (4, 0)]);
    nvmlDeviceGetTotalEccErrors(_kind: c_uint, _counter: c_uint, to: *mut u64) |_index|
        put::value(to, settings().ecc);
    nvmlDeviceGetRemappedRows(
        correctable: *mut c_uint, uncorrectable: *mut c_uint,
        pending: *mut c_uint, failed: *mut c_uint
    ) |_index| {
        put::value(correctable, 0);
        put::value(uncorrectable, settings().rows[0]);
        put::value(pending, settings().rows[1]);
        put::value(failed, settings().rows[2]);
    };
    nvmlDeviceGetComputeMode(to: *mut c_int) |_index| put::value(to, settings().compute_mode);
    nvmlDeviceGetMigMode(current: *mut c_uint, pending: *mut c_uint) |_index| {
        put::value(current, settings().mig);
        put::value(pending, settings().mig);
    };
    nvmlDeviceGetPersistenceMode(to: *mut c_int) |_index| put::value(to, 1);
    nvmlDeviceGetVirtualizationMode(to: *mut c_int) |_index| put::value(to, 0);
    // nvmlDeviceAddressingMode_t: version, value.
    nvmlDeviceGetAddressingMode(to: *mut u8) |_index|
        put::fields(to, &[(4, settings().addressing)]);
    // nvmlGpuFabricInfo_t: cluster uuid, status, clique, state.
    nvmlDeviceGetGpuFabricInfo(to: *mut u8) |_index| {
        put::fields(to, &[(0, [0_u8; 16])]);
        put::fields(to, &[(16, 0_u32), (20, 0)]);
        put::fields(to, &[(24, settings().fabric)]);
    };
    // nvmlGpuFabricInfoV_t: version, cluster uuid, status, clique, state, health.
    nvmlDeviceGetGpuFabricInfoV(to: *mut u8) |_index| {
        put::fields(to, &[(4, [0_u8; 16])]);
        put::fields(to, &[(20, 0_u32), (24, 0)]);
        put::fields(to, &[(28, settings().fabric)]);
        put::fields(to, &[(32, 0_u32)]);
    };
}
