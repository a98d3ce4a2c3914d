//! GSP firmware files, judged by their sections and never by their name.
//!
//! `gsp_ga10x.bin` serves Ampere, Ada, Hopper and Blackwell; which families a file carries stands
//! in the names of its `.fwsignature_*` sections, its version in `.fwversion` (measured on
//! 535.309.01, 550.163.01, 570.144 and 580.159.04).

use super::elf::{ElfFile, MACHINE_RISCV, ReadAt, machine_name};
use crate::version::DriverVersion;

/// What a GSP firmware file tells of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GspSummary {
    /// The text of `.fwversion`, if it is a version.
    pub version: Option<DriverVersion>,
    /// Chip families that it is signed for, such as `gb20x`, in order and without repetition.
    pub families: Vec<String>,
    /// The families that it is also signed for in confidential-computing mode.
    pub confidential: Vec<String>,
    /// True when the whole section table was read, so that a family not listed is not there.
    pub complete: bool,
    /// What is wrong with the file, one sentence each.
    pub faults: Vec<String>,
}

impl GspSummary {
    /// Notes one signature section, or one string that names it. Returns whether it was one.
    pub fn add_section_name(&mut self, name: &str) -> bool {
        let name = name.strip_prefix('.').unwrap_or(name);
        let Some(rest) = name.strip_prefix("fwsignature_") else {
            return false;
        };
        let (list, family) = match rest.strip_prefix("cc_") {
            Some(family) => (&mut self.confidential, family),
            None => (&mut self.families, rest),
        };
        add_family(list, family)
    }

    /// Notes a family under which code, but not necessarily a signature, was seen.
    pub fn add_family(&mut self, family: &str) -> bool {
        add_family(&mut self.families, family)
    }
}

/// Most families that are kept; there are about a dozen.
const FAMILIES_LIMIT: usize = 64;

fn add_family(list: &mut Vec<String>, family: &str) -> bool {
    if !is_family(family) {
        return false;
    }
    if list.len() < FAMILIES_LIMIT && !list.iter().any(|known| known == family) {
        list.push(family.to_owned());
        list.sort();
    }
    true
}

/// Whether a word has the form of a chip family: `gb20x`, `tu10x`, `ga100`, `gh100`.
pub fn is_family(word: &str) -> bool {
    let bytes = word.as_bytes();
    let (Some(letters), Some(rest)) = (bytes.get(..2), bytes.get(2..)) else {
        return false;
    };
    let (digits, tail) = match rest.split_last() {
        Some((last, head)) if last.is_ascii_alphabetic() => (head, Some(*last)),
        _ => (rest, None),
    };
    letters.iter().all(u8::is_ascii_lowercase)
        && (2..=3).contains(&digits.len())
        && digits.iter().all(u8::is_ascii_digit)
        && matches!(tail, None | Some(b'x' | b'y' | b'z'))
}

/// Reads a GSP firmware file with five small reads, however large it is.
pub fn read(read_at: &ReadAt<'_>) -> GspSummary {
    let mut summary = GspSummary::default();
    let elf = match ElfFile::read(read_at) {
        Ok(elf) => elf,
        Err(fault) => {
            summary.faults.push(fault.to_string());
            return summary;
        }
    };
    summary.complete = true;
    for section in &elf.sections {
        summary.add_section_name(&section.name);
    }
    let text = elf.content(read_at, ".fwversion", 64).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    summary.version = DriverVersion::parse(text.trim_end_matches('\0'));
    find_faults(&elf, read_at, &mut summary);
    summary
}

fn find_faults(elf: &ElfFile, read_at: &ReadAt<'_>, summary: &mut GspSummary) {
    if elf.machine != MACHINE_RISCV {
        summary.faults.push(format!("made for {}, not for the GSP", machine_name(elf.machine)));
    }
    if let Some(section) = elf.cut_off(read_at) {
        summary.faults.push(format!("truncated: {section} lies beyond its end"));
    }
    match elf.section(".fwimage") {
        None => summary.faults.push("no .fwimage section".to_owned()),
        Some(image) if image.size == 0 => summary.faults.push("an empty .fwimage".to_owned()),
        Some(_) => {}
    }
    if summary.version.is_none() {
        summary.faults.push("no readable version in .fwversion".to_owned());
    }
    if summary.families.is_empty() && summary.confidential.is_empty() {
        summary.faults.push("no .fwsignature section".to_owned());
    }
}
