//! The least program that calls `cuInit`: load the library, call once, print the code, leave.
//!
//! It is the yardstick that the product's own overhead is measured against, so nothing is added.
//! Exit status is 0 whatever `cuInit` answers, 1 when the library or the symbol is missing.
#![expect(unsafe_code, reason = "a foreign library is loaded and called, in a test program only")]

use core::ffi::{c_int, c_uint, c_void};
use std::io::Write;

fn main() -> std::process::ExitCode {
    // SAFETY: loading runs the library's constructors, which is what this program is for.
    let library = unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW) };
    if library.is_null() {
        return std::process::ExitCode::FAILURE;
    }
    // SAFETY: a look-up by name in a library that stays loaded.
    let symbol = unsafe { libc::dlsym(library, c"cuInit".as_ptr()) };
    if symbol.is_null() {
        return std::process::ExitCode::FAILURE;
    }
    // SAFETY: cuda.h declares `CUresult cuInit(unsigned int)`.
    let code = unsafe {
        core::mem::transmute::<*mut c_void, unsafe extern "C" fn(c_uint) -> c_int>(symbol)(0)
    };
    // A closed pipe is no concern of this program.
    let _ = writeln!(std::io::stdout(), "{code}");
    std::process::ExitCode::SUCCESS
}
