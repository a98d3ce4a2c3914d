//! `cuInit`, and `dlsym`, through which most programs find it.

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};

use crate::act;

type Dlsym = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;
type CuInit = unsafe extern "C" fn(c_uint) -> c_int;

/// The versions under which glibc has `dlsym`: since 2.34, before on x86-64, before on aarch64.
const VERSIONS: [&CStr; 3] = [c"GLIBC_2.34", c"GLIBC_2.2.5", c"GLIBC_2.17"];

/// glibc's own `dlsym`. It cannot be asked for by `dlsym`, which is ours.
fn real_dlsym() -> Option<Dlsym> {
    VERSIONS.iter().find_map(|version| {
        // SAFETY: a look-up by name in libraries that stay loaded.
        let address = unsafe { libc::dlvsym(libc::RTLD_NEXT, c"dlsym".as_ptr(), version.as_ptr()) };
        if address.is_null() {
            return None;
        }
        // SAFETY: this is what glibc declares it as.
        Some(unsafe { core::mem::transmute::<*mut c_void, Dlsym>(address) })
    })
}

/// # Safety
///
/// As the C library's.
#[unsafe(no_mangle)]
unsafe extern "C" fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    let Some(real) = real_dlsym() else { return core::ptr::null_mut() };
    // SAFETY: the caller vouches for handle and name.
    unsafe {
        if !name.is_null() && CStr::from_ptr(name) == c"cuInit" && act::has_cuinit() {
            return cuInit as CuInit as *mut c_void;
        }
        real(handle, name)
    }
}

/// Answers as told. A program that has this symbol bound by the linker comes here even when nothing
/// is set; all that the lab runs look it up.
///
/// # Safety
///
/// As the driver's.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuInit(_flags: c_uint) -> c_int {
    // CUDA_ERROR_UNKNOWN: the settings say nothing, so that nobody should have come here.
    act::at_cuinit().unwrap_or(999)
}
