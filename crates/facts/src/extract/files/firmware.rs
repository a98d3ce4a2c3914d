//! The firmware folder: which GSP files lie there, by name only. What is in one, its ELF sections
//! tell; see the extractor of firmware files.

use super::reading::Learn;
use crate::model::Facts;
use crate::model::firmware::GspFile;
use crate::observed::{Observed, Origin};
use crate::raw::{ItemName, RawItem, RawSet, RawState};
use crate::version::DriverVersion;

/// How many files of one folder are kept; drivers bring two to four.
const FILES_A_FOLDER: usize = 16;

/// Adds the files that listings name. They are `Absent` when the folder for the module's own
/// version was looked for, is missing or holds none, and no other place has one.
///
/// The kernel looks in the root of the machine. A container's own folder says nothing about that,
/// but whether this is one is for the causes to weigh.
pub(super) fn conclude(raw: &RawSet, facts: &mut Facts) {
    let wanted = facts.module.version().map(|seen| seen.value);
    let mut found = Vec::new();
    let mut empty: Option<Origin> = None;
    for (path, version, item) in folders(raw) {
        let files = files_of(path, item);
        let is_wanted = wanted.as_ref().is_some_and(|wanted| wanted.to_string() == version);
        let looked_at = match item.state {
            RawState::Absent => true,
            RawState::Bytes(_) => !item.partial,
            RawState::Denied(_) | RawState::TimedOut => false,
        };
        if is_wanted && looked_at && files.is_empty() {
            empty = Some(item.origin());
        }
        found.extend(files);
    }
    enter(found, facts);
    if let Some(origin) = empty {
        facts.firmware.files.learn(Observed::Absent(origin));
    }
}

/// Listings of `…/firmware/nvidia/VERSION`: path, version, item.
fn folders(raw: &RawSet) -> impl Iterator<Item = (&str, &str, &RawItem)> {
    raw.items().filter_map(|item| {
        let ItemName::File(path) = &item.name else {
            return None;
        };
        let (parent, version) = path.rsplit_once('/')?;
        let is_folder =
            parent.ends_with("/firmware/nvidia") || parent.contains("/firmware/updates");
        (is_folder && DriverVersion::parse(version).is_some()).then_some((
            path.as_str(),
            version,
            item,
        ))
    })
}

fn files_of(folder: &str, item: &RawItem) -> Vec<GspFile> {
    let Some(text) = item.text() else {
        return Vec::new();
    };
    let names = crate::parse::numbered(&text).filter(|(_, name)| is_gsp_file(name.trim()));
    let file = |(line, name): (u32, &str)| GspFile {
        path: format!("{folder}/{}", name.trim()),
        version: None,
        families: Observed::default(),
        families_complete: false,
        faults: Vec::new(),
        origin: item.origin_at(line, name),
    };
    names.take(FILES_A_FOLDER).map(file).collect()
}

/// `gsp.bin` (515, 520), `gsp_ga10x.bin` and its like, also compressed; not the logs' strings.
fn is_gsp_file(name: &str) -> bool {
    let stem = [".bin", ".bin.xz", ".bin.zst"].iter().find_map(|end| name.strip_suffix(end));
    stem.is_some_and(|stem| stem.starts_with("gsp") && !stem.starts_with("gsp_log"))
}

fn enter(found: Vec<GspFile>, facts: &mut Facts) {
    let Some(origin) = found.first().map(|file| file.origin.clone()) else {
        return;
    };
    facts.firmware.files.learn(Observed::seen(Vec::new(), origin));
    if let Observed::Seen(seen) = &mut facts.firmware.files {
        for file in found {
            if !seen.value.iter().any(|known| known.path == file.path) {
                seen.value.push(file);
            }
        }
    }
}
