//! Power of laptop GPUs in texts: bbswitch, wrappers that switch the GPU on, udev rules.

use super::Line;
use super::pattern::{Lazy, matches, pattern};
use crate::model::Facts;
use crate::observed::{Seen, clean_excerpt};

pattern! {
    /// `0000:01:00.0 OFF` of /proc/acpi/bbswitch, and what is said of it.
    OFF = r"^\s*(?:[0-9a-f]{4}:)[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f] OFF\s*$|(?i)\bbbswitch\b[^.\n]{0,40}\b(?:reads|says|shows|is|=|:)?\s*OFF\b|bbswitch: disabling discrete graphics"
}
pattern! {
    /// It works through a wrapper that powers the GPU.
    WRAPPED = r"(?i)(?:=|\breturn(?:s|ed)?|\banswer(?:s|ed)?|\bgives?|\bgave|→|->|:)\s*(?:0|CUDA_SUCCESS)\b[^\n]{0,60}\b(?:with|under|through|via|using)\s+`?(?:optirun|primusrun|pvkrun|prime-run|bumblebee)\b|\b(?:works?|worked|fine|succeeds)\b[^\n]{0,40}\b(?:with|under|through|via|using|when run (?:with|under))\s+`?(?:optirun|primusrun|pvkrun|prime-run|bumblebee)\b"
}
pattern! {
    /// A rule that acts when the device is added. The driver's own acts on `bind`.
    RULE = r#"(?i)ACTION=="(?:add|add\|\w+|change)"[^\n]*power/control[^\n]*"auto""#
}
pattern! {
    RULE_TOLD = r"(?i)\budev rules?\b[^.\n]{0,80}\b(?:power/control|runtime (?:PM|power)|autosuspend)|\b(?:power/control|runtime (?:PM|power))[^.\n]{0,80}\budev rules?\b"
}

const LIMIT: usize = 16;

pub(super) fn read(line: &Line<'_>, prose: bool, facts: &mut Facts) {
    let marks = [
        "OFF",
        "bbswitch",
        "optirun",
        "primusrun",
        "pvkrun",
        "prime-run",
        "bumblebee",
        "udev",
        "power/control",
    ];
    if !marks.iter().any(|mark| line.has(mark)) {
        return;
    }
    keep(&OFF, line, facts, |facts| &mut facts.power.switched_off);
    if !line.text.to_ascii_lowercase().contains("nvidia-pm.rules") {
        keep(&RULE, line, facts, |facts| &mut facts.power.rules);
    }
    if prose {
        keep(&WRAPPED, line, facts, |facts| &mut facts.power.works_switched_on);
        keep(&RULE_TOLD, line, facts, |facts| &mut facts.power.rules);
    }
}

fn keep(
    pattern: &Lazy,
    line: &Line<'_>,
    facts: &mut Facts,
    list: impl FnOnce(&mut Facts) -> &mut Vec<Seen<String>>,
) {
    if matches(pattern, line.text) {
        let list = list(facts);
        if list.len() < LIMIT {
            list.push(Seen::new(clean_excerpt(line.text), line.origin()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::loose::lines_of;

    #[test]
    fn what_switches_a_gpu() {
        assert!([&OFF, &WRAPPED, &RULE, &RULE_TOLD].iter().all(|pattern| pattern.is_some()));
        let facts = lines_of(
            "0000:01:00.0 OFF\ncuInit(0) = 0 with optirun\nACTION==\"add\", SUBSYSTEM==\"pci\", ATTR{vendor}==\"0x10de\", ATTR{power/control}=\"auto\"\n",
        );
        assert_eq!(facts.power.switched_off.len(), 1);
        assert_eq!(facts.power.works_switched_on.len(), 1);
        assert_eq!(facts.power.rules.len(), 1);
        let normal = lines_of(
            "ACTION==\"bind\", ATTR{vendor}==\"0x10de\", TEST==\"power/control\", ATTR{power/control}=\"auto\"\n0000:01:00.0 ON\ncuInit = 999 without optirun\n",
        );
        assert!(normal.power.rules.is_empty() && normal.power.switched_off.is_empty());
        assert!(normal.power.works_switched_on.is_empty());
    }
}
