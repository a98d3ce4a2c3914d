//! CDI specs become facts: device numbers, and versions in the names of mounted files.

use crate::model::Facts;
use crate::observed::{Observed, Origin, Seen};
use crate::parse::cdi as parse;
use crate::raw::RawItem;
use crate::version::DriverVersion;

/// Enters a spec, or a part of one, that stands at `path`.
pub(super) fn enter(item: &RawItem, path: &str, text: &str, facts: &mut Facts) {
    let parsed = parse::cdi(text);
    let spec = parsed.value;
    if spec.nodes.is_empty() && spec.files.is_empty() {
        super::complaints::note(item, &parsed.complaints, facts);
        return;
    }
    let lines: Vec<&str> = text.lines().collect();
    let origin = |line: u32| {
        let index = usize::try_from(line).unwrap_or(0).saturating_sub(1);
        item.origin_at(line, lines.get(index).copied().unwrap_or(""))
    };
    facts.mentions_gpu |= spec.nodes.iter().any(|at| at.value.path.contains("nvidia"));
    let cdi = &mut facts.sandbox.engine.cdi;
    for at in spec.nodes {
        let seen = Seen::new(at.value, origin(at.line));
        cdi.nodes.push(seen);
    }
    for at in spec.files {
        if let Some(version) = version_in(&at.value) {
            cdi.libraries.push(Seen::new((at.value, version), origin(at.line)));
        }
    }
    note_specs(vec![path.to_owned()], &item.origin(), facts);
}

/// Adds files to the specs that are known of.
pub(super) fn note_specs(paths: Vec<String>, origin: &Origin, facts: &mut Facts) {
    let specs = &mut facts.sandbox.engine.cdi.specs;
    if let Observed::Seen(seen) = specs {
        for path in paths {
            if !seen.value.contains(&path) {
                seen.value.push(path);
            }
        }
    } else {
        *specs = Observed::seen(paths, origin.clone());
    }
}

/// The driver version at the end of a library's name: `libcuda.so.550.54.14`.
pub(super) fn version_in(path: &str) -> Option<DriverVersion> {
    let (_, version) = path.rsplit('/').next()?.split_once(".so.")?;
    DriverVersion::parse(version)
}
