//! Commands of the device (0x0080) and the subdevice (0x2080): one GPU's properties.
//!
//! Commands not known here succeed and answer nothing. Those that are answered were found by
//! trying what the libraries of the branches 535, 550 and 555 insist on.

use std::sync::Mutex;

use super::{clusters, fields};
use crate::machine::{Gpu, MEMORY_KIB, VENDOR_NVIDIA};
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

/// Answers a command.
///
/// # Safety
///
/// Pointers in the parameters must be valid.
pub(super) unsafe fn control(command: u32, object: u32, parameters: Memory) {
    let chip = settings().chip;
    match command {
        // GPU_GET_NUM_SUBDEVICES
        0x0080_0280 => parameters.set_u32(0, 1),
        // GPU_GET_CLASSLIST_V2
        0x0080_0292 => classes(parameters),
        // GPU_GET_INFO_V2 and BUS_GET_INFO_V2
        0x2080_0102 | 0x2080_1823 => fill(parameters, |_| 0),
        // GPU_GET_NAME_STRING
        0x2080_0110 => parameters.set_text(4, 64, chip.name()),
        // GPU_GET_SHORT_NAME_STRING
        0x2080_0111 => parameters.set_text(0, 64, chip.short_name()),
        // GPU_GET_GID_INFO
        0x2080_014a => gid(parameters, owner(object)),
        // GR_GET_INFO
        // SAFETY: the caller vouches for the list behind the pointer.
        0x2080_1201 => unsafe { graphics_info(parameters) },
        // GR_GET_GLOBAL_SM_ORDER
        0x2080_121b => clusters::order(parameters),
        // GR_GET_GPC_MASK
        0x2080_122a => parameters.set_u32(16, clusters::mask()),
        // FB_GET_INFO_V2
        0x2080_1303 => fill(parameters, memory_value),
        // MC_GET_ARCH_INFO
        0x2080_1701 => {
            parameters.set_u32(0, chip.architecture());
            parameters.set_u32(4, 0);
            parameters.set_u32(8, 0xa1);
        }
        // BUS_GET_PCI_INFO
        0x2080_1801 => {
            parameters.set_u32(0, u32::from(chip.device_id()) << 16 | u32::from(VENDOR_NVIDIA));
        }
        // GSP_GET_FEATURES
        0x2080_3601 => {
            parameters.set(0, &[1, 0, 0, 0, 1, 1]);
            parameters.set_text(6, 64, &settings().version);
        }
        _ => {}
    }
}

/// Answers a list that lies in the parameters themselves, after its count.
fn fill(parameters: Memory, value_of: impl Fn(u32) -> u32) {
    fields::fill(parameters, 4, parameters.u32(0) as usize, value_of);
}

fn classes(parameters: Memory) {
    let classes = settings().chip.classes();
    let room = (parameters.length() / 4).saturating_sub(1).min(classes.len());
    parameters.set_u32(0, u32::try_from(room).unwrap_or(0));
    parameters.set_list(4, room, classes, 0);
}

/// The UUID as text or as bytes, as the flags ask.
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

/// `NV2080_CTRL_FB_INFO_INDEX_*`; sizes are in KiB.
fn memory_value(index: u32) -> u32 {
    match index {
        // RAM_SIZE, TOTAL_RAM_SIZE, HEAP_SIZE, HEAP_FREE, USABLE_RAM_SIZE
        0x07..=0x09 | 0x16 | 0x20 => MEMORY_KIB,
        // PARTITION_COUNT
        0x04 => 40,
        // BAR1_SIZE, MAPPABLE_HEAP_SIZE
        0x05 | 0x0a => 128 << 20,
        // BUS_WIDTH in bits
        0x0b => 5120,
        // L2CACHE_SIZE in bytes
        0x1b => 40 << 20,
        _ => 0,
    }
}

/// The properties of the graphics engine; the list lies behind a pointer.
///
/// # Safety
///
/// The pointer must be valid for the count that the parameters tell.
unsafe fn graphics_info(parameters: Memory) {
    let count = (parameters.u32(0) as usize).min(fields::MOST);
    // SAFETY: the caller vouches for the list.
    let list = unsafe { Memory::new(parameters.pointer(8), count * 8) };
    fields::fill(list, 0, count, graphics_value);
}

/// `NV2080_CTRL_GR_INFO_INDEX_*`.
fn graphics_value(index: u32) -> u32 {
    let capability = settings().chip.capability();
    match index {
        // SM_VERSION
        0x0c => (capability / 10) << 8 | (capability % 10),
        // MAX_WARPS_PER_SM
        0x0d => 64,
        // MAX_THREADS_PER_WARP
        0x0e => 32,
        _ => 0,
    }
}
