//! RM_ALLOC and RM_CONTROL: the resource manager's two verbs.

mod clusters;
mod device;
mod fields;
mod system;

use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, Ordering};

use crate::faults::{self, Effect, Site};
use crate::memory::Memory;
use crate::{real, trace};

/// Creates an object. Every class can be had; only the handle and the status are answered.
pub(crate) fn alloc(memory: Memory) -> c_int {
    const HANDLE: usize = 8;
    // NVOS21 ends in its status; NVOS64 has it before eight bytes of padding.
    let status = if memory.length() == 32 { 28 } else { 40 };
    let class = memory.u32(12);
    trace::note(&format!("RM_ALLOC class 0x{class:04x}"));
    match faults::strike(&Site::Alloc(class)) {
        Effect::Errno(errno) => return real::fail(errno),
        Effect::Status(refusal) => memory.set_u32(status, refusal),
        Effect::Usual => {
            if memory.u32(HANDLE) == 0 {
                memory.set_u32(HANDLE, new_handle());
            }
            device::remember(memory, class);
            memory.set_u32(status, 0);
        }
    }
    0
}

/// Handles are only ever compared, so a counter will do.
fn new_handle() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0xc1d0_0001);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Carries out a control command.
///
/// # Safety
///
/// The parameter pointer of the structure, and pointers in the parameters, must be valid.
pub(crate) unsafe fn control(memory: Memory) -> c_int {
    const STATUS: usize = 28;
    let command = memory.u32(8);
    let size = memory.u32(24) as usize;
    trace::note(&format!("RM_CONTROL 0x{command:08x}"));
    // SAFETY: NVOS54 tells address and size of the parameters.
    let parameters = unsafe { Memory::new(memory.pointer(16), size) };
    let site = Site::Control(command);
    match faults::strike(&site) {
        Effect::Errno(errno) => return real::fail(errno),
        Effect::Status(refusal) => memory.set_u32(STATUS, refusal),
        Effect::Usual => {
            let object = memory.u32(4);
            let status = if command >> 16 == 0 {
                // SAFETY: the caller vouches for pointers in the parameters.
                unsafe { system::control(command, parameters, &site) }
            } else {
                // SAFETY: as above.
                unsafe { device::control(command, object, parameters) };
                0
            };
            memory.set_u32(STATUS, status);
            faults::overwrite(&site, parameters);
        }
    }
    0
}
