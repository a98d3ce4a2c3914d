//! Reads a log line by line in constant memory.

use std::borrow::Cow;

use super::matcher::{Hits, Matcher, SignatureMatch};
use super::stamp::Stamp;
use super::{frames, matcher, prefix};
use crate::model::pci::PciAddress;

/// A longer line is cut here; the kernel's own lines have at most about 1 KB.
pub const LINE_LIMIT_BYTES: usize = 64 << 10;

/// In how many lines at the beginning a first stamp is looked for.
const LINES_WITH_FIRST_STAMP: u32 = 64;

/// A line that says something about the driver or the hardware around it.
#[derive(Debug, Clone)]
pub struct ParsedLine {
    /// The line, from 1.
    pub number: u32,
    /// When the kernel wrote it.
    pub time: Option<Stamp>,
    /// The kernel's text, without stamps, marks of quoting, host and tag.
    pub text: String,
    /// The PCI device that it names.
    pub device: Option<PciAddress>,
    /// The signatures that it matches, in the order of the table; often none.
    pub matches: Vec<SignatureMatch>,
    /// Stack frames, as `function` or `function [module]`.
    pub frames: Vec<String>,
    /// True when it names the driver and neither a signature knows it nor is it a frame.
    pub unlisted: bool,
}

/// Reads lines one after another.
pub struct LogScanner {
    matcher: &'static Matcher,
    hits: Hits,
    number: u32,
    first_stamp: Option<Stamp>,
}

impl Default for LogScanner {
    fn default() -> Self {
        LogScanner::new()
    }
}

impl LogScanner {
    /// A scanner at line 1.
    pub fn new() -> LogScanner {
        LogScanner {
            matcher: matcher::matcher(),
            hits: Hits::default(),
            number: 0,
            first_stamp: None,
        }
    }

    /// How many lines went through.
    pub fn lines(&self) -> u32 {
        self.number
    }

    /// The first stamp that was seen near the beginning.
    pub fn first_stamp(&self) -> Option<Stamp> {
        self.first_stamp
    }

    /// Reads many lines at once, and hands on those that say something.
    ///
    /// Equal to calling [`LogScanner::line`] for each line of the kernel's, and faster where most
    /// lines say nothing: what lies between two literals is only searched for line ends.
    pub fn text(&mut self, text: &[u8], mut keep: impl FnMut(ParsedLine)) {
        let mut rest = text;
        // Escapes may stand within a literal, so that lines with any are read one by one.
        let plain = memchr::memchr(0x1b, rest).is_none();
        while !rest.is_empty() {
            if plain && self.number >= LINES_WITH_FIRST_STAMP {
                let Some(hit) = self.matcher.next_hit(rest) else {
                    self.pass_over(rest);
                    return;
                };
                let head = rest.get(..hit).unwrap_or_default();
                let begin = memchr::memrchr(b'\n', head).map_or(0, |end| end + 1);
                self.pass_over(head.get(..begin).unwrap_or_default());
                rest = rest.get(begin..).unwrap_or_default();
            }
            let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            self.lines_of(rest.get(..end).unwrap_or_default(), &mut keep);
            rest = rest.get(end + 1..).unwrap_or_default();
        }
    }

    /// Reads one line of the text, which may hold several of the kernel's: `/dev/kmsg` writes a line
    /// end within a message as `\x0a`, rsyslog as `#012`, a log in JSON as `\n`.
    fn lines_of(&mut self, line: &[u8], keep: &mut impl FnMut(ParsedLine)) {
        self.number = self.number.saturating_add(1);
        let mut rest = line.get(..LINE_LIMIT_BYTES).unwrap_or(line);
        let mut time = None;
        while !rest.is_empty() {
            let (line, after) = until_escaped_end(rest);
            rest = after;
            if let Some(line) = self.read(line) {
                time = time.or(line.time);
                keep(ParsedLine { time, ..line });
            }
        }
    }

