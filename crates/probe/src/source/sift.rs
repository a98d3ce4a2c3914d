//! Of a long text the lines that a reader could use, picked out while it streams by: memory stays
//! bounded however long the text is, and each line keeps its number.

use std::io::Read;
use std::sync::Arc;

use self::host::HostName;
use self::keeper::Keeper;

mod host;
mod keeper;
mod marks;

/// What is read at once.
const CHUNK_BYTES: usize = 2 << 20;

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
    let mut keeper = Keeper::new(limits, HostName::learn(&buffer));
    let wide = is_wide(&buffer);
    loop {
        if wide {
            buffer.retain(|byte| *byte != 0);
        }
        let ready = buffer.len().saturating_sub(limits.end_bytes);
        let before = buffer.get(..ready).unwrap_or_default();
        // A line that is longer than a chunk goes in pieces.
        let ready = memchr::memrchr(b'\n', before).map_or(ready, |end| end + 1);
        keeper.push(buffer.get(..ready).unwrap_or_default());
        buffer.drain(..ready);
        if input.state != State::Open {
            break;
        }
        input.fill(&mut buffer, CHUNK_BYTES);
    }
    keeper.append(&buffer);
    keeper.finish(input.state == State::Cut)
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

#[cfg(test)]
mod tests;
