//! `ioctl`: where the driver's work is asked for.

use core::ffi::{c_int, c_void};

use super::target;
use crate::machine::{MAJOR_NVIDIA, MAJOR_UVM};
use crate::settings::settings;
use crate::tree::Entry;
use crate::{escape, real, uvm};

/// Type letter of the escapes.
const TYPE_NVIDIA: u64 = 0x46;

/// Whether the request can be one of the driver's, so that asking for the descriptor's name is
/// worth it: an escape, or one of UVM's bare numbers.
fn may_be_ours(request: u64) -> bool {
    (request >> 8) & 0xff == TYPE_NVIDIA || request < 0x1000 || request >> 8 == 0x30_0000
}

/// # Safety
///
/// As the C library's.
#[unsafe(no_mangle)]
unsafe extern "C" fn ioctl(descriptor: c_int, request: u64, argument: *mut c_void) -> c_int {
    if may_be_ours(request)
        && let Some((_, Entry::Device { major, minor, .. })) = target::behind(descriptor)
    {
        let answer = match *major {
            // SAFETY: the caller keeps the driver's contract for its requests.
            MAJOR_NVIDIA => unsafe { escape::answer(*minor, request, argument) },
            // SAFETY: as above.
            MAJOR_UVM => unsafe { uvm::answer(request, argument) },
            _ => real::fail(libc::ENOTTY),
        };
        if settings().pass {
            let errno = real::errno();
            // SAFETY: the kernel refuses the request on a memory file and reads no argument.
            let refused = unsafe { real::ioctl(descriptor, request, argument) };
            // Any other answer than that of a memory file is from a tracer, and stands.
            if refused < 0 && real::errno() != libc::ENOTTY {
                return -1;
            }
            real::fail(errno);
        }
        return answer;
    }
    // SAFETY: passed on as it came.
    unsafe { real::ioctl(descriptor, request, argument) }
}
