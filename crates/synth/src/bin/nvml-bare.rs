//! The least program that calls NVML: initialize, count, name the first device.
//!
//! Prints `init CODE`, `count CODE N`, `handle CODE`, `name CODE TEXT`, each as far as it got. Exit
//! status is 1 when the library or a symbol is missing.
#![expect(unsafe_code, reason = "a foreign library is loaded and called, in a test program only")]

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::io::Write;
use std::process::ExitCode;

type Init = unsafe extern "C" fn() -> c_int;
type Count = unsafe extern "C" fn(*mut c_uint) -> c_int;
type Handle = unsafe extern "C" fn(c_uint, *mut *mut c_void) -> c_int;
type Name = unsafe extern "C" fn(*mut c_void, *mut c_char, c_uint) -> c_int;

fn main() -> ExitCode {
    // SAFETY: loading runs the library's constructors, which is what this program is for.
    let library = unsafe { libc::dlopen(c"libnvidia-ml.so.1".as_ptr(), libc::RTLD_NOW) };
    if library.is_null() {
        return ExitCode::FAILURE;
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
    // SAFETY: nvml.h declares the four functions with these types, and every buffer that they
    // fill outlives the call.
    unsafe {
        let init: Init = symbol(library, c"nvmlInit_v2")?;
        let count: Count = symbol(library, c"nvmlDeviceGetCount_v2")?;
        let handle: Handle = symbol(library, c"nvmlDeviceGetHandleByIndex_v2")?;
        let name: Name = symbol(library, c"nvmlDeviceGetName")?;
        let code = init();
        let mut lines = vec![format!("init {code}\n")];
        if code != 0 {
            return Some(lines.concat());
        }
        let mut devices = 0;
        let code = count(&raw mut devices);
        lines.push(format!("count {code} {devices}\n"));
        let mut device = core::ptr::null_mut();
        let code = handle(0, &raw mut device);
        lines.push(format!("handle {code}\n"));
        if code != 0 {
            return Some(lines.concat());
        }
        let mut text: [c_char; 96] = [0; 96];
        let code = name(device, text.as_mut_ptr(), 96);
        let text = CStr::from_ptr(text.as_ptr()).to_string_lossy().into_owned();
        lines.push(format!("name {code} {text}\n"));
        Some(lines.concat())
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
