//! The record of driver calls, and the count by which a step is chosen to hang.

use core::sync::atomic::{AtomicU32, Ordering};

use crate::settings::settings;
use crate::{real, stuck};

static STEP: AtomicU32 = AtomicU32::new(0);

/// Notes one driver call before it is answered: counts it, appends `PID STEP CALL` to the trace
/// file if one is asked for, and never returns if this is the step that is to hang.
pub(crate) fn note(call: &str) {
    let step = STEP.fetch_add(1, Ordering::Relaxed) + 1;
    if let Some(path) = &settings().trace {
        append(path, &format!("{} {step} {call}\n", std::process::id()));
    }
    if settings().hang_at_step == Some(step) {
        stuck::sleep_forever();
    }
}

fn append(path: &std::ffi::CStr, line: &str) {
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND | libc::O_CLOEXEC;
    // SAFETY: the path is a C string.
    let descriptor = unsafe { real::openat(libc::AT_FDCWD, path.as_ptr(), flags, 0o600) };
    if descriptor >= 0 {
        real::write(descriptor, line.as_bytes());
        real::close(descriptor);
    }
}
