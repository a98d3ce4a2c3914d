//! A command's output: the first line is the command line, the rest its output.
#![no_main]

use facts::raw::{ItemName, RawItem, RawSet};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let split = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    let line = String::from_utf8_lossy(&data[..split]).into_owned();
    let item = RawItem::new(ItemName::Command(line), &data[split..]);
    let raw: RawSet = [item].into_iter().collect();
    let _ = reason::diagnose(&facts::extract(&raw));
});
