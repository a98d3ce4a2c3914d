//! Kernel logs become events, and everything else in them that names the driver is kept.

use crate::model::Facts;
use crate::model::log::LogEvent;
use crate::observed::{Errno, Observed, Origin};
use crate::parse::kernel_log::{self, ParsedLine, ParsedLog};
use crate::raw::{ItemName, RawItem, RawState};

/// Most unlisted lines and most stack frames that are kept.
const LIST_LIMIT: usize = 2000;

/// Enters a kernel log, or any text in which lines of one may stand.
pub fn apply(item: &RawItem, facts: &mut Facts) {
    match &item.state {
        RawState::Bytes(bytes) => enter(item, bytes, facts),
        RawState::Denied(errno) if is_whole_log(item) => {
            facts.log.read.or_better(Observed::Denied(*errno, item.origin()));
        }
        RawState::Absent | RawState::Denied(_) | RawState::TimedOut => {}
    }
}

fn enter(item: &RawItem, bytes: &[u8], facts: &mut Facts) {
    let parsed = kernel_log::parse(bytes);
    super::complaints::note(item, &parsed.complaints, facts);
    note_reading(item, bytes, &parsed.value, facts);
    for line in parsed.value.lines {
        // The excerpt is the kernel's text; the line's number leads to the rest of it.
        let origin = item.origin_at(line.number, &line.text);
        facts.mentions_gpu |= line.unlisted || names_gpu(&line);
        enter_line(line, &origin, facts);
    }
}

/// Whether a known line is about the driver, and not about the kernel at large.
fn names_gpu(line: &ParsedLine) -> bool {
    const GENERAL: [&str; 5] = ["kernel", "pci", "iommu", "aer", "vfio"];
    let particular = line.matches.iter().any(|found| !GENERAL.contains(&found.signature.subsystem));
    particular || line.text.contains("nvidia") || line.text.contains("NVRM")
}

fn enter_line(line: ParsedLine, origin: &Origin, facts: &mut Facts) {
    let log = &mut facts.log;
    for found in line.matches {
        log.events.push(LogEvent {
            signature: found.signature.id,
            captures: found.captures,
            time_s: line.time.map(|stamp| stamp.seconds),
            device: line.device,
            origin: origin.clone(),
            text: line.text.clone(),
        });
    }
    for frame in line.frames {
        if log.frames.len() < LIST_LIMIT {
            log.frames.push((frame, origin.clone()));
        }
    }
    if line.unlisted && log.unlisted.len() < LIST_LIMIT {
        log.unlisted.push(origin.clone());
    }
}

/// Notes that a kernel log was read, so that a line that is not in it means something.
fn note_reading(item: &RawItem, bytes: &[u8], log: &ParsedLog, facts: &mut Facts) {
    if !is_whole_log(item) {
        return;
    }
    let head = String::from_utf8_lossy(bytes.get(..512).unwrap_or(bytes));
    if head.contains("read kernel buffer failed") {
        let refused = Observed::Denied(Errno::EPERM, item.origin_at(1, &head));
        facts.log.read.or_better(refused);
    } else if log.line_count > 0 || item.filter.is_some() {
        let first = log.first_stamp.map(|stamp| stamp.seconds);
        facts.log.read.or_better(Observed::seen(first, item.origin()));
    }
}

/// True for a log that shows all of the driver's lines: a whole one, or one filtered for them.
fn is_whole_log(item: &RawItem) -> bool {
    let shows_driver = item.filter.as_deref().is_some_and(|pattern| {
        let pattern = pattern.to_ascii_lowercase();
        ["nvrm", "nvidia", "xid", "nv"]
            .iter()
            .any(|word| pattern.split('|').any(|p| p.trim_matches(['\\', '(', ')']) == *word))
    });
    is_kernel_log(&item.name) && (!item.partial || shows_driver)
}

/// Whether an item by its name is a kernel log: a file of one, `dmesg`, `journalctl`.
pub fn is_kernel_log(name: &ItemName) -> bool {
    match name {
        ItemName::File(path) => {
            let file = path.rsplit('/').next().unwrap_or(path);
            let stems = ["kmsg", "dmesg", "kern.log", "messages", "syslog"];
            stems.iter().any(|stem| file.starts_with(stem))
        }
        ItemName::Command(line) => line
            .split_ascii_whitespace()
            .any(|word| matches!(word.rsplit('/').next(), Some("dmesg" | "journalctl"))),
        ItemName::Probe { .. } | ItemName::Text(_) => false,
    }
}
