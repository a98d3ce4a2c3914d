//! The beginning and the end of a long input, kept while it streams by.

use std::collections::VecDeque;
use std::io::Read;
use std::sync::Arc;

/// What is read at once.
const CHUNK_BYTES: usize = 1 << 20;

/// A part of an input and the line, from 1, at which it begins.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) bytes: Arc<[u8]>,
    pub(super) first_line: u32,
}

/// What was kept of an input.
#[derive(Debug)]
pub(super) struct Kept {
    /// The whole input, or its beginning.
    pub(super) head: Part,
    /// Its end, when something between was dropped.
    pub(super) tail: Option<Part>,
    /// True when reading ended before the input did.
    pub(super) cut: bool,
}

/// Reads to the end and keeps at most `limit` bytes: the beginning, and where that is not all, as
/// much of the end. Of more than `read_limit` bytes the rest is not read.
pub(super) fn keep_ends(mut input: impl Read, limit: usize, read_limit: u64) -> Kept {
    let half = (limit / 2).max(1);
    let mut head = Chunks::default();
    let mut tail = Chunks::default();
    let mut total: u64 = 0;
    let mut cut = false;
    while total < read_limit {
        let mut chunk = Vec::new();
        let read = (&mut input).take(CHUNK_BYTES as u64).read_to_end(&mut chunk);
        cut |= read.is_err();
        total += chunk.len() as u64;
        let last = chunk.len() < CHUNK_BYTES;
        if head.length < half {
            head.push(chunk);
        } else {
            tail.push(chunk);
            tail.drop_surplus(half);
        }
        if last {
            break;
        }
    }
    cut |= total >= read_limit;
    let lines_of_head = head.lines();
    let tail = (tail.length > 0).then_some(tail);
    let Some(mut tail) = tail else {
        return Kept { head: Part { bytes: head.join(), first_line: 1 }, tail: None, cut };
    };
    if tail.dropped == 0 {
        head.append(&mut tail);
        return Kept { head: Part { bytes: head.join(), first_line: 1 }, tail: None, cut };
    }
    let first_line = line_number(1 + lines_of_head + tail.dropped_lines);
    let (bytes, more) = whole_lines(tail.join());
    let tail = Part { bytes, first_line: first_line.saturating_add(more) };
    Kept { head: Part { bytes: head.join(), first_line: 1 }, tail: Some(tail), cut }
}

/// Chunks in order.
#[derive(Default)]
struct Chunks {
    queue: VecDeque<Vec<u8>>,
    length: usize,
    dropped: usize,
    dropped_lines: u64,
}

impl Chunks {
    fn push(&mut self, chunk: Vec<u8>) {
        self.length += chunk.len();
        self.queue.push_back(chunk);
    }

    /// Drops whole chunks from the beginning as long as enough is left.
    fn drop_surplus(&mut self, keep: usize) {
        while let Some(first) = self.queue.front().filter(|c| self.length - c.len() >= keep) {
            self.dropped_lines += newlines(first);
            self.dropped += first.len();
            self.length -= first.len();
            self.queue.pop_front();
        }
    }

    fn append(&mut self, other: &mut Chunks) {
        self.length += other.length;
        self.queue.append(&mut other.queue);
    }

    fn lines(&self) -> u64 {
        self.queue.iter().map(|chunk| newlines(chunk)).sum()
    }

    /// One piece, made chunk by chunk so that there are never two of the whole.
    fn join(mut self) -> Arc<[u8]> {
        let mut joined: Arc<[u8]> = std::iter::repeat_n(0, self.length).collect();
        let mut rest = Arc::get_mut(&mut joined).unwrap_or_default();
        while let Some(chunk) = self.queue.pop_front() {
            let Some((place, behind)) = rest.split_at_mut_checked(chunk.len()) else { break };
            place.copy_from_slice(&chunk);
            rest = behind;
        }
        joined
    }
}

fn newlines(bytes: &[u8]) -> u64 {
    bytes.iter().map(|byte| u64::from(*byte == b'\n')).sum()
}

fn line_number(line: u64) -> u32 {
    u32::try_from(line).unwrap_or(u32::MAX)
}

/// The bytes from the first whole line on, and how many lines were left out (0 or 1). What has no
/// line break stays as it is.
fn whole_lines(bytes: Arc<[u8]>) -> (Arc<[u8]>, u32) {
    match bytes.iter().position(|byte| *byte == b'\n') {
        Some(end) if end + 1 < bytes.len() => {
            (Arc::from(bytes.get(end + 1..).unwrap_or_default()), 1)
        }
        _ => (bytes, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered_lines(count: u32) -> Vec<u8> {
        (1..=count).flat_map(|line| format!("{line:07}\n").into_bytes()).collect()
    }

    #[test]
    fn a_short_input_is_kept_whole() {
        for content in [Vec::new(), numbered_lines(10), numbered_lines(300_000)] {
            let kept = keep_ends(&*content, 4 << 20, u64::MAX);
            assert_eq!(&*kept.head.bytes, &*content);
            assert!(kept.tail.is_none() && !kept.cut);
        }
    }

    #[test]
    fn of_a_long_input_both_ends_are_kept_and_lines_keep_their_numbers() {
        let content = numbered_lines(2_000_000);
        let kept = keep_ends(&*content, 4 << 20, u64::MAX);
        let tail = kept.tail.unwrap();
        assert!(content.starts_with(&kept.head.bytes) && content.ends_with(&tail.bytes));
        assert!(kept.head.bytes.len() + tail.bytes.len() <= 6 << 20);
        let first = format!("{:07}\n", tail.first_line);
        assert!(tail.bytes.starts_with(first.as_bytes()));
    }

    #[test]
    fn an_endless_line_and_an_endless_input_end() {
        let kept = keep_ends(std::io::repeat(b'x'), 4 << 20, 20 << 20);
        assert!(kept.cut);
        assert_eq!(kept.tail.unwrap().first_line, 1);
    }
}
