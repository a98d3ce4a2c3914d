//! What happens while the library is loaded, before any of its functions is called.

use crate::{act, condition};

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = constructor;

extern "C" fn constructor() {
    let name = if is_nvml() { "nvml.load" } else { "load" };
    act::perform(name);
}

/// Whether this copy of the file is called as NVML is.
fn is_nvml() -> bool {
    condition::own_path().contains("libnvidia-ml")
}
