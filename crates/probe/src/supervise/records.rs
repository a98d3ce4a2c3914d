//! What a child wrote becomes raw items.

use std::fmt::Write as _;
use std::sync::Arc;

use facts::Errno;
use facts::raw::{ItemName, RawItem, RawState};
use facts::wire::Record;

use crate::child::report::DONE;

/// The output of one child, taken apart.
#[derive(Debug, Default)]
pub(crate) struct Unpacked {
    /// The lines that are not items, as they were.
    pub(crate) lines: Vec<u8>,
    /// The items.
    pub(crate) items: Vec<RawItem>,
    /// The call that was announced and did not return, with what it was made on.
    pub(crate) in_flight: Option<(String, Option<String>)>,
    /// True when the child wrote the closing note.
    pub(crate) done: bool,
    /// How many lines are no records, an unended last line among them.
    pub(crate) unreadable: usize,
}

/// Takes wire lines apart. An unended or unreadable line is kept as a note, so that what a broken
/// child said last can still be seen.
pub(crate) fn unpack(output: &[u8], taken_at: Option<u64>) -> Unpacked {
    let mut unpacked = Unpacked::default();
    for line in output.split_inclusive(|byte| *byte == b'\n') {
        let whole = line.ends_with(b"\n");
        let content = line.trim_ascii();
        if content.is_empty() {
            continue;
        }
        match serde_json::from_slice::<Record>(content).ok().filter(|_| whole) {
            Some(record) => unpacked.take(record, content, taken_at),
            None => unpacked.keep_unreadable(content),
        }
    }
    unpacked
}

impl Unpacked {
    fn take(&mut self, record: Record, line: &[u8], taken_at: Option<u64>) {
        match record {
            Record::Item { name, text, hex, errno, partial } => {
                let Some(name) = ItemName::parse(&name) else {
                    self.unreadable += 1;
                    return;
                };
                let mut item = RawItem::with_state(name, state_of(text, hex, errno));
                item.partial = partial;
                item.taken_at = taken_at;
                self.items.push(item);
                return;
            }
            Record::Note { key, .. } if key == DONE => {
                self.done = true;
                return;
            }
            Record::Enter { call, on } => self.in_flight = Some((call, on)),
            Record::Call { .. } => self.in_flight = None,
            Record::Note { .. } | Record::End(_) => {}
        }
        self.lines.extend_from_slice(line);
        self.lines.push(b'\n');
    }

    fn keep_unreadable(&mut self, line: &[u8]) {
        self.unreadable += 1;
        // A child that prints garbage without end would repeat itself here too.
        if self.unreadable == 1 {
            let value = facts::observed::clean_excerpt(&String::from_utf8_lossy(line));
            self.push(&Record::Note { key: "unreadable".to_owned(), value });
        }
    }

    /// Puts notes before everything else.
    pub(crate) fn begin_with(&mut self, notes: &[(String, String)]) {
        let own = std::mem::take(&mut self.lines);
        for (key, value) in notes {
            self.push(&Record::Note { key: key.clone(), value: value.clone() });
        }
        self.lines.extend(own);
    }

    /// Adds a record at the end.
    pub(crate) fn push(&mut self, record: &Record) {
        if let Ok(line) = serde_json::to_vec(record) {
            self.lines.extend_from_slice(&line);
            self.lines.push(b'\n');
        }
    }

    /// Where the child was reading a file and did not come back, that file timed out.
    pub(crate) fn add_timed_out_file(&mut self) {
        if let Some((call, Some(on))) = &self.in_flight
            && call == "read"
            && on.starts_with('/')
        {
            self.items.push(RawItem::with_state(ItemName::File(on.clone()), RawState::TimedOut));
        }
    }

    /// All items, the probe's own lines last.
    pub(crate) fn into_items(self, probe: &str, trial: u32, taken_at: Option<u64>) -> Vec<RawItem> {
        let mut items = self.items;
        let name = ItemName::Probe { name: probe.to_owned(), trial };
        let mut item = RawItem::new(name, Arc::<[u8]>::from(self.lines));
        item.taken_at = taken_at;
        items.push(item);
        items
    }
}

/// What the fields of an item record say.
fn state_of(text: Option<String>, hex: Option<String>, errno: Option<i32>) -> RawState {
    match errno.map(Errno) {
        // ENOTDIR: a parent of the path is a file, so that nothing can be below it.
        Some(Errno::ENOENT | Errno(libc::ENOTDIR)) => return RawState::Absent,
        Some(errno) => return RawState::Denied(errno),
        None => {}
    }
    let bytes = match (text, hex) {
        (Some(text), _) => text.into_bytes(),
        (None, Some(hex)) => from_hexadecimal(hex.as_bytes()),
        (None, None) => Vec::new(),
    };
    RawState::Bytes(bytes.into())
}

/// Reads two digits a byte, up to the first pair that is none.
fn from_hexadecimal(digits: &[u8]) -> Vec<u8> {
    let value = |digit: u8| char::from(digit).to_digit(16).and_then(|n| u8::try_from(n).ok());
    digits
        .chunks_exact(2)
        .map_while(|pair| Some(value(*pair.first()?)? << 4 | value(*pair.last()?)?))
        .collect()
}

/// A size in words: `16 MiB`, `512 bytes`.
pub(crate) fn size_text(bytes: usize) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = if bytes >= 1 << 20 {
        write!(text, "{} MiB", bytes >> 20)
    } else {
        write!(text, "{bytes} bytes")
    };
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_leave_the_lines_and_the_call_in_flight_is_known() {
        let output = concat!(
            r#"{"record":"enter","call":"read","on":"/proc/a"}"#,
            "\n",
            r#"{"record":"item","name":"/proc/b","hex":"00ff"}"#,
            "\n",
            r#"{"record":"item","name":"/proc/c","errno":2}"#,
            "\n",
            r#"{"record":"note","ke"#
        );
        let mut unpacked = unpack(output.as_bytes(), Some(7));
        assert_eq!(unpacked.items.len(), 2);
        assert_eq!(unpacked.items[0].bytes(), Some(&[0, 255][..]));
        assert_eq!(unpacked.items[1].state, RawState::Absent);
        assert_eq!((unpacked.unreadable, unpacked.done), (1, false));
        unpacked.add_timed_out_file();
        let items = unpacked.into_items("passive", 1, None);
        assert_eq!(items[2].name.to_string(), "/proc/a");
        assert_eq!(items[2].state, RawState::TimedOut);
        let lines = items[3].text().unwrap().into_owned();
        assert!(lines.starts_with(r#"{"record":"enter""#) && lines.contains("unreadable"));
    }
}
