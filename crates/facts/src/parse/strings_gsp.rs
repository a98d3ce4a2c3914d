//! The output of `strings` over a GSP firmware file, whole or through `grep`: partial knowledge.
//!
//! A family that shows here is in the file. One that does not show proves nothing, since the
//! output may have been filtered.

use super::elf_gsp::GspSummary;
use super::{Parsed, numbered};
use crate::version::DriverVersion;

/// Longest line that is looked at; the names asked for are short.
const LINE_LIMIT: usize = 512;

/// Reads the strings. `complete` stays false, whatever was found.
pub fn parse(text: &str) -> Parsed<GspSummary> {
    let mut summary = GspSummary::default();
    let mut versions: Vec<DriverVersion> = Vec::new();
    for (_, line) in numbered(text).filter(|(_, line)| line.len() <= LINE_LIMIT) {
        let line = line.trim();
        for word in line.split(|ch: char| ch != '_' && !ch.is_ascii_alphanumeric()) {
            read_word(word, &mut summary);
        }
        versions.extend(
            DriverVersion::parse(line).filter(|version| versions.len() < 64 && version.is_exact()),
        );
    }
    // Several versions mean that the strings come from code that knows of others, so none counts.
    versions.dedup();
    if let [version] = versions.as_slice() {
        summary.version = Some(version.clone());
    }
    Parsed::clean(summary)
}

/// `fwsignature_gb20x` names a signature, `kernel_gb20x` (of `kernel_gb20x.elf`) the code that is
/// built for the same family; in a whole file each goes with the other (measured on 580.159.04).
fn read_word(word: &str, summary: &mut GspSummary) {
    for (index, _) in word.match_indices("fwsignature_") {
        summary.add_section_name(word.get(index..).unwrap_or_default());
    }
    if let Some((_, family)) = word.rsplit_once("kernel_") {
        summary.add_family(family);
    }
}
