//! Commands of the device (0x0080) and the subdevice (0x2080): one GPU's properties.

use std::sync::Mutex;

use super::fields;
use crate::machine::{Gpu, MEMORY_KIB};
use crate::memory::Memory;
use crate::settings::settings;

/// RM class of a device; its allocation tells which GPU its handle means.
const DEVICE: u32 = 0x0080;

/// Handles of devices and what lies below them, with the index of their GPU.
static OWNERS: Mutex<Vec<(u32, u32)>> = Mutex::new(Vec::new());

/// Notes which GPU a new object belongs to.
pub(super) fn remember(memory: Memory, class: u32) {
    let (parent, handle) = (memory.u32(4), memory.u32(8));
    let index = if class == DEVICE {
        // SAFETY: NV0080_ALLOC_PARAMETERS begins with the device's instance number.
        let parameters = unsafe { Memory::new(memory.pointer(16), 4) };
        parameters.u32(0)
    } else {
        owner(parent).index
    };
    if let Ok(mut owners) = OWNERS.lock() {
        owners.push((handle, index));
    }
}

fn owner(handle: u32) -> Gpu {
    let index = OWNERS.lock().ok().and_then(|owners| {
        owners.iter().rev().find(|owner| owner.0 == handle).map(|owner| owner.1)
    });
    Gpu { index: index.unwrap_or(0) }
}

/// Answers a command and gives its status. Commands not known here succeed and answer nothing.
///
/// # Safety
///
/// Pointers in the parameters must be valid.
pub(super) unsafe fn control(command: u32, object: u32, parameters: Memory) -> u32 {
    let gpu = owner(object);
    let chip = settings().chip;
    match command {
        0x0080_0280 => parameters.set_u32(0, 1),
        0x0080_0292 => classes(parameters),
        0x2080_0102 => {
            fields::fill(parameters, 4, parameters.u32(0) as usize, |_| 0);
        }
        0x2080_0110 => parameters.set_text(4, 64, chip.name()),
        0x2080_0111 => parameters.set_text(0, 64, chip.short_name()),
        0x2080_014a => gid(parameters, gpu),
        // SAFETY: the caller vouches for the list.
        0x2080_1201 => unsafe { engine_info(parameters) },
        0x2080_1303 => {
            fields::fill(parameters, 4, parameters.u32(0) as usize, memory_info);
        }
        0x2080_1701 => {
            parameters.set_u32(0, chip.architecture());
            parameters.set_u32(4, 0);
            parameters.set_u32(8, 0xa1);
        }
        0x2080_1823 => {
            fields::fill(parameters, 4, parameters.u32(0) as usize, |_| 0);
        }
        _ => {}
    }
    0
}

fn classes(parameters: Memory) {
    let classes = settings().chip.classes();
    let room = (parameters.length() / 4).saturating_sub(1).min(classes.len());
    parameters.set_u32(0, u32::try_from(room).unwrap_or(0));
    parameters.set_list(4, room, classes, 0);
}

/// `NV2080_CTRL_CMD_GPU_GET_GID_INFO`: the UUID as text or as bytes.
fn gid(parameters: Memory, gpu: Gpu) {
    const BINARY: u32 = 2;
    if parameters.u32(4) & 3 == BINARY {
        parameters.set_u32(8, 16);
        parameters.set(12, &gpu.uuid_bytes());
    } else {
        let text = gpu.uuid();
        parameters.set_u32(8, u32::try_from(text.len() + 1).unwrap_or(0));
        parameters.set_text(12, 256, &text);
    }
}

/// `NV2080_CTRL_FB_INFO_INDEX_*`: sizes are in KiB.
fn memory_info(index: u32) -> u32 {
    match index {
        0x07..=0x09 | 0x15 | 0x20 => MEMORY_KIB,
        0x04 => 40,
        0x05 => 128 * 1024 * 1024,
        0x0a => 128 * 1024 * 1024,
        0x0b => 5120,
        0x1b => 40 * 1024 * 1024,
        _ => 0,
    }
}

/// `NV2080_CTRL_CMD_GR_GET_INFO`: the list lies behind a pointer.
///
/// # Safety
///
/// The pointer must be valid for the count that the parameters tell.
unsafe fn engine_info(parameters: Memory) {
    let count = (parameters.u32(0) as usize).min(1024);
    // SAFETY: the caller vouches for the list.
    let list = unsafe { Memory::new(parameters.pointer(8), count * 8) };
    fields::fill(list, 0, count, graphics_info);
}

/// `NV2080_CTRL_GR_INFO_INDEX_*`.
fn graphics_info(index: u32) -> u32 {
    let capability = settings().chip.capability();
    match index {
        0x0c => (capability / 10) << 8 | (capability % 10),
        0x0d => 64,
        0x0e => 32,
        _ => 0,
    }
}
