//! Namespaces, control groups and policy around the process: files of /proc/self.

use super::reading::{Learn, Lines, Reading};
use crate::model::Facts;
use crate::model::sandbox::IdMapRange;
use crate::observed::Observed;
use crate::parse::{At, cgroup as groups, id_map, mountinfo as mounts, proc_status};

/// /proc/self/cgroup.
pub(super) fn cgroup(reading: &Reading, facts: &mut Facts) {
    let lines = reading.single(|text| {
        Some(text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect())
    });
    facts.sandbox.cgroups.learn(lines);
    if let Some(text) = reading.text() {
        reading.complain(&groups::cgroup(text.as_str()).complaints, facts);
    }
}

/// /proc/self/mountinfo.
pub(super) fn mountinfo(reading: &Reading, facts: &mut Facts) {
    if let Some(other) = reading.without_bytes() {
        facts.sandbox.mounts.learn(other);
        return;
    }
    let Some(text) = reading.text() else { return };
    let parsed = mounts::mountinfo(text.as_str());
    let all = parsed.value.into_iter().map(|at| at.value).collect::<Vec<_>>();
    // Of a part, what is there is worth having; that something is missing from it is not known.
    if !all.is_empty() {
        facts.sandbox.mounts.learn(Observed::seen(all, reading.item.origin()));
    }
    reading.complain(&parsed.complaints, facts);
}

/// /proc/self/status, or that of another process, which also tells how that one fares.
pub(super) fn status(reading: &Reading, facts: &mut Facts) {
    super::task::file(reading, facts);
    let Some(text) = reading.text() else { return };
    let parsed = proc_status::proc_status(text.as_str());
    let status = parsed.value;
    let lines = || text.lines();
    set(&mut facts.node.euid, status.euid, lines());
    set(&mut facts.node.egid, status.egid, lines());
    set(&mut facts.node.groups, status.groups, lines());
    set(&mut facts.sandbox.cap_effective, status.cap_effective, lines());
    set(&mut facts.sandbox.seccomp, status.seccomp, lines());
    set(&mut facts.sandbox.no_new_privs, status.no_new_privs, lines());
    reading.complain(&parsed.complaints, facts);
}

fn set<T>(field: &mut Observed<T>, at: Option<At<T>>, mut lines: Lines) {
    if let Some(at) = at {
        field.learn(lines.observed(at));
    }
}

/// /proc/self/uid_map.
pub(super) fn uid_map(reading: &Reading, facts: &mut Facts) {
    let map = map_of(reading, facts);
    facts.sandbox.uid_map.learn(map);
}

/// /proc/self/gid_map: only what cannot be read is kept, since the uid map tells the same.
pub(super) fn gid_map(reading: &Reading, facts: &mut Facts) {
    let _same_story = map_of(reading, facts);
}

fn map_of(reading: &Reading, facts: &mut Facts) -> Observed<Vec<IdMapRange>> {
    if let Some(text) = reading.text() {
        reading.complain(&id_map::id_map(text.as_str()).complaints, facts);
    }
    // An empty map is real: a user namespace that nobody has mapped yet.
    reading.single(|text| Some(id_map::id_map(text).value))
}
