//! ioctls of /dev/nvidiactl and /dev/nvidiaN: the driver's "escapes".

use core::ffi::{c_int, c_void};

use crate::faults::{self, Effect, Site};
use crate::machine::{self, BAR0_BYTES, BAR1_BYTES, MINOR_CONTROL, VENDOR_NVIDIA};
use crate::memory::Memory;
use crate::settings::settings;
use crate::{real, rm, trace};

/// Type letter of the requests.
const TYPE_NVIDIA: u64 = 0x46;

/// Escape numbers, from `nv_escape.h` and `nv-ioctl-numbers.h` of the open kernel modules.
const RM_FREE: u32 = 0x29;
const RM_CONTROL: u32 = 0x2a;
const RM_ALLOC: u32 = 0x2b;
const VID_HEAP_CONTROL: u32 = 0x4a;
const MAP_MEMORY: u32 = 0x4e;
const UNMAP_MEMORY: u32 = 0x4f;
const CARD_INFO: u32 = 0xc8;
const CHECK_VERSION_STR: u32 = 0xd2;
const XFER_CMD: u32 = 0xd3;
const NUMA_INFO: u32 = 0xd7;
const WAIT_OPEN_COMPLETE: u32 = 0xda;

/// Answers a request on the node of this minor number.
///
/// # Safety
///
/// `argument` must be what the request demands.
pub(crate) unsafe fn answer(minor: u32, request: u64, argument: *mut c_void) -> c_int {
    if (request >> 8) & 0xff != TYPE_NVIDIA {
        return real::fail(libc::ENOTTY);
    }
    if argument.is_null() {
        return real::fail(libc::EFAULT);
    }
    let number = (request & 0xff) as u32;
    let size = ((request >> 16) & 0x3fff) as usize;
    // SAFETY: the request's size field tells how long the caller's structure is.
    let memory = unsafe { Memory::new(argument, size) };
    if number != XFER_CMD {
        // SAFETY: as above.
        return unsafe { dispatch(minor, number, memory) };
    }
    let size = (memory.u32(4) as usize).min(1 << 14);
    // SAFETY: XFER_CMD carries number, size and address of the structure proper.
    unsafe { dispatch(minor, memory.u32(0), Memory::new(memory.pointer(8), size)) }
}

/// # Safety
///
/// Pointers inside the structure must be valid.
unsafe fn dispatch(minor: u32, number: u32, memory: Memory) -> c_int {
    match number {
        // SAFETY: the caller vouches for pointers in the structure.
        RM_CONTROL => return unsafe { rm::control(memory) },
        RM_ALLOC => return rm::alloc(memory),
        _ => {}
    }
    trace::note(&format!("ioctl {} {}", node(minor), name(number)));
    let site = Site::Escape(number);
    match faults::strike(&site) {
        Effect::Errno(errno) => return real::fail(errno),
        Effect::Status(status) => {
            if let Some(offset) = status_offset(number) {
                memory.set_u32(offset, status);
            }
            return 0;
        }
        Effect::Usual => {}
    }
    let result = match number {
        CARD_INFO => card_info(memory),
        CHECK_VERSION_STR => check_version(memory, &site),
        NUMA_INFO => numa_info(memory),
        WAIT_OPEN_COMPLETE => {
            memory.set_u64(0, 0);
            0
        }
        _ => {
            if let Some(offset) = status_offset(number) {
                memory.set_u32(offset, 0);
            }
            0
        }
    };
    faults::overwrite(&site, memory);
    result
}

/// Where a structure has its `NV_STATUS`; `None` for those without one.
fn status_offset(number: u32) -> Option<usize> {
    Some(match number {
        RM_FREE => 12,
        VID_HEAP_CONTROL => 20,
        MAP_MEMORY | 0x27 => 40,
        UNMAP_MEMORY | 0x34 => 24,
        0x52 | 0xce | 0xcf => 12,
        0x54 => 48,
        0x5e => 32,
        WAIT_OPEN_COMPLETE => 4,
        _ => return None,
    })
}

/// One entry for each GPU that the driver found on the bus.
fn card_info(memory: Memory) -> c_int {
    const ENTRY: usize = 72;
    memory.set(0, &vec![0; memory.length()]);
    for (gpu, at) in machine::gpus().zip((0..).step_by(ENTRY)) {
        memory.set(at, &[1]);
        memory.set(at + 8, &[gpu.bus()]);
        memory.set_u16(at + 12, VENDOR_NVIDIA);
        memory.set_u16(at + 14, settings().chip.device_id());
        memory.set_u32(at + 16, gpu.id());
        memory.set_u16(at + 20, 120);
        memory.set_u64(at + 24, 0xd000_0000);
        memory.set_u64(at + 32, BAR0_BYTES);
        memory.set_u64(at + 40, 0x2_0000_0000_0000 + (u64::from(gpu.index) << 40));
        memory.set_u64(at + 48, BAR1_BYTES);
        memory.set_u32(at + 56, gpu.index);
    }
    0
}

/// Compares (or, in query mode, only tells) the module's version.
fn check_version(memory: Memory, site: &Site) -> c_int {
    const RELAXED: u32 = 0x31;
    const QUERY: u32 = 0x32;
    const RECOGNIZED: u32 = 1;
    let version = faults::version_at(site).unwrap_or(&settings().version);
    let asked = memory.text(8);
    let branch = |version: &str| version.split('.').next().map(str::to_owned);
    let matches = match memory.u32(0) {
        QUERY => true,
        RELAXED => branch(&asked) == branch(version),
        _ => asked == version,
    };
    memory.set_u32(4, RECOGNIZED);
    memory.set_text(8, 64, version);
    if matches { 0 } else { real::fail(libc::EINVAL) }
}

/// No memory of the GPU is a NUMA node.
fn numa_info(memory: Memory) -> c_int {
    memory.set(0, &vec![0; memory.length()]);
    memory.set_u32(0, u32::MAX);
    0
}

fn node(minor: u32) -> String {
    if minor == MINOR_CONTROL { "/dev/nvidiactl".to_owned() } else { format!("/dev/nvidia{minor}") }
}

fn name(number: u32) -> String {
    let name = match number {
        RM_FREE => "NV_ESC_RM_FREE",
        VID_HEAP_CONTROL => "NV_ESC_RM_VID_HEAP_CONTROL",
        MAP_MEMORY => "NV_ESC_RM_MAP_MEMORY",
        UNMAP_MEMORY => "NV_ESC_RM_UNMAP_MEMORY",
        CARD_INFO => "NV_ESC_CARD_INFO",
        0xc9 => "NV_ESC_REGISTER_FD",
        0xce => "NV_ESC_ALLOC_OS_EVENT",
        0xcf => "NV_ESC_FREE_OS_EVENT",
        CHECK_VERSION_STR => "NV_ESC_CHECK_VERSION_STR",
        0xd6 => "NV_ESC_SYS_PARAMS",
        NUMA_INFO => "NV_ESC_NUMA_INFO",
        WAIT_OPEN_COMPLETE => "NV_ESC_WAIT_OPEN_COMPLETE",
        _ => return format!("0x{number:02x}"),
    };
    name.to_owned()
}
