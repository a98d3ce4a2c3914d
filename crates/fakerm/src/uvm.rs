//! Requests of /dev/nvidia-uvm. They are bare numbers; the status lies in the structure.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicBool, Ordering};

use crate::faults::{self, Effect, Site};
use crate::memory::Memory;
use crate::settings::settings;
use crate::{real, trace};

/// `NV_ERR_ILLEGAL_ACTION`.
const ILLEGAL_ACTION: u32 = 0x16;
const INITIALIZE: u32 = 0x3000_0001;
const PAGEABLE_MEM_ACCESS: u32 = 0x27;
const PAGEABLE_MEM_ACCESS_ON_GPU: u32 = 0x46;
const MM_INITIALIZE: u32 = 0x4b;

/// Name, number, size of the structure and offset of its status (`uvm_ioctl.h`, same in 535–555).
/// `UVM_DEINITIALIZE` has no structure.
const REQUESTS: [(&str, u32, usize, usize); 14] = [
    ("UVM_DEINITIALIZE", 0x3000_0002, 0, 0),
    ("UVM_INITIALIZE", INITIALIZE, 16, 8),
    ("UVM_CREATE_RANGE_GROUP", 0x17, 16, 8),
    ("UVM_DESTROY_RANGE_GROUP", 0x18, 16, 8),
    ("UVM_REGISTER_GPU_VASPACE", 0x19, 32, 28),
    ("UVM_UNREGISTER_GPU_VASPACE", 0x1a, 20, 16),
    ("UVM_REGISTER_CHANNEL", 0x1b, 56, 48),
    ("UVM_ENABLE_PEER_ACCESS", 0x1d, 36, 32),
    ("UVM_REGISTER_GPU", 0x25, 40, 36),
    ("UVM_UNREGISTER_GPU", 0x26, 20, 16),
    ("UVM_PAGEABLE_MEM_ACCESS", PAGEABLE_MEM_ACCESS, 8, 4),
    ("UVM_PAGEABLE_MEM_ACCESS_ON_GPU", PAGEABLE_MEM_ACCESS_ON_GPU, 24, 20),
    ("UVM_CREATE_EXTERNAL_RANGE", 0x49, 24, 16),
    ("UVM_MM_INITIALIZE", MM_INITIALIZE, 8, 4),
];

static INITIALIZED: AtomicBool = AtomicBool::new(false);

/// The number of a request by its name.
pub(crate) fn request_named(name: &str) -> Option<u32> {
    REQUESTS.iter().find(|request| request.0 == name).map(|request| request.1)
}

/// Answers a request.
///
/// # Safety
///
/// `argument` must be what the request demands.
pub(crate) unsafe fn answer(request: u64, argument: *mut c_void) -> c_int {
    let Ok(number) = u32::try_from(request) else {
        return real::fail(libc::EINVAL);
    };
    let Some((name, _, size, status)) = REQUESTS.iter().find(|entry| entry.1 == number) else {
        trace::note(&format!("ioctl /dev/nvidia-uvm 0x{number:x}"));
        return real::fail(libc::EINVAL);
    };
    if argument.is_null() && *size > 0 {
        return real::fail(libc::EFAULT);
    }
    trace::note(&format!("ioctl /dev/nvidia-uvm {name}"));
    // SAFETY: the structure of this request has this size in the branches that are supported.
    let memory = unsafe { Memory::new(argument, *size) };
    let site = Site::Uvm(number);
    match faults::strike(&site) {
        Effect::Errno(errno) => return real::fail(errno),
        Effect::Status(refusal) => memory.set_u32(*status, refusal),
        Effect::Usual => {
            memory.set_u32(*status, usual(number, memory));
            faults::overwrite(&site, memory);
        }
    }
    0
}

/// Fills in the usual answer and gives its status.
fn usual(number: u32, memory: Memory) -> u32 {
    let pageable = &[u8::from(settings().hmm)];
    match number {
        INITIALIZE => INITIALIZED.store(true, Ordering::Relaxed),
        MM_INITIALIZE => {}
        _ if !INITIALIZED.load(Ordering::Relaxed) => return ILLEGAL_ACTION,
        PAGEABLE_MEM_ACCESS => memory.set(0, pageable),
        PAGEABLE_MEM_ACCESS_ON_GPU => memory.set(16, pageable),
        0x17 => memory.set_u64(0, 1),
        _ => {}
    }
    0
}
