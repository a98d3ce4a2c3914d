//! A machine seen without /proc: what is not in a /proc that is not there proves nothing.

use crate::model::Facts;
use crate::observed::{Observed, Origin};
use crate::raw::{ItemName, RawSet, RawState};

/// Files that every kernel has, wherever /proc is mounted.
const ALWAYS_THERE: [&str; 6] = [
    "/proc/self/status",
    "/proc/version",
    "/proc/uptime",
    "/proc/modules",
    "/proc/devices",
    "/proc/self/mountinfo",
];

/// How many of them must have been looked for and be absent.
const WITNESSES: usize = 3;

/// Says whether /proc is mounted, and takes back what its absence made others say.
pub(super) fn conclude(raw: &RawSet, facts: &mut Facts) {
    let mut missing: Vec<Origin> = Vec::new();
    let mut there = None;
    for item in raw.items() {
        let ItemName::File(path) = &item.name else { continue };
        if !ALWAYS_THERE.contains(&path.as_str()) {
            continue;
        }
        match item.state {
            RawState::Absent => missing.push(item.origin()),
            RawState::Bytes(_) => there = there.or_else(|| Some(item.origin())),
            RawState::Denied(_) | RawState::TimedOut => {}
        }
    }
    let mounted = match (there, missing.into_iter().nth(WITNESSES - 1)) {
        (Some(origin), _) => Observed::seen(true, origin),
        (None, Some(origin)) => Observed::seen(false, origin),
        (None, None) => Observed::default(),
    };
    facts.sandbox.engine.proc_mounted.or_better(mounted);
    of_another_namespace(raw, facts);
    if facts.sandbox.engine.proc_mounted.value() == Some(&false) {
        forget_absences(facts);
    }
}

/// A /proc that lacks the process itself is one of another PID namespace; and so is one that tells
/// more than one number of it, since a /proc numbers from its own namespace inwards.
fn of_another_namespace(raw: &RawSet, facts: &mut Facts) {
    let mut own = Vec::new();
    let mut kernels = false;
    for item in raw.items() {
        let ItemName::File(path) = &item.name else { continue };
        let is_own = path == "/proc/self/status" || path == "/proc/self/mountinfo";
        match item.state {
            RawState::Absent if is_own => own.push(item.origin()),
            RawState::Bytes(_) if is_own => {
                let Some((line, text)) = item.text().as_deref().and_then(many_numbers) else {
                    continue;
                };
                facts.sandbox.engine.proc_of_other = Some(item.origin_at(line, &text));
                return;
            }
            RawState::Bytes(_) => kernels |= ALWAYS_THERE.contains(&path.as_str()),
            _ => {}
        }
    }
    if kernels && own.len() == 2 {
        facts.sandbox.engine.proc_of_other = own.pop();
    }
}

/// The line `NSpid:` of a status file, with its number, if it holds several numbers.
fn many_numbers(status: &str) -> Option<(u32, String)> {
    let (line, text) =
        crate::parse::numbered(status).find(|(_, text)| text.starts_with("NSpid:"))?;
    (text.split_whitespace().count() > 2).then(|| (line, text.to_owned()))
}

/// Absence from a /proc that is not there becomes ignorance.
fn forget_absences(facts: &mut Facts) {
    let module = &mut facts.module;
    if module.nvrm.absent().is_some() {
        module.nvrm = Observed::default();
    }
    module.loaded.retain(|_, loaded| loaded.absent().is_none());
    module.majors.retain(|_, major| major.absent().is_none());
    if module.hmm_ranges.absent().is_some() {
        module.hmm_ranges = Observed::default();
    }
}
