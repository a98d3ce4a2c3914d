//! The least program that initializes CUDA and counts its devices.
//!
//! Prints `init CODE` and `count CODE N`, each as far as it got. With `--fork` it initializes, forks,
//! and the child does it all again and prints. Exit status is 1 when the library or a symbol is
//! missing.
#![expect(unsafe_code, reason = "a foreign library is loaded and called, in a test program only")]

use core::ffi::{CStr, c_int, c_uint, c_void};
use std::io::Write;
use std::process::ExitCode;

type Init = unsafe extern "C" fn(c_uint) -> c_int;
type Count = unsafe extern "C" fn(*mut c_int) -> c_int;

fn main() -> ExitCode {
    let forks = std::env::args().any(|argument| argument == "--fork");
    // SAFETY: loading runs the library's constructors, which is what this program is for.
    let library = unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW) };
    if library.is_null() {
        return ExitCode::FAILURE;
    }
    if forks && talk(library).is_some() {
        // SAFETY: the child goes on in this one thread; what CUDA makes of it is the question.
        let child = unsafe { libc::fork() };
        if child > 0 {
            // SAFETY: waits for the child just made.
            unsafe { libc::waitpid(child, core::ptr::null_mut(), 0) };
            return ExitCode::SUCCESS;
        }
    }
    match talk(library) {
        Some(lines) => {
            // A closed pipe is no concern of this program.
            let _ = std::io::stdout().write_all(lines.as_bytes());
            ExitCode::SUCCESS
        }
        None => ExitCode::FAILURE,
    }
}

/// The lines to print; a missing symbol gives `None`.
fn talk(library: *mut c_void) -> Option<String> {
    // SAFETY: cuda.h declares the two functions with these types, and the number that is filled
    // outlives the call.
    unsafe {
        let init: Init = symbol(library, c"cuInit")?;
        let count: Count = symbol(library, c"cuDeviceGetCount")?;
        let code = init(0);
        let mut devices = 0;
        let counted = count(&raw mut devices);
        Some(format!("init {code}\ncount {counted} {devices}\n"))
    }
}

/// # Safety
///
/// The symbol must have type `F`, a function pointer.
unsafe fn symbol<F: Copy>(library: *mut c_void, name: &CStr) -> Option<F> {
    // SAFETY: a look-up by name in a library that stays loaded.
    let address = unsafe { libc::dlsym(library, name.as_ptr()) };
    // SAFETY: the caller vouches for the type, which has the size of a pointer.
    (!address.is_null()).then(|| unsafe { core::mem::transmute_copy::<*mut c_void, F>(&address) })
}
