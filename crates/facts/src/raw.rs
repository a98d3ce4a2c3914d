//! Raw items: bytes as they were found, or why there are none, and where they come from.
//!
//! Every source ends here: a live host, a case folder, a bundle, pasted text. Bundles keep raw
//! items and not facts, so that an old bundle gains from every new parser.

use std::fmt;
use std::sync::Arc;

use crate::observed::{Errno, Origin};

/// What an item is, and so which parser reads it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ItemName {
    /// A file of the observed machine, by its absolute path there. A symbolic link is an item too:
    /// its bytes are the target's path.
    File(String),
    /// The output of a command, by the command line as it was typed.
    Command(String),
    /// What one probe (or one trial of it) reported, as JSON lines; see [`crate::wire`].
    Probe {
        /// The probe's name, such as `cuinit`.
        name: String,
        /// Counts from 1; probes that run once have trial 1.
        trial: u32,
    },
    /// Loose text that a user pasted, by the label of the input.
    Text(String),
}

impl ItemName {
    /// Reads the form that [`fmt::Display`] writes. `None` for an unknown form.
    pub fn parse(text: &str) -> Option<ItemName> {
        if text.starts_with('/') {
            return Some(ItemName::File(text.to_owned()));
        }
        if let Some(line) = text.strip_prefix("$ ") {
            return Some(ItemName::Command(line.to_owned()));
        }
        if let Some(label) = text.strip_prefix("text:") {
            return Some(ItemName::Text(label.to_owned()));
        }
        let probe = text.strip_prefix("probe:")?;
        let (name, trial) = probe.split_once('#')?;
        Some(ItemName::Probe { name: name.to_owned(), trial: trial.parse().ok()? })
    }
}

impl fmt::Display for ItemName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ItemName::File(path) => f.write_str(path),
            ItemName::Command(line) => write!(f, "$ {line}"),
            ItemName::Probe { name, trial } => write!(f, "probe:{name}#{trial}"),
            ItemName::Text(label) => write!(f, "text:{label}"),
        }
    }
}

/// What came of the attempt to read an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RawState {
    /// The bytes.
    Bytes(Arc<[u8]>),
    /// It was looked for and is not there.
    Absent,
    /// The look was refused with this errno.
    Denied(Errno),
    /// The look did not end in time.
    TimedOut,
}

/// One raw item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawItem {
    /// What it is.
    pub name: ItemName,
    /// Its bytes, or why there are none.
    pub state: RawState,
    /// The input that it was cut from and the line there at which it begins (from 1), when it was
    /// cut from a larger text.
    pub cut_from: Option<(Arc<str>, u32)>,
    /// True when the text holds only part of the item, because it went through `grep`, `head`,
    /// `sed` or an elision. What is missing from a part proves nothing.
    pub partial: bool,
    /// For a part made by `grep`: the pattern. A line that the pattern would have shown and that
    /// is missing *is* absent.
    pub filter: Option<String>,
    /// The exit status, for commands whose transcript shows it.
    pub exit_status: Option<i32>,
    /// Seconds since the Unix epoch when the item was taken, if known.
    pub taken_at: Option<u64>,
}

impl RawItem {
    /// A whole item with its bytes.
    pub fn new(name: ItemName, bytes: impl Into<Arc<[u8]>>) -> RawItem {
        RawItem::with_state(name, RawState::Bytes(bytes.into()))
    }

    /// An item in any state.
    pub fn with_state(name: ItemName, state: RawState) -> RawItem {
        RawItem {
            name,
            state,
            cut_from: None,
            partial: false,
            filter: None,
            exit_status: None,
            taken_at: None,
        }
    }

    /// The bytes, if there are any.
    pub fn bytes(&self) -> Option<&[u8]> {
        match &self.state {
            RawState::Bytes(bytes) => Some(bytes),
            RawState::Absent | RawState::Denied(_) | RawState::TimedOut => None,
        }
    }

