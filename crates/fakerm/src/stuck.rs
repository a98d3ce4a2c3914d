//! The ways in which a call does not come back, or comes back late.

use std::time::Duration;

/// Sleeps for ever: state S, in user space's own choosing.
pub(crate) fn sleep_forever() -> ! {
    loop {
        std::thread::sleep(Duration::from_hours(1));
    }
}

/// Burns the CPU for ever.
pub(crate) fn spin_forever() -> ! {
    loop {
        core::hint::spin_loop();
    }
}

/// Writes to `path`. On a frozen file system the kernel holds the caller in state D meanwhile.
pub(crate) fn write_to(path: &str) {
    let Ok(path) = std::ffi::CString::new(path) else {
        return;
    };
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_CLOEXEC;
    // SAFETY: the path is a C string.
    let descriptor = unsafe { crate::real::openat(libc::AT_FDCWD, path.as_ptr(), flags, 0o600) };
    if descriptor >= 0 {
        crate::real::write(descriptor, b"x");
        crate::real::close(descriptor);
    }
}

/// Dies of SIGSEGV, whatever handlers are installed.
pub(crate) fn crash() -> ! {
    // SAFETY: resetting the handler and raising the signal end the process; that is the aim.
    unsafe {
        libc::signal(libc::SIGSEGV, libc::SIG_DFL);
        libc::raise(libc::SIGSEGV);
    }
    std::process::abort()
}
