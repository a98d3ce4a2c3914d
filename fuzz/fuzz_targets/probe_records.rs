//! Records of a probe; the first byte chooses which.
#![no_main]

use facts::raw::{ItemName, RawItem, RawSet};
use libfuzzer_sys::fuzz_target;

const PROBES: [&str; 5] = ["cuinit", "nvml", "nodes", "module", "sandbox"];

fuzz_target!(|data: &[u8]| {
    let Some((first, rest)) = data.split_first() else { return };
    let name = PROBES[usize::from(*first) % PROBES.len()].to_owned();
    let item = RawItem::new(ItemName::Probe { name, trial: 1 }, rest);
    let raw: RawSet = [item].into_iter().collect();
    let _ = reason::diagnose(&facts::extract(&raw));
});
