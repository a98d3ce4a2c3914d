//! The modes and states that a device is in.

use core::ffi::{c_int, c_uint};

use super::for_device;
use crate::put;
use crate::settings::settings;

for_device! {
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
