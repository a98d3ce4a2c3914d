//! Of a long text the lines that a reader could use, picked out while it streams by: memory stays
//! bounded however long the text is, and each line keeps its number.

use std::io::Read;
use std::sync::Arc;

use facts::parse::sieve::{next_kernel_mark, next_mark};

use self::host::HostName;

mod host;

/// What is read at once.
const CHUNK_BYTES: usize = 1 << 20;
/// Lines that are kept after one with a mark, and before it: programs and terminals wrap their
/// messages, and tables go on.
const LINES_AFTER: u32 = 3;
/// Between two kept lines so many dropped ones are stood for by empty lines. Behind a longer gap a
/// new part begins.
const GAP_LINES: u32 = 64;
/// Longest line that is kept whole; what gpudx reads of a line is less.
const LINE_BYTES: usize = 64 << 10;
/// Most parts of one text.
const PARTS_LIMIT: usize = 20_000;

/// How much of a text is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextLimits {
    /// A text of at most so many bytes is kept whole.
    pub whole_bytes: usize,
    /// Of a longer one so many bytes of the beginning and as many of the end are kept as they are.
    pub end_bytes: usize,
    /// Of what lies between, the lines that a reader could use are kept, up to so many bytes; half
    /// of them is for lines of the kernel log.
    pub between_bytes: usize,
    /// What lies beyond so many bytes is not read: a small file can unfold without end.
    pub read_bytes: u64,
}

impl Default for TextLimits {
    /// Limits under which `gpudx read` stays below 256 MB.
    fn default() -> TextLimits {
        TextLimits {
            whole_bytes: 16 << 20,
            end_bytes: 128 << 10,
            between_bytes: 16 << 20,
            read_bytes: 8 << 30,
        }
    }
}

/// A part of a text and the line, from 1, at which it begins.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) bytes: Arc<[u8]>,
    pub(super) first_line: u32,
}

/// What was kept of a text.
#[derive(Debug)]
pub(super) struct Kept {
    /// The whole text, or parts of it in order; at least one.
    pub(super) parts: Vec<Part>,
    /// True when anything is missing.
    pub(super) partial: bool,
}

/// Reads a text to its end and keeps of it what the limits allow.
pub(super) fn sift(input: impl Read, limits: &TextLimits) -> Kept {
    let mut input = Input { inner: input, left: limits.read_bytes, state: State::Open };
    let mut buffer = Vec::new();
    input.fill(&mut buffer, limits.whole_bytes.saturating_add(1));
    if input.state != State::Open {
        let whole = Part { bytes: Arc::from(buffer), first_line: 1 };
        return Kept { parts: vec![whole], partial: input.state == State::Cut };
    }
    let mut sieve = Sieve::new(limits, HostName::learn(&buffer));
    let wide = is_wide(&buffer);
    loop {
        if wide {
            buffer.retain(|byte| *byte != 0);
        }
        let ready = buffer.len().saturating_sub(limits.end_bytes);
        let before = buffer.get(..ready).unwrap_or_default();
        // A line that is longer than a chunk goes in pieces.
        let ready = memchr::memrchr(b'\n', before).map_or(ready, |end| end + 1);
        sieve.push(buffer.get(..ready).unwrap_or_default());
        buffer.drain(..ready);
        if input.state != State::Open {
            break;
        }
        input.fill(&mut buffer, CHUNK_BYTES);
    }
    sieve.append(&buffer);
    sieve.finish(input.state == State::Cut)
}

/// UTF-16, of which only the half that holds ASCII is kept: zeros in every second place.
#[expect(clippy::naive_bytecount, reason = "it is half a kilobyte")]
fn is_wide(start: &[u8]) -> bool {
    let sample = start.get(..512).unwrap_or(start);
    sample.iter().filter(|byte| **byte == 0).count() > sample.len() / 4
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Ended,
    /// Reading failed, or there was more than may be read.
    Cut,
}

struct Input<R> {
    inner: R,
    left: u64,
    state: State,
}

impl<R: Read> Input<R> {
    /// Reads so many bytes more, or to the end.
    fn fill(&mut self, buffer: &mut Vec<u8>, count: usize) {
        let wanted = u64::try_from(count).unwrap_or(u64::MAX).min(self.left);
        let before = buffer.len();
        let read = (&mut self.inner).take(wanted).read_to_end(buffer);
        let got = u64::try_from(buffer.len() - before).unwrap_or(u64::MAX);
        self.left = self.left.saturating_sub(got);
        self.state = match read {
            Err(_) => State::Cut,
            Ok(_) if got < wanted => State::Ended,
            Ok(_) if self.left == 0 => State::Cut,
            Ok(_) => State::Open,
        };
    }
}

struct Sieve {
    done: Vec<Part>,
    open: Vec<u8>,
    /// The line at which the open part begins, and the one at which what follows it directly would.
    open_first: u32,
    open_next: u32,
    /// The line at which the next bytes begin.
    line: u32,
    /// Bytes of the beginning that are still to be kept as they are.
    head_left: usize,
    /// Bytes that may still be kept behind it.
    left: usize,
    /// How many of them are for lines of the kernel log.
    left_for_kernel: usize,
    /// What stands in every line and says nothing.
    host: Option<HostName>,
    /// Lines that are still to be kept because one with a mark stands before them.
    after: u32,
    dropped: bool,
}

