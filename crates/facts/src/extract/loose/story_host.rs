//! What a report tells of the host around a container: that it is privileged or not, how slowly its
//! tools answer, whether persistence is on, that a driver is installed on it.

use super::Line;
use super::pattern::{captures, matches, pattern};
use crate::model::Facts;
use crate::observed::{Observed, Seen, clean_excerpt};

pattern! { UNPRIVILEGED = r"(?i)\bunprivileged\b[^.\n]{0,24}\b(?:LXC|LXD|incus|container|CT)\b|\b(?:LXC|LXD|incus|container|CT)\b[^.\n]{0,24}\bunprivileged\b|security\.privileged[:=] ?.?false" }
pattern! { PRIVILEGED_WORKS = r"(?i)(?:\b(?:--)?privileged\b[^.\n]{0,40}\b(?:works?|worked|is fine|runs fine|starts)\b|\b(?:works?|worked|starts)\b[^.\n]{0,40}[^n]\b(?:--)?privileged\b)" }
pattern! { SLOW = r"(?i)\bnvidia-smi\b[^.\n]{0,60}(?:\b(?:takes?|took|needs?|after|in)\b[^.\n]{0,20}\b(?P<seconds>\d{1,3})(?:\.\d+)? ?(?:s|sec|secs|seconds)\b|\b(?:slow(?:ly)?|(?:very |a )long (?:time)?|many seconds|half a minute|a minute)\b)" }
pattern! { REAL = r"^\s*real\s+(?P<minutes>\d+)m(?P<seconds>\d+)[.,]\d+s" }
pattern! { PERSISTENCE = r"(?i)\bpersistence(?:[ -]?(?:mode|M|d))?\b\W{0,4}(?:is|was|:|=)?\W{0,3}(?P<state>off|disabled|not (?:running|enabled|active)|on|enabled)\b" }
pattern! {
    HOST_DRIVER = r"(?i)(?:\bdrivers?\b[^.\n]{0,40}\b(?:(?:already |pre-?)+installed|is installed|installed)\b[^.\n]{0,24}\b(?:on|by) (?:the |our |each |every )?(?:hosts?|nodes?|machine|distribution|workers?)\b|\b(?:hosts?|nodes?|workers?)\b[^.\n]{0,40}\b(?:already )?(?:ha(?:s|ve|d)|come with|ship with)\b[^.\n]{0,24}\b(?:working |nvidia |own )*drivers?\b)"
}

/// A tool that takes so long to answer is slow; one with persistence answers within a second.
const SLOW_SECONDS: u32 = 5;

const LIMIT: usize = 16;

pub(super) fn read(line: &Line<'_>, facts: &mut Facts) {
    let engine = &mut facts.sandbox.engine;
    if line.has("rivileged") {
        if matches(&UNPRIVILEGED, line.text) {
            engine.unprivileged.or_better(Observed::seen(true, line.origin()));
        }
        let denied = line.has("not ") || line.has("n't ") || line.has("even with");
        if matches(&PRIVILEGED_WORKS, line.text) && !denied {
            engine.privileged_works.or_better(Observed::seen(true, line.origin()));
        }
    }
    if is_slow(line.text) && engine.slow_tools.len() < LIMIT {
        engine.slow_tools.push(Seen::new(clean_excerpt(line.text), line.origin()));
    }
    if let Some(found) = captures(&PERSISTENCE, line.text)
        && super::statement::condition(line.text).is_none()
    {
        let on = matches!(found["state"].to_ascii_lowercase().as_str(), "on" | "enabled");
        engine.persistence.or_better(Observed::seen(on, line.origin()));
    }
    if matches(&HOST_DRIVER, line.text) && !line.has("not installed") {
        let told = Observed::seen(clean_excerpt(line.text), line.origin());
        engine.host_driver_told.or_better(told);
    }
}

fn is_slow(text: &str) -> bool {
    let number = |seconds: &str| seconds.parse::<u32>().unwrap_or(0);
    if let Some(found) = captures(&REAL, text) {
        return number(&found["minutes"]) * 60 + number(&found["seconds"]) >= SLOW_SECONDS;
    }
    let Some(found) = captures(&SLOW, text) else { return false };
    found.name("seconds").is_none_or(|seconds| number(seconds.as_str()) >= SLOW_SECONDS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::loose::lines_of;

    #[test]
    fn every_expression_compiles() {
        let all = [&UNPRIVILEGED, &PRIVILEGED_WORKS, &SLOW, &REAL, &PERSISTENCE, &HOST_DRIVER];
        assert!(all.iter().all(|pattern| pattern.is_some()));
    }

    #[test]
    fn hosts_as_they_are_told() {
        let engine = |text: &str| lines_of(text).sandbox.engine;
        assert!(engine("docker inside an unprivileged LXD container").unprivileged.is_seen());
        assert!(
            engine("It works when the outer container is privileged.").privileged_works.is_seen()
        );
        assert!(!engine("It works in an unprivileged container too").privileged_works.is_seen());
        assert_eq!(engine("nvidia-smi takes about 25 seconds on the host").slow_tools.len(), 1);
        assert_eq!(engine("real    0m31.402s").slow_tools.len(), 1);
        assert!(engine("nvidia-smi took 0.3 s").slow_tools.is_empty());
        assert_eq!(engine("Persistence-M: Off").persistence.value(), Some(&false));
        assert!(engine("The nodes already have working NVIDIA drivers").host_driver_told.is_seen());
        assert!(engine("NVIDIA drivers are pre-installed on the host").host_driver_told.is_seen());
    }
}
