//! Commands of the client (class 0x0000): the system and its list of GPUs.

use crate::faults::{self, Site};
use crate::machine::{self, Gpu};
use crate::memory::Memory;
use crate::settings::settings;

/// `NV0000_CTRL_GPU_INVALID_ID`, which ends lists of GPUs.
const NO_GPU: u32 = u32::MAX;
/// `NV_ERR_OBJECT_NOT_FOUND`.
const OBJECT_NOT_FOUND: u32 = 0x57;
/// Entries in lists of GPUs.
const LIST: usize = 32;
/// `NV0000_CTRL_SYSTEM_GET_FABRIC_STATUS`: no fabric to wait for.
const FABRIC_SKIP: u32 = 1;
/// `NV0000_CTRL_CMD_CLIENT_GET_ADDR_SPACE_TYPE_REGMEM`: the doorbell is a register.
const REGISTER_SPACE: u32 = 3;

/// Answers a command and gives its status. Commands not known here succeed and answer nothing.
///
/// # Safety
///
/// Pointers in the parameters must be valid.
pub(super) unsafe fn control(command: u32, parameters: Memory, site: &Site) -> u32 {
    match command {
        // SAFETY: the caller vouches for the string buffers.
        0x101 => unsafe { build_version(parameters, site) },
        0x136 => parameters.set_u32(0, FABRIC_SKIP),
        0x201 => parameters.set_list(0, LIST, &ids(), NO_GPU),
        0x202 => return id_info(parameters),
        0x205 => return id_info_v2(parameters),
        0x214 => parameters.set_list(0, parameters.length() / 4, &ids(), NO_GPU),
        0x215 => parameters.set_u32(LIST * 4, NO_GPU),
        0x21b => return pci_info(parameters),
        0x279 => parameters.set_u64(4, 0),
        0xd01 => parameters.set_u32(8, REGISTER_SPACE),
        _ => {}
    }
    0
}

fn ids() -> Vec<u32> {
    machine::gpus().map(Gpu::id).collect()
}

/// `NV0000_CTRL_CMD_SYSTEM_GET_BUILD_VERSION`: three strings by pointer.
///
/// # Safety
///
/// The three pointers must be valid for the size that the parameters tell.
unsafe fn build_version(parameters: Memory, site: &Site) {
    let size = (parameters.u32(0) as usize).min(4096);
    let version = faults::version_at(site).unwrap_or(&settings().version);
    for (offset, text) in [(8, version), (16, version), (24, "fakerm")] {
        // SAFETY: the caller vouches for the buffers.
        let buffer = unsafe { Memory::new(parameters.pointer(offset), size) };
        buffer.set_text(0, size, text);
    }
    parameters.set_u32(0, 64.min(parameters.u32(0)));
}

fn id_info(parameters: Memory) -> u32 {
    let Some(gpu) = machine::gpu_with_id(parameters.u32(0)) else {
        return OBJECT_NOT_FOUND;
    };
    for (offset, value) in [(4, 0), (8, gpu.index), (12, 0), (24, 0), (28, gpu.index)] {
        parameters.set_u32(offset, value);
    }
    parameters.set_u32(32, gpu.index);
    parameters.set_u32(36, u32::MAX);
    0
}

fn id_info_v2(parameters: Memory) -> u32 {
    let Some(gpu) = machine::gpu_with_id(parameters.u32(0)) else {
        return OBJECT_NOT_FOUND;
    };
    for (offset, value) in [(4, 0), (8, gpu.index), (12, 0), (16, 0), (20, gpu.index)] {
        parameters.set_u32(offset, value);
    }
    parameters.set_u32(24, gpu.index);
    parameters.set_u32(28, u32::MAX);
    0
}

fn pci_info(parameters: Memory) -> u32 {
    let Some(gpu) = machine::gpu_with_id(parameters.u32(0)) else {
        return OBJECT_NOT_FOUND;
    };
    parameters.set_u32(4, 0);
    parameters.set_u16(8, u16::from(gpu.bus()));
    parameters.set_u16(10, 0);
    0
}