impl Sieve {
    fn new(limits: &TextLimits, host: Option<HostName>) -> Sieve {
        Sieve {
            done: Vec::new(),
            open: Vec::new(),
            open_first: 1,
            open_next: 1,
            line: 1,
            head_left: limits.end_bytes,
            left: limits.between_bytes,
            left_for_kernel: limits.between_bytes / 2,
            host,
            after: 0,
            dropped: false,
        }
    }

    /// Takes whole lines, or a piece of a very long one.
    fn push(&mut self, text: &[u8]) {
        let head = lines_of(text, self.head_left);
        self.head_left = self.head_left.saturating_sub(head.len());
        self.append(head);
        let mut rest = text.get(head.len()..).unwrap_or_default();
        while !rest.is_empty() {
            let Some(begin) = self.next_line(rest) else {
                self.pass(rest, false);
                return;
            };
            self.pass(rest.get(..begin).unwrap_or_default(), true);
            let line = first_line(rest.get(begin..).unwrap_or_default());
            self.keep(line);
            self.after = LINES_AFTER;
            rest = rest.get(begin + line.len()..).unwrap_or_default();
        }
    }

    /// Where the next line with a mark begins, as long as there is room for it.
    fn next_line(&self, text: &[u8]) -> Option<usize> {
        let next = if self.left > self.left_for_kernel { next_mark } else { next_kernel_mark };
        let mut from = 0;
        while !self.is_full() {
            let mark = from + next(text.get(from..)?)?;
            let begin = memchr::memrchr(b'\n', text.get(..mark)?).map_or(0, |end| end + 1);
            let line = text.get(begin..)?;
            match self.host.as_ref().and_then(|host| host.covers(line, mark - begin)) {
                Some(end) => from = begin + end,
                None => return Some(begin),
            }
        }
        None
    }

    /// Takes lines without a mark: keeps those that stand near one, and drops the others.
    fn pass(&mut self, lines: &[u8], mark_follows: bool) {
        let mut rest = lines;
        while self.after > 0 && !rest.is_empty() && !self.is_full() {
            let line = first_line(rest);
            self.keep(line);
            self.after -= u32::from(line.ends_with(b"\n"));
            rest = rest.get(line.len()..).unwrap_or_default();
        }
        let inner = rest.get(..rest.len().saturating_sub(1)).unwrap_or_default();
        let last = memchr::memrchr(b'\n', inner).map_or(0, |end| end + 1);
        let (dropped, kept) = rest.split_at(if mark_follows { last } else { rest.len() });
        self.skip(dropped);
        self.keep(kept);
    }

    fn is_full(&self) -> bool {
        self.left == 0 || self.done.len() >= PARTS_LIMIT
    }

    /// Keeps a line between the ends, as long as there is room.
    fn keep(&mut self, line: &[u8]) {
        if self.is_full() || line.is_empty() {
            return self.skip(line);
        }
        self.left = self.left.saturating_sub(line.len().min(LINE_BYTES));
        self.append(line.get(..LINE_BYTES).unwrap_or(line));
        // What is behind the cut may hold the line's end.
        self.skip(line.get(LINE_BYTES..).unwrap_or_default());
    }

    fn skip(&mut self, text: &[u8]) {
        self.dropped |= !text.is_empty();
        self.line = self.line.saturating_add(newlines(text));
    }

    /// Adds bytes to the open part, or to a new one behind a long gap.
    fn append(&mut self, text: &[u8]) {
        if text.is_empty() {
            return;
        }
        let gap = self.line.saturating_sub(self.open_next);
        if gap > GAP_LINES || self.open.is_empty() {
            self.close();
            self.open_first = self.line;
        } else {
            self.open.extend(std::iter::repeat_n(b'\n', gap as usize));
        }
        self.open.extend_from_slice(text);
        self.line = self.line.saturating_add(newlines(text));
        self.open_next = self.line;
    }

    fn close(&mut self) {
        if !self.open.is_empty() {
            let bytes = Arc::from(self.open.as_slice());
            self.open.clear();
            self.done.push(Part { bytes, first_line: self.open_first });
        }
    }

    fn finish(mut self, cut: bool) -> Kept {
        self.close();
        if self.done.is_empty() {
            self.done.push(Part { bytes: Arc::from([]), first_line: 1 });
        }
        Kept { parts: self.done, partial: self.dropped || cut }
    }
}

/// The first lines, as many as begin within `limit` bytes.
fn lines_of(text: &[u8], limit: usize) -> &[u8] {
    let Some(rest) = text.get(limit..).filter(|_| limit > 0) else {
        return if limit == 0 { &[] } else { text };
    };
    text.get(..limit + first_line(rest).len()).unwrap_or(text)
}

/// The first line with its end.
fn first_line(text: &[u8]) -> &[u8] {
    let end = memchr::memchr(b'\n', text);
    end.and_then(|end| text.get(..=end)).unwrap_or(text)
}

fn newlines(text: &[u8]) -> u32 {
    let count = memchr::memchr_iter(b'\n', text).count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