    /// The bytes as text; what is not UTF-8 is replaced.
    pub fn text(&self) -> Option<std::borrow::Cow<'_, str>> {
        self.bytes().map(String::from_utf8_lossy)
    }

    /// An origin for the whole item.
    pub fn origin(&self) -> Origin {
        self.origin_at(0, "")
    }

    /// The origin of an absence that shows in the item's saying nothing of it.
    pub fn silence(&self) -> Origin {
        Origin { is_silence: true, ..self.origin() }
    }

    /// An origin for one line of the item (from 1; 0 for the whole item), with an excerpt.
    pub fn origin_at(&self, line: u32, excerpt: &str) -> Origin {
        let mut origin = Origin::item(self.name.to_string()).with_excerpt(excerpt);
        origin.taken_at = self.taken_at;
        if let Some((input, first)) = &self.cut_from {
            origin.input = Some(Arc::clone(input));
            origin.line = if line == 0 { *first } else { first + line - 1 };
        } else {
            origin.line = line;
        }
        origin.end_line = origin.line;
        origin
    }

    /// An origin for one line, with that line as the excerpt.
    pub fn origin_of_line(&self, line: u32) -> Origin {
        let text = self.text().unwrap_or_default();
        let index = usize::try_from(line.max(1) - 1).unwrap_or(usize::MAX);
        let excerpt = text.lines().nth(index).unwrap_or("");
        self.origin_at(line, excerpt)
    }
}

/// Everything that was collected, in the order in which it was collected or stands in the input.
#[derive(Debug, Clone, Default)]
pub struct RawSet {
    items: Vec<RawItem>,
    /// True when the items were taken from a machine by gpudx itself, so that the set of items is
    /// known to be complete as far as [`crate::wanted`] goes.
    pub live: bool,
}

impl RawSet {
    /// An empty set.
    pub fn new() -> RawSet {
        RawSet::default()
    }

    /// Adds an item at the end.
    pub fn push(&mut self, item: RawItem) {
        self.items.push(item);
    }

    /// Adds all items of another set at the end.
    pub fn append(&mut self, other: RawSet) {
        self.items.extend(other.items);
    }

    /// All items, in order.
    pub fn items(&self) -> impl Iterator<Item = &RawItem> {
        self.items.iter()
    }

    /// The items that are files at exactly this path.
    pub fn files<'a>(&'a self, path: &'a str) -> impl Iterator<Item = &'a RawItem> {
        self.items.iter().filter(move |item| matches!(&item.name, ItemName::File(p) if p == path))
    }

    /// The items that are files below this folder (given without a trailing slash).
    pub fn below<'a>(&'a self, folder: &'a str) -> impl Iterator<Item = (&'a str, &'a RawItem)> {
        self.items.iter().filter_map(move |item| match &item.name {
            ItemName::File(path) => {
                let rest = path.strip_prefix(folder)?.strip_prefix('/')?;
                Some((rest, item))
            }
            ItemName::Command(_) | ItemName::Probe { .. } | ItemName::Text(_) => None,
        })
    }

    /// The records of one probe, in order of trials.
    pub fn probes<'a>(&'a self, wanted: &'a str) -> impl Iterator<Item = (u32, &'a RawItem)> {
        self.items.iter().filter_map(move |item| match &item.name {
            ItemName::Probe { name, trial } if name == wanted => Some((*trial, item)),
            _ => None,
        })
    }

    /// How many items there are.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// True when there is no item.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

impl FromIterator<RawItem> for RawSet {
    fn from_iter<I: IntoIterator<Item = RawItem>>(iter: I) -> Self {
        RawSet { items: iter.into_iter().collect(), live: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn item_names_round_trip() {
        for text in ["/proc/modules", "$ nvidia-smi -q", "probe:cuinit#3", "text:a report.txt"] {
            let name = ItemName::parse(text).unwrap();
            assert_eq!(name.to_string(), text);
        }
        assert_eq!(ItemName::parse("probe:cuinit"), None);
        assert_eq!(ItemName::parse("nonsense"), None);
    }

    #[test]
    fn lines_of_a_cut_item_count_in_the_input() {
        let mut item = RawItem::new(ItemName::File("/proc/modules".into()), *b"one\ntwo\n");
        assert_eq!(item.origin_of_line(2).to_string(), "/proc/modules:2");
        item.cut_from = Some((Arc::from("report.txt"), 40));
        let origin = item.origin_of_line(2);
        assert_eq!(origin.to_string(), "report.txt:41");
        assert_eq!(&*origin.excerpt, "two");
    }
}
