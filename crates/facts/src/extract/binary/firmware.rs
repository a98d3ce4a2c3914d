//! GSP firmware files.

use crate::model::Facts;
use crate::model::firmware::GspFile;
use crate::observed::{Observed, Origin, Seen};
use crate::parse::elf_gsp::GspSummary;
use crate::parse::{readelf_sections, strings_gsp};
use crate::raw::{RawItem, RawState};

/// Enters what one file tells of itself.
pub(super) fn enter(item: &RawItem, path: &str, summary: GspSummary, facts: &mut Facts) {
    let origin = item.origin();
    put(file(path, summary, origin), facts);
}

/// Enters the output of `strings`, `readelf` or `objdump` over a GSP file. `path` is the file,
/// `program` the tool's name.
pub fn apply_gsp_text(item: &RawItem, path: &str, program: &str, facts: &mut Facts) {
    let Some(text) = item.text() else { return };
    let tables =
        if program == "strings" { Vec::new() } else { readelf_sections::parse(&text).value };
    let mut summary = match <[GspSummary; 1]>::try_from(tables) {
        Ok([table]) => table,
        // Of several files only the strings say which one a family belongs to, and they do not.
        Err(_) => strings_gsp::parse(&text).value,
    };
    summary.complete &= !item.partial;
    if summary == GspSummary::default() {
        return;
    }
    let line = crate::parse::numbered(&text).find(|(_, line)| line.contains("fwsignature"));
    let origin = line.map_or_else(|| item.origin(), |(line, _)| item.origin_of_line(line));
    put(file(path, summary, origin), facts);
}

fn file(path: &str, summary: GspSummary, origin: Origin) -> GspFile {
    let mut families = summary.families;
    // In a file that is signed for confidential computing alone the family is there all the same.
    for family in summary.confidential {
        if !families.contains(&family) {
            families.push(family);
        }
    }
    let known = !families.is_empty() || summary.complete;
    GspFile {
        path: path.to_owned(),
        version: summary.version,
        families: if known {
            Observed::seen(families, origin.clone())
        } else {
            Observed::default()
        },
        families_complete: summary.complete,
        faults: summary.faults,
        origin,
    }
}

/// Enters a file, or adds to what is known of the one at its path.
fn put(file: GspFile, facts: &mut Facts) {
    facts.mentions_gpu = true;
    let Observed::Seen(Seen { value: files, .. }) = &mut facts.firmware.files else {
        let origin = file.origin.clone();
        facts.firmware.files = Observed::seen(vec![file], origin);
        return;
    };
    let Some(known) = files.iter_mut().find(|known| known.path == file.path) else {
        files.push(file);
        return;
    };
    if known.families_complete && !file.families_complete {
        return;
    }
    if !file.families_complete {
        add_families(known, file);
        return;
    }
    *known = file;
}

/// Two parts of the same file's strings name more families than one.
fn add_families(known: &mut GspFile, file: GspFile) {
    known.version = known.version.take().or(file.version);
    let Observed::Seen(new) = file.families else {
        return;
    };
    match &mut known.families {
        Observed::Seen(list) => {
            for family in new.value {
                if !list.value.contains(&family) {
                    list.value.push(family);
                }
            }
            list.value.sort();
        }
        families => *families = Observed::Seen(new),
    }
}

/// A file that was looked for and could not be read.
pub(super) fn not_read(item: &RawItem, path: &str, facts: &mut Facts) {
    match item.state {
        RawState::Absent => facts.firmware.missing.push(Seen::new(path.to_owned(), item.origin())),
        RawState::Denied(errno) => {
            facts.firmware.files.or_better(Observed::Denied(errno, item.origin()));
        }
        RawState::Bytes(_) | RawState::TimedOut => {}
    }
}
