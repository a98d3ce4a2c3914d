//! What starts slowly: times that `time` prints, traces of giant tables, and what people measured.

use super::super::Line;
use super::super::pattern::{captures, matches, pattern};
use super::LIMIT;
use crate::model::Facts;
use crate::observed::{Observed, Seen};
use crate::raw::ItemName;

pattern! {
    TAKES = r"(?i)\b(?P<what>nvidia-smi|cu_?init|torch\.cuda\.\w+\(\)|CUDA init\w*|nvmlInit\w*|nvidia-container-cli)\b[^\n\d]{0,120}?\b(?:takes?|took|needs?|needed|taking|lasts|in|after)\b[^\n\d]{0,24}(?P<seconds>\d+(?:\.\d+)?)\s*(?P<unit>s|sec|secs|seconds|m|min|minutes)\b"
}
pattern! {
    SAID = r"(?i)\b(?P<what>nvidia-smi|cu_?init|(?:CUDA|GPU) (?:init\w*|start\w*|programs?|apps?|applications?|containers?))\b[^.\n]{0,40}?\b(?:(?:is|are|gets|runs?|becomes?|very|extremely|so|super|too|really) )*(?:slow(?:ly)?|(?:takes?|needs?) (?:(?:about|over|almost|more than|up to) )?(?:ages|very long|a long time|half a minute|a (?:full |whole )?minute|several (?:seconds|minutes)|minutes)|crawls?)\b"
}
pattern! {
    TIMED = r"(?i)\btime (?P<what>nvidia-smi)\b[^\n\d]{0,24}(?P<seconds>\d+(?:\.\d+)?)\s*(?P<unit>s|sec|seconds|m|min|minutes)\b"
}
pattern! { DENIED = r"(?i)\b(?:not|n['’]t|no longer|never)\b[^.\n]{0,12}\bslow" }
pattern! { REAL = r"^\s*real\s+(?:(?P<minutes>\d+)m)?\s?(?P<seconds>\d+(?:[.,]\d+)?)s?\s*$" }
pattern! { MAPPING = r"\bmmap\((?:NULL|0x[0-9a-f]+|0), (?P<bytes>\d{10,13})," }
pattern! { SOCKET = r"nvidia-persistenced/socket\b|(?i:\bnvidia-persistenced\b[^\n.]{0,30}\b(?:running|runs|active|started|enabled|is on|is up)\b)|(?i:\b(?:with|when|while)\b[^\n.]{0,24}\bpersistenced?\b[^\n.]{0,16}\b(?:daemon|running|on|socket)\b)" }
pattern! { NO_SOCKET = r"(?i)\b(?:no|without|not|isn['’]t|stopp\w+|inactive|dead)\b[^\n.]{0,24}persistenced|persistenced?\b[^\n.]{0,24}\b(?:not running|stopped|inactive|disabled|No such file)" }

/// Smallest mapping that is worth noting: no table of descriptors comes near under a usual limit.
const GIANT_BYTES: u64 = 1 << 30;

/// Enters the times and mappings of the line.
pub(super) fn read(line: &Line<'_>, prose: bool, facts: &mut Facts) {
    if let Some(found) = captures(&REAL, line.text) {
        timed(&found, line, facts);
    } else if prose
        && let Some(found) = captures(&TIMED, line.text).or_else(|| captures(&TAKES, line.text))
    {
        let seconds: Option<f64> = found["seconds"].parse().ok();
        let scale = if found["unit"].starts_with(['m', 'M']) { 60.0 } else { 1.0 };
        if let Some(seconds) = seconds {
            enter(&found["what"], Some(seconds * scale), line, facts);
        }
    } else if prose
        && !matches(&DENIED, line.text)
        && let Some(found) = captures(&SAID, line.text)
    {
        enter(&found["what"], None, line, facts);
    }
    if let Some(found) = captures(&MAPPING, line.text)
        && let Ok(bytes) = found["bytes"].parse::<u64>()
        && bytes >= GIANT_BYTES
    {
        super::push(&mut facts.process.giant_mappings, bytes, line);
    }
    if matches(&NO_SOCKET, line.text) {
        facts.process.persistenced.or_better(Observed::seen(false, line.origin()));
    } else if matches(&SOCKET, line.text) {
        facts.process.persistenced = Observed::seen(true, line.origin());
    }
}

/// What `time` says belongs to the command whose output this is.
fn timed(found: &regex::Captures<'_>, line: &Line<'_>, facts: &mut Facts) {
    let ItemName::Command(command) = &line.item.name else { return };
    let programs = ["nvidia-smi", "nvidia-container-cli", "cuInit", "torch.cuda"];
    let Some(program) = programs.into_iter().find(|program| command.contains(program)) else {
        return;
    };
    let minutes: f64 = found.name("minutes").and_then(|m| m.as_str().parse().ok()).unwrap_or(0.0);
    if let Ok(seconds) = found["seconds"].replace(',', ".").parse::<f64>() {
        enter(program, Some(minutes * 60.0 + seconds), line, facts);
    }
}

fn enter(what: &str, seconds: Option<f64>, line: &Line<'_>, facts: &mut Facts) {
    facts.mentions_gpu = true;
    if facts.process.slow_starts.len() < LIMIT {
        facts.process.slow_starts.push(Seen::new((what.to_owned(), seconds), line.origin()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::loose::lines_of;

    #[test]
    fn times_and_mappings() {
        assert!(
            [&TAKES, &SAID, &TIMED, &DENIED, &REAL, &MAPPING, &SOCKET, &NO_SOCKET]
                .iter()
                .all(|pattern| pattern.is_some())
        );
        let facts =
            lines_of("nvidia-smi takes 24 s with the persistence daemon running and 2 s without");
        assert_eq!(facts.process.slow_starts[0].value, ("nvidia-smi".to_owned(), Some(24.0)));
        assert_eq!(facts.process.persistenced.value(), Some(&true));
        let facts = lines_of("nvidia-smi is extremely slow inside containers");
        assert_eq!(facts.process.slow_starts[0].value, ("nvidia-smi".to_owned(), None));
        let facts = lines_of(
            "mmap(NULL, 51539607552, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x7f",
        );
        assert_eq!(facts.process.giant_mappings[0].value, 51_539_607_552);
    }
}
