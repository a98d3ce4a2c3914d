//! Binary files, and the texts of tools that describe them, become facts about libraries, modules,
//! firmware and the bus.
//!
//! A file comes as its own bytes or in the compact form of [`crate::parse::elf_summary`].

mod firmware;
mod library;
mod modules;
mod pci;

use crate::model::Facts;
use crate::parse::elf::reader_of;
use crate::parse::elf_library::soname_of_path;
use crate::parse::elf_summary::{self, ElfSummary};
use crate::parse::{elf_gsp, elf_library, modinfo};
use crate::raw::{ItemName, RawItem, RawState};

pub use firmware::apply_gsp_text;
pub use library::{apply_ldconfig, apply_maps, conclude};
pub use modules::apply_modinfo;
pub use pci::apply_lspci;

/// What the path of an item says about how to read it.
enum Kind {
    Gsp,
    Library,
    Module,
    Maps,
    LoaderCache,
}

/// Enters one item, if its path is that of a binary file or of a process's mappings. Returns
/// whether it was.
pub fn apply(item: &RawItem, facts: &mut Facts) -> bool {
    let ItemName::File(path) = &item.name else {
        return false;
    };
    let Some(kind) = kind_of(path) else {
        return false;
    };
    match kind {
        Kind::Maps => apply_maps(item, facts),
        Kind::LoaderCache => library::apply_cache(item, facts),
        Kind::Gsp | Kind::Library | Kind::Module => file(item, path, &kind, facts),
    }
    true
}

fn kind_of(path: &str) -> Option<Kind> {
    let file = path.rsplit('/').next()?;
    if file == "ld.so.cache" {
        Some(Kind::LoaderCache)
    } else if file == "maps" && path.starts_with("/proc/") {
        Some(Kind::Maps)
    } else if is_gsp_firmware(path, file) {
        Some(Kind::Gsp)
    } else if soname_of_path(path).is_some() {
        Some(Kind::Library)
    } else {
        let stem = [".xz", ".zst", ".gz"].iter().find_map(|end| file.strip_suffix(end));
        let name = stem.unwrap_or(file).strip_suffix(".ko");
        let module = name.is_some_and(|name| name.starts_with("nvidia"));
        module.then_some(Kind::Module)
    }
}

/// The driver's own files, `nvidia/VERSION/gsp*.bin`. nouveau and nova have theirs, of other
/// versions, in folders of chips: `nvidia/ad102/gsp/gsp-570.144.bin`.
fn is_gsp_firmware(path: &str, file: &str) -> bool {
    file.starts_with("gsp")
        && !file.starts_with("gsp_log")
        && path.contains("firmware")
        && !path.contains("/gsp/")
}

fn file(item: &RawItem, path: &str, kind: &Kind, facts: &mut Facts) {
    let bytes = match &item.state {
        RawState::Bytes(bytes) => bytes,
        RawState::Absent | RawState::Denied(_) | RawState::TimedOut => {
            if matches!(kind, Kind::Gsp) {
                firmware::not_read(item, path, facts);
            }
            return;
        }
    };
    if elf_summary::is_summary(bytes) {
        let text = String::from_utf8_lossy(bytes);
        let parsed = elf_summary::parse(&text);
        super::complaints::note(item, &parsed.complaints, facts);
        if let Some(summary) = parsed.value {
            enter_summary(item, path, summary, facts);
        }
        return;
    }
    match kind {
        Kind::Library => {
            if let Some(target) = link_target(bytes) {
                library::enter_link(item, path, target, facts);
            } else {
                let read_at = reader_of(bytes);
                library::enter(item, path, path, &elf_library::read(&read_at, path), facts);
            }
        }
        Kind::Gsp => match crate::parse::decompress::decompress(bytes) {
            Ok(content) => {
                firmware::enter(item, path, elf_gsp::read(&reader_of(&content)), facts);
            }
            Err(fault) => {
                let faults = vec![fault.to_string()];
                let summary = elf_gsp::GspSummary { faults, ..elf_gsp::GspSummary::default() };
                firmware::enter(item, path, summary, facts);
            }
        },
        Kind::Module => modules::enter(item, path, &modinfo::read(bytes), facts),
        Kind::Maps | Kind::LoaderCache => {}
    }
}

fn enter_summary(item: &RawItem, path: &str, summary: ElfSummary, facts: &mut Facts) {
    match summary {
        ElfSummary::Gsp(gsp) => firmware::enter(item, path, gsp, facts),
        ElfSummary::Library { library, real_path } => {
            library::enter(item, path, real_path.as_deref().unwrap_or(path), &library, facts);
        }
        ElfSummary::Module(info) => modules::enter(item, path, &info, facts),
    }
}

/// The bytes of a link are its target's path: one short line of text.
fn link_target(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?.trim_end_matches('\n');
    let one_path = text.len() < 4096 && text.contains(".so") && !text.contains(char::is_control);
    one_path.then_some(text)
}
