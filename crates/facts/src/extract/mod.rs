//! Raw items become facts: each item goes to the parser of its format, and what the parser
//! understood is entered under its layer with its origin. A pure function.

pub mod files;

pub mod binary;
pub mod collect_env;
mod complaints;
pub mod log;
pub mod smi;

mod cdi;
mod commands;
mod join;
mod libraries;
mod loose;
mod packages;
mod places;
mod probes;
mod sides;
mod strace;
pub(crate) mod tasks;
mod text;
mod told;
mod torch;

use crate::model::Facts;
use crate::raw::{ItemName, RawItem, RawSet};

/// Reads everything that is known out of a set of raw items.
pub fn extract(raw: &RawSet) -> Facts {
    let mut facts = Facts { live: raw.live, ..Facts::default() };
    // Files first: probe records and outputs are read in the light of what the machine is.
    let is_file = |item: &&RawItem| matches!(item.name, ItemName::File(_));
    for item in raw.items().filter(is_file) {
        self::item(item, &mut facts);
    }
    for item in raw.items().filter(|item| !is_file(item)) {
        self::item(item, &mut facts);
    }
    // Files that were cut out of texts count with those that were read.
    let cut = std::mem::take(&mut facts.cut_files);
    let whole: RawSet = raw.items().cloned().chain(cut).collect();
    files::conclude(&whole, &mut facts);
    binary::conclude(&mut facts);
    tasks::conclude(&mut facts);
    join::apply(&mut facts);
    facts
}

/// Reads one item.
pub(crate) fn item(item: &RawItem, facts: &mut Facts) {
    match &item.name {
        ItemName::File(path) => {
            if item.cut_from.is_some() {
                facts.cut_files.push(item.clone());
            }
            if log::is_kernel_log(&item.name) {
                log::apply(item, facts);
            } else if !binary::apply(item, facts) && !packages::apply(item, path, facts) {
                files::apply(item, path, facts);
            }
        }
        ItemName::Command(line) => commands::apply(line, 0, item, facts),
        ItemName::Probe { .. } => probes::apply(item, facts),
        ItemName::Text(_) => text::apply(item, facts),
    }
}
