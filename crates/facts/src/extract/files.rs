//! Files, folders and links of the observed machine become facts.
//!
//! [`apply`] hands one item to the reader of its path; [`conclude`] is called once after the last
//! item, for what can only be said when all of them are known (which configuration is the running
//! kernel's, what kind of container this is, what is on the PCI bus).
//!
//! A folder is an item too: its bytes are the names of its entries, one a line. So is a symbolic
//! link: its bytes are the target's path.

mod build_log;
mod cdi;
mod container;
mod driver;
mod environment;
mod fabric;
mod firmware;
mod glob;
mod grep;
mod host;
mod kernel_config;
mod module_files;
mod modules;
mod nodes;
pub mod pci;
mod policy;
mod proc_gone;
mod reading;
mod route;
mod task;
mod toolkit;
mod wsl;

pub use environment::{enter_environ, enter_ulimit_all, enter_ulimit_one};
pub use glob::matches as path_matches;
pub use grep::Filter;
pub use host::enter_pveversion;
pub use modules::enter_lsmod;
pub use nodes::enter_ls_long;
pub use route::Routing;

use reading::{Learn, Reading};
use route::Reader;

use crate::model::Facts;
use crate::raw::{RawItem, RawSet};

/// Enters one item into the facts, by its path on the observed machine. The answer tells whether
/// anything here reads that path.
pub fn apply(item: &RawItem, path: &str, facts: &mut Facts) -> Routing {
    // A folder is often typed with a slash at its end.
    let path = path.trim_end_matches('/');
    let Some(reader) = route::reader(path) else {
        return Routing::Unrouted;
    };
    let reading = Reading::new(item, path);
    if reading.names_the_driver() {
        facts.mentions_gpu = true;
    }
    match reader {
        Reader::Now(read) => {
            read(&reading, facts);
            Routing::Entered
        }
        Reader::AtTheEnd => Routing::AtTheEnd,
        Reader::Elsewhere => Routing::Elsewhere,
    }
}

/// Where an item at this path would go; the test of [`crate::wanted`] asks.
pub fn routing(path: &str) -> Routing {
    match route::reader(path) {
        Some(Reader::Now(_)) => Routing::Entered,
        Some(Reader::AtTheEnd) => Routing::AtTheEnd,
        Some(Reader::Elsewhere) => Routing::Elsewhere,
        None => Routing::Unrouted,
    }
}

/// Enters what only all items together tell. Call it once, after [`apply`] has seen every item.
pub fn conclude(raw: &RawSet, facts: &mut Facts) {
    let devices = pci::assemble(raw);
    if devices.value().is_some_and(|devices| !devices.is_empty()) {
        facts.mentions_gpu = true;
    }
    facts.pci.devices.learn(devices);
    host::conclude(raw, facts);
    container::conclude(raw, facts);
    kernel_config::conclude(raw, facts);
    module_files::conclude(raw, facts);
    firmware::conclude(raw, facts);
    proc_gone::conclude(raw, facts);
}
