//! Doing what a setting says.

use core::ffi::{CStr, c_int};
use core::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::settings::{Action, Site, settings};

/// Type letter of the driver's escapes.
const TYPE_NVIDIA: u32 = 0x46;

/// The driver calls of this process so far.
static STEPS: AtomicU32 = AtomicU32::new(0);

/// Carries out what the settings say of an ioctl on a node of the driver. `Some(errno)` when the
/// call is to fail, `None` when it goes on to the driver.
pub(crate) fn at_ioctl(request: u32) -> Option<c_int> {
    let step = STEPS.fetch_add(1, Ordering::Relaxed) + 1;
    strike(|site| match site {
        Site::Step(wanted) => wanted == step,
        Site::Request(wanted) => wanted == request,
        Site::Escape(wanted) => (request >> 8) & 0xff == TYPE_NVIDIA && request & 0xff == wanted,
        Site::CuInit => false,
    })
}

/// The same of an open.
pub(crate) fn at_open() -> Option<c_int> {
    let step = STEPS.fetch_add(1, Ordering::Relaxed) + 1;
    strike(|site| site == Site::Step(step))
}

/// The same of `cuInit`: its answer, or `None` where it is not interposed.
pub(crate) fn at_cuinit() -> Option<c_int> {
    strike(|site| site == Site::CuInit)
}

/// Whether `cuInit` is interposed at all.
pub(crate) fn has_cuinit() -> bool {
    settings().iter().any(|(site, _)| *site == Site::CuInit)
}

fn strike(is_here: impl Fn(Site) -> bool) -> Option<c_int> {
    let (_, action) = settings().iter().find(|(site, _)| is_here(*site))?;
    match action {
        Action::Answer(answer) => Some(*answer),
        Action::Hang => loop {
            std::thread::sleep(Duration::from_hours(1));
        },
        Action::Crash => {
            // SAFETY: resetting the handler and raising the signal end the process, as is wanted.
            unsafe {
                libc::signal(libc::SIGSEGV, libc::SIG_DFL);
                libc::raise(libc::SIGSEGV);
            }
            std::process::abort()
        }
    }
}

/// Whether a path is one of the driver's nodes.
///
/// # Safety
///
/// `path` must be null or a valid C string.
pub(crate) unsafe fn is_node(path: *const core::ffi::c_char) -> bool {
    // SAFETY: the caller vouches for the string.
    !path.is_null() && unsafe { CStr::from_ptr(path) }.to_bytes().starts_with(b"/dev/nvidia")
}

/// Whether a descriptor is of one of the driver's nodes.
pub(crate) fn is_of_node(descriptor: c_int) -> bool {
    let mut target = [0_u8; 16];
    let Ok(link) = std::ffi::CString::new(format!("/proc/self/fd/{descriptor}")) else {
        return false;
    };
    // SAFETY: a C string, and a buffer that is valid for its length.
    let length = unsafe { libc::readlink(link.as_ptr(), target.as_mut_ptr().cast(), target.len()) };
    length > 0 && target.starts_with(b"/dev/nvidia")
}
