//! What is kept of a long text, line by line.

use std::sync::Arc;

use facts::parse::sieve::Marks;

use super::host::HostName;
use super::marks::{first_line, marked_lines};
use super::{Kept, Part, TextLimits};

/// Lines that are kept after one with a mark, and before it: programs and terminals wrap their
/// messages, and tables go on.
const LINES_AFTER: u32 = 3;
/// Lines that are kept after one that looks like a prompt: what the command printed.
const LINES_AFTER_PROMPT: u32 = 60;
/// Between two kept lines so many dropped ones are stood for by empty lines. Behind a longer gap a
/// new part begins.
const GAP_LINES: u32 = 64;
/// Longest line that is kept whole; what gpudx reads of a line is less.
const LINE_BYTES: usize = 64 << 10;
/// Most parts of one text.
const PARTS_LIMIT: usize = 20_000;

/// Keeps the beginning, the end, and between them the lines with marks and those near one.
pub(super) struct Keeper {
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

impl Keeper {
    pub(super) fn new(limits: &TextLimits, host: Option<HostName>) -> Keeper {
        Keeper {
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
    pub(super) fn push(&mut self, text: &[u8]) {
        let head = lines_of(text, self.head_left);
        self.head_left = self.head_left.saturating_sub(head.len());
        self.append(head);
        let mut rest = text.get(head.len()..).unwrap_or_default();
        while !rest.is_empty() {
            let taken = self.take(rest);
            rest = rest.get(taken..).unwrap_or_default();
        }
    }

    /// Takes lines between the ends, and says how many bytes: all, unless there is no more room for
    /// lines that are not the kernel's.
    fn take(&mut self, text: &[u8]) -> usize {
        let has_room = self.left > self.left_for_kernel;
        let marks = if has_room { Marks::All } else { Marks::KernelLog };
        let marked =
            if self.is_full() { Vec::new() } else { marked_lines(text, marks, self.host.as_ref()) };
        let mut done = 0;
        for begin in marked {
            self.pass(text.get(done..begin).unwrap_or_default(), true);
            let line = first_line(text.get(begin..).unwrap_or_default());
            self.keep(line);
            self.after = self.after.max(lines_after(line));
            done = begin + line.len();
            if has_room && self.left <= self.left_for_kernel {
                return done;
            }
        }
        self.pass(text.get(done..).unwrap_or_default(), false);
        text.len()
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
    pub(super) fn append(&mut self, text: &[u8]) {
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

    pub(super) fn finish(mut self, cut: bool) -> Kept {
        self.close();
        if self.done.is_empty() {
            self.done.push(Part { bytes: Arc::from([]), first_line: 1 });
        }
        Kept { parts: self.done, partial: self.dropped || cut }
    }
}

/// How many lines may belong to what a line begins.
fn lines_after(line: &[u8]) -> u32 {
    let is_prompt = [b"$ ", b"# "].iter().any(|sign| line.windows(2).any(|two| two == *sign));
    if is_prompt { LINES_AFTER_PROMPT } else { LINES_AFTER }
}

/// The first lines, as many as begin within `limit` bytes.
fn lines_of(text: &[u8], limit: usize) -> &[u8] {
    let Some(rest) = text.get(limit..).filter(|_| limit > 0) else {
        return if limit == 0 { &[] } else { text };
    };
    text.get(..limit + first_line(rest).len()).unwrap_or(text)
}

fn newlines(text: &[u8]) -> u32 {
    let count = memchr::memchr_iter(b'\n', text).count();
    u32::try_from(count).unwrap_or(u32::MAX)
}
