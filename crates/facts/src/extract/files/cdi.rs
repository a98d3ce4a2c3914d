//! CDI specs in their folders, and the enforcement file and label of SELinux.

use super::reading::Reading;
use crate::extract::cdi;
use crate::model::Facts;
use crate::model::engine::SelinuxMode;
use crate::observed::Observed;

/// A spec in /etc/cdi or /run/cdi.
pub(super) fn spec(reading: &Reading, facts: &mut Facts) {
    let Some(text) = reading.text() else { return };
    cdi::enter(reading.item, reading.path, text.as_str(), facts);
}

/// One of the folders. That there is no spec is known only when each of them was listed; one that
/// is listed without any says it of itself.
pub(super) fn folder(reading: &Reading, facts: &mut Facts) {
    let specs = &mut facts.sandbox.engine.cdi.specs;
    match reading.listing() {
        Observed::Seen(seen) => {
            let is_spec =
                |name: &String| [".yaml", ".yml", ".json"].iter().any(|end| name.ends_with(end));
            let paths: Vec<String> = seen
                .value
                .iter()
                .filter(|name| is_spec(name))
                .map(|name| format!("{}/{name}", reading.path))
                .collect();
            if paths.is_empty() {
                specs.or_better(Observed::Absent(seen.origin));
            } else {
                cdi::note_specs(paths, &seen.origin, facts);
            }
        }
        other => specs.or_better(other),
    }
}

/// /sys/fs/selinux/enforce: `1` or `0`; absent where SELinux is off.
pub(super) fn selinux(reading: &Reading, facts: &mut Facts) {
    let mode = match reading.without_bytes::<SelinuxMode>() {
        Some(Observed::Absent(origin)) => Observed::seen(SelinuxMode::Disabled, origin),
        _ => reading.single(|text| match text.trim() {
            "1" => Some(SelinuxMode::Enforcing),
            "0" => Some(SelinuxMode::Permissive),
            _ => None,
        }),
    };
    facts.sandbox.engine.selinux.or_better(mode);
}

/// /proc/self/attr/current: an SELinux context or an `AppArmor` profile.
pub(super) fn label(reading: &Reading, facts: &mut Facts) {
    let label = reading.single(|text| {
        let text = text.trim_matches(['\0', '\n', ' ']);
        (!text.is_empty()).then(|| text.to_owned())
    });
    facts.sandbox.engine.label.or_better(label);
}
