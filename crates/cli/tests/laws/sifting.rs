//! A report within a log that is too long to be kept whole is found under the same lines. What was
//! left out proves nothing, so that a verdict may be weaker; it is never another one.

use std::fs;

use facts::raw::{ItemName, RawSet};
use probe::source::{TextInput, TextLimits, collect_text_within};
use reason::Verdict;

use crate::corpus::{Outcome, cases, decided, none_of};
use crate::rewrite::noise;

/// Lines before and after, more than the ends hold.
const NOISE_LINES: u32 = 60;

/// Of a hundred reports, those at least in which the same cause comes first all the same.
const LEAST_SAME: usize = 90;

#[test]
fn a_report_in_a_long_log_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.txt");
    let limits = TextLimits { whole_bytes: 1 << 10, end_bytes: 1 << 10, ..TextLimits::default() };
    let (mut faults, mut tried, mut same) = (Vec::new(), 0, 0);
    for case in cases() {
        let Some(text) = only_text(&case.raw) else { continue };
        fs::write(&path, noise::around(&text, NOISE_LINES)).unwrap();
        let sifted = collect_text_within(&[TextInput::File(path.clone())], limits).unwrap();
        assert!(sifted.items().all(|item| item.partial), "{} was kept whole", case.name);
        let (before, after) = (Outcome::of(&case.raw), Outcome::of(&sifted));
        tried += 1;
        let is_same = before.first.map(|(id, _)| id) == after.first.map(|(id, _)| id);
        same += usize::from(is_same);
        let first = after.first.filter(|(_, verdict)| *verdict == Verdict::Confirmed);
        if first.is_some_and(|(id, _)| !is_same && !decided(&case.raw).contains(id)) {
            faults.push(format!("{}: {before:?} becomes {after:?}", case.name));
        }
    }
    none_of(&faults);
    assert!(same * 100 >= tried * LEAST_SAME, "only {same} of {tried} are the same");
}

/// The text of a case that consists of one.
fn only_text(raw: &RawSet) -> Option<String> {
    let mut items = raw.items();
    let item = items.next().filter(|item| matches!(item.name, ItemName::Text(_)))?;
    items.next().is_none().then(|| item.text().unwrap_or_default().into_owned())
}
