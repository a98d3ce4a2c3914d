//! Pasted text, all the way to a diagnosis.
#![no_main]

use facts::raw::{ItemName, RawItem, RawSet};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let item = RawItem::new(ItemName::Text("fuzz".into()), data);
    let raw: RawSet = [item].into_iter().collect();
    let _ = reason::diagnose(&facts::extract(&raw));
});
