//! What happens while the library is loaded, before any of its functions is called.

use core::ffi::{CStr, c_void};

use crate::act;

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = constructor;

extern "C" fn constructor() {
    let name = if is_nvml() { "nvml.load" } else { "load" };
    act::perform(name);
}

/// Whether this copy of the file is called as NVML is.
fn is_nvml() -> bool {
    // SAFETY: all zeroes are a valid Dl_info; it is filled for an address in this library.
    let path = unsafe {
        let mut info: libc::Dl_info = core::mem::zeroed();
        let here: *const c_void = core::ptr::from_ref(&CONSTRUCTOR).cast();
        if libc::dladdr(here, &raw mut info) == 0 || info.dli_fname.is_null() {
            return false;
        }
        CStr::from_ptr(info.dli_fname)
    };
    path.to_string_lossy().contains("libnvidia-ml")
}
