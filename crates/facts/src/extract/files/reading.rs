//! One item on its way into the facts.

use std::borrow::Cow;

use crate::model::{Complaint, Facts};
use crate::observed::{Observed, Origin, Seen, Why};
use crate::parse::{At, LineComplaint};
use crate::raw::{RawItem, RawState};

/// How many complaints of one item are kept one by one; the rest are counted.
const COMPLAINT_LIMIT: usize = 20;

/// Taking in what one more item says.
pub(super) trait Learn<T> {
    /// As [`Observed::or_better`], and the reason why nothing is known (it did not end in time, it
    /// could not be understood) is worth more than none.
    fn learn(&mut self, other: Observed<T>);
}

impl<T> Learn<T> for Observed<T> {
    fn learn(&mut self, other: Observed<T>) {
        match self {
            Observed::Unknown(Why::NotTried | Why::NotInInput) => *self = other,
            _ => self.or_better(other),
        }
    }
}

/// An item and its path on the observed machine.
pub(super) struct Reading<'a> {
    pub(super) item: &'a RawItem,
    pub(super) path: &'a str,
}

impl<'a> Reading<'a> {
    pub(super) fn new(item: &'a RawItem, path: &'a str) -> Reading<'a> {
        Reading { item, path }
    }

    /// The text, when there are bytes.
    pub(super) fn text(&self) -> Option<Text<'a>> {
        self.item.text().map(|text| Text { item: self.item, text })
    }

    /// The last component of the path.
    pub(super) fn file_name(&self) -> &'a str {
        self.path.rsplit('/').next().unwrap_or(self.path)
    }

    /// The component of the path at this place, the first being 0.
    pub(super) fn component(&self, place: usize) -> Option<&'a str> {
        self.path.split('/').filter(|component| !component.is_empty()).nth(place)
    }

    /// Why there are no bytes, as an observation of anything. `None` when there are bytes.
    pub(super) fn without_bytes<T>(&self) -> Option<Observed<T>> {
        match &self.item.state {
            RawState::Bytes(_) => None,
            RawState::Absent => Some(Observed::Absent(self.item.origin())),
            RawState::Denied(errno) => Some(Observed::Denied(*errno, self.item.origin())),
            RawState::TimedOut => Some(Observed::Unknown(Why::TimedOut(self.item.origin()))),
        }
    }

    /// A file with one value: what `read` makes of its text. `None` from it is `Unparsed`.
    pub(super) fn single<T>(&self, read: impl FnOnce(&str) -> Option<T>) -> Observed<T> {
        if let Some(other) = self.without_bytes() {
            return other;
        }
        let text = self.item.text().unwrap_or_default();
        let origin = self.item.origin_at(1, &text);
        match read(&text) {
            Some(value) => Observed::seen(value, origin),
            None => Observed::Unknown(Why::Unparsed(origin)),
        }
    }

    /// The names in a folder's listing. A part of a listing is no listing.
    pub(super) fn listing(&self) -> Observed<Vec<String>> {
        match self.without_bytes() {
            Some(other) => other,
            None if self.item.partial => Observed::default(),
            None => {
                let text = self.item.text().unwrap_or_default();
                let names = text.lines().map(str::trim).filter(|name| !name.is_empty());
                Observed::seen(names.map(str::to_owned).collect(), self.item.origin())
            }
        }
    }

    /// True when the item shows by itself that the input is about a GPU: something of the driver's
    /// own was found, or a user asked for it by name.
    pub(super) fn names_the_driver(&self) -> bool {
        let found = self.item.bytes().is_some_and(|bytes| !bytes.is_empty());
        self.path.contains("nvidia") && (found || self.item.cut_from.is_some())
    }

    /// Keeps what a parser could not make sense of.
    pub(super) fn complain(&self, complaints: &[LineComplaint], facts: &mut Facts) {
        enter_complaints(self.item, complaints, facts);
    }
}

/// Keeps what a parser could not make sense of; of a flood the first ones and their number.
pub(super) fn enter_complaints(item: &RawItem, complaints: &[LineComplaint], facts: &mut Facts) {
    let Some(text) = item.text().filter(|_| !complaints.is_empty()) else {
        return;
    };
    let text = Text { item, text };
    let mut lines = text.lines();
    for complaint in complaints.iter().take(COMPLAINT_LIMIT) {
        let origin = lines.origin(complaint.line);
        facts.complaints.push(Complaint { problem: complaint.problem.clone(), origin });
    }
    let left = complaints.len().saturating_sub(COMPLAINT_LIMIT);
    if left > 0 {
        let problem = format!("{left} more lines that were not understood");
        facts.complaints.push(Complaint { problem, origin: item.origin() });
    }
}

/// An item's text.
pub(super) struct Text<'a> {
    item: &'a RawItem,
    text: Cow<'a, str>,
}

impl Text<'_> {
    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// Origins for lines of the text, to be asked for in rising order.
    pub(super) fn lines(&self) -> Lines<'_> {
        Lines { item: self.item, rest: self.text.lines(), line: 0, current: "" }
    }
}

/// Makes origins for lines that are asked for in rising order, going through the text once.
pub(super) struct Lines<'a> {
    item: &'a RawItem,
    rest: std::str::Lines<'a>,
    line: u32,
    current: &'a str,
}

impl Lines<'_> {
    /// The origin of a line, from 1; of the whole item for 0. A line before the one asked for last
    /// gets no excerpt.
    pub(super) fn origin(&mut self, line: u32) -> Origin {
        while self.line < line {
            let Some(next) = self.rest.next() else { break };
            self.current = next;
            self.line += 1;
        }
        let excerpt = if self.line == line { self.current } else { "" };
        self.item.origin_at(line, excerpt)
    }

    /// A value with the origin of its line.
    pub(super) fn seen<T>(&mut self, at: At<T>) -> Seen<T> {
        let origin = self.origin(at.line);
        Seen::new(at.value, origin)
    }

    /// A value with the origin of its line, as an observation.
    pub(super) fn observed<T>(&mut self, at: At<T>) -> Observed<T> {
        Observed::Seen(self.seen(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw::ItemName;

    #[test]
    fn origins_in_rising_order_carry_their_lines() {
        let item = RawItem::new(ItemName::File("/x".into()), *b"one\ntwo\nthree\n");
        let reading = Reading::new(&item, "/x");
        let text = reading.text().unwrap();
        let mut lines = text.lines();
        assert_eq!(&*lines.origin(2).excerpt, "two");
        assert_eq!(&*lines.origin(2).excerpt, "two");
        assert_eq!(&*lines.origin(3).excerpt, "three");
        assert_eq!(&*lines.origin(9).excerpt, "");
    }

    #[test]
    fn a_flood_of_complaints_is_counted() {
        let item = RawItem::new(ItemName::File("/x".into()), "bad\n".repeat(100).into_bytes());
        let complaints: Vec<LineComplaint> =
            (1..=100).map(|line| LineComplaint { line, problem: "bad".into() }).collect();
        let mut facts = Facts::default();
        enter_complaints(&item, &complaints, &mut facts);
        assert_eq!(facts.complaints.len(), COMPLAINT_LIMIT + 1);
        let last = facts.complaints.last().unwrap();
        assert_eq!(last.problem, "80 more lines that were not understood");
    }
}
