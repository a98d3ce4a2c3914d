//! A file of the machine: the first line is its path, the rest its bytes.
#![no_main]

use facts::raw::{ItemName, RawItem, RawSet};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let split = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    let path = format!("/{}", String::from_utf8_lossy(&data[..split]));
    let item = RawItem::new(ItemName::File(path), &data[split..]);
    let raw: RawSet = [item].into_iter().collect();
    let _ = reason::diagnose(&facts::extract(&raw));
});
