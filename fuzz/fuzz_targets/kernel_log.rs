//! A kernel log in any form.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = facts::parse::kernel_log::parse(data);
});