    /// Counts lines that hold no literal. The last one may lack its end.
    fn pass_over(&mut self, lines: &[u8]) {
        let ends = memchr::memchr_iter(b'\n', lines).count();
        let unended = usize::from(lines.last().is_some_and(|last| *last != b'\n'));
        let count = u32::try_from(ends + unended).unwrap_or(u32::MAX);
        self.number = self.number.saturating_add(count);
    }

    /// Reads one line, with or without its end. `None` for a line that says nothing here.
    pub fn line(&mut self, line: &[u8]) -> Option<ParsedLine> {
        self.number = self.number.saturating_add(1);
        self.read(line.get(..LINE_LIMIT_BYTES).unwrap_or(line))
    }

    /// Reads a line that was counted and cut already.
    fn read(&mut self, line: &[u8]) -> Option<ParsedLine> {
        let line = without_escapes(line);
        if self.first_stamp.is_none() && self.number <= LINES_WITH_FIRST_STAMP {
            self.first_stamp = prefix::split(&String::from_utf8_lossy(&line)).0;
        }
        self.matcher.look(&line, &mut self.hits);
        if !self.hits.any() {
            return None;
        }
        let matches = self.matcher.matches(&line, &self.hits);
        let whole = String::from_utf8_lossy(&line);
        let frames = if self.hits.has_frames { frames::of_line(&whole) } else { Vec::new() };
        let (time, text) = prefix::split(&whole);
        let named = self.hits.names_driver && matcher::names_driver(text);
        let unlisted = named && matches.is_empty() && frames.is_empty();
        if matches.is_empty() && frames.is_empty() && !unlisted {
            return None;
        }
        let device = device_of(&matches, text);
        let text = text.to_owned();
        Some(ParsedLine { number: self.number, time, text, device, matches, frames, unlisted })
    }
}

/// Splits where a message of the driver's goes on after an escaped line end; the rest may be empty.
fn until_escaped_end(line: &[u8]) -> (&[u8], &[u8]) {
    const ENDS: [&[u8]; 3] = [b"\\x0a", b"#012", b"\\n"];
    let mut begins = memchr::memmem::find_iter(line, b"NVRM:");
    let split = begins.find_map(|begin| {
        let (head, rest) = line.split_at_checked(begin)?;
        ENDS.iter().find_map(|end| head.strip_suffix(*end)).map(|first| (first, rest))
    });
    split.unwrap_or((line, &[]))
}

/// The line without its end and without the colours that `dmesg` and terminals put in, which tear
/// prefixes from their texts.
fn without_escapes(line: &[u8]) -> Cow<'_, [u8]> {
    let line = line.trim_ascii_end();
    if memchr::memchr(0x1b, line).is_none() {
        return Cow::Borrowed(line);
    }
    let mut out = Vec::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = memchr::memchr(0x1b, rest) {
        out.extend_from_slice(rest.get(..at).unwrap_or_default());
        rest = after_escape(rest.get(at + 1..).unwrap_or_default());
    }
    out.extend_from_slice(rest);
    Cow::Owned(out)
}

/// What follows a control sequence, `[` up to a byte from `@` to `~`.
fn after_escape(rest: &[u8]) -> &[u8] {
    let Some(body) = rest.strip_prefix(b"[") else {
        return rest;
    };
    let end = body.iter().position(|byte| (b'@'..=b'~').contains(byte));
    end.and_then(|end| body.get(end + 1..)).unwrap_or_default()
}

/// The device in a group named `bdf`, or the first address in the text.
fn device_of(matches: &[SignatureMatch], text: &str) -> Option<PciAddress> {
    matches
        .iter()
        .filter_map(|found| found.captures.get("bdf"))
        .find_map(|address| PciAddress::parse(address))
        .or_else(|| first_address(text))
}

/// The first word of the form `0000:01:00.0` or `0000:01:00`.
pub(super) fn first_address(text: &str) -> Option<PciAddress> {
    text.split(|ch: char| !ch.is_ascii_hexdigit() && ch != ':' && ch != '.')
        .map(|word| word.trim_matches([':', '.']))
        .filter(|word| matches!(word.len(), 10 | 12) && word.matches(':').count() == 2)
        .find_map(PciAddress::parse)
}
