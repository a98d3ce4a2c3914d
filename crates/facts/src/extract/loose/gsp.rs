//! A GSP that stopped answering, as reports tell of it without quoting the kernel log.

use super::Line;
use super::pattern::{matches, pattern};
use crate::model::Facts;
use crate::observed::{Seen, clean_excerpt};

pattern! {
    SILENT = r"(?i)\bGSP\b[^.\n]{0,40}\b(?:heartbeat (?:timed? ?-?out|stopped|lost)|timed? ?-?out|stops? (?:answering|responding)|stopped (?:answering|responding)|hangs?|hung|unresponsive|crash(?:es|ed)?)\b|\bXID:? ?(?:119|120)\b|\bWPR2\b[^.\n]{0,30}\b(?:already up|stays?|still|locked|up)\b"
}
pattern! { DENIED = r"(?i)\b(?:no|without|never|not an?|instead of|unlike)\b[^.\n]{0,24}\b(?:xid|gsp|wpr2)\b" }

/// Most lines that are kept.
const LIMIT: usize = 16;

pub(super) fn read(line: &Line<'_>, facts: &mut Facts) {
    if !["GSP", "gsp", "WPR2", "119", "120"].iter().any(|word| line.has(word)) {
        return;
    }
    let quoted = line.has("NVRM:");
    let told = !quoted && matches(&SILENT, line.text) && !matches(&DENIED, line.text);
    if told && facts.firmware.silence_told.len() < LIMIT {
        facts.mentions_gpu = true;
        facts.firmware.silence_told.push(Seen::new(clean_excerpt(line.text), line.origin()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::loose::lines_of;

    #[test]
    fn what_people_say_of_it() {
        assert!(SILENT.is_some() && DENIED.is_some());
        let told = |text: &str| !lines_of(text).firmware.silence_told.is_empty();
        assert!(told("GSP heartbeat timeout, Xid 119 three times, then Xid 154"));
        assert!(told("the GSP stopped responding overnight"));
        assert!(told("WPR2 stays locked across warm reboots"));
        assert!(!told("there is no Xid 119 in dmesg"));
        assert!(!told("GSP Firmware Version : 580.95.05"));
    }
}
