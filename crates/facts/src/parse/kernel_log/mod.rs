//! The kernel log in all its forms, through the table of signatures.
//!
//! `dmesg` (also `-T`, `-x`, `-e`, in colour), `journalctl` in its short forms, `/dev/kmsg`, syslog
//! files, and any of them pasted into prose, quoted or listed, in UTF-8 or UTF-16.

mod frames;
mod join;
mod literal;
mod matcher;
mod prefix;
mod scanner;
mod stamp;

use std::borrow::Cow;

use super::Parsed;
pub(crate) use frames::of_line as frames_of_line;
pub use matcher::SignatureMatch;
pub(crate) use matcher::marks;
pub use scanner::{LINE_LIMIT_BYTES, LogScanner, ParsedLine};
pub use stamp::{Clock, Stamp};

/// What a whole log tells.
#[derive(Debug, Clone, Default)]
pub struct ParsedLog {
    /// The lines that say something, in order.
    pub lines: Vec<ParsedLine>,
    /// How many lines the log has.
    pub line_count: u32,
    /// The first stamp near the beginning.
    pub first_stamp: Option<Stamp>,
}

/// Most lines that are kept. A driver in distress repeats itself, and the first lines tell most.
const LINES_LIMIT: usize = 20_000;

/// Reads a whole log.
pub fn parse(bytes: &[u8]) -> Parsed<ParsedLog> {
    let text = decode(bytes);
    let mut scanner = LogScanner::new();
    let mut joiner = join::Joiner::default();
    let mut parsed: Parsed<ParsedLog> = Parsed::default();
    let lines = &mut parsed.value.lines;
    let mut dropped = 0_usize;
    scanner.text(&text, |mut line| {
        if lines.len() == LINES_LIMIT {
            dropped += 1;
        } else {
            joiner.join(&mut line, lines);
            lines.push(line);
        }
    });
    parsed.value.line_count = scanner.lines();
    parsed.value.first_stamp = scanner.first_stamp();
    if dropped > 0 {
        parsed.complain(0, format!("{dropped} more lines about the driver were passed over"));
    }
    parsed
}

/// Whether a line bears a stamp, as those of logs do.
pub(crate) fn has_stamp(line: &str) -> bool {
    prefix::split(line).0.is_some()
}

/// Windows tools save logs as UTF-16. Other text stays as it is, without a copy.
fn decode(bytes: &[u8]) -> Cow<'_, [u8]> {
    let marked = bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff");
    let sample = bytes.get(..512).unwrap_or(bytes);
    let zeros = memchr::memchr_iter(0, sample).count();
    if marked || zeros > sample.len() / 4 {
        Cow::Owned(super::decode::plain_text(bytes).into_bytes())
    } else {
        Cow::Borrowed(bytes)
    }
}
