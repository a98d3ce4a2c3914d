//! A report within a log that is too long to be kept whole gives the same verdict, under the same
//! lines.

use std::fs;

use facts::raw::{ItemName, RawSet};
use probe::source::{TextInput, TextLimits, collect_text_within};

use crate::corpus::{Outcome, cases, none_of};
use crate::rewrite::noise;

/// Lines before and after, more than the ends hold.
const NOISE_LINES: u32 = 400;

#[test]
fn a_report_in_a_long_log_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let limits = TextLimits { whole_bytes: 1 << 10, end_bytes: 1 << 10, ..TextLimits::default() };
    let mut faults = Vec::new();
    for case in cases() {
        let Some(text) = only_text(&case.raw) else { continue };
        let long = noise::around(&text, NOISE_LINES);
        let path = folder.path().join("report.txt");
        fs::write(&path, &long).unwrap();
        let sifted = collect_text_within(&[TextInput::File(path)], limits).unwrap();
        assert!(sifted.items().all(|item| item.partial), "{} was kept whole", case.name);
        let (before, after) = (Outcome::of(&case.raw), Outcome::of(&sifted));
        if before != after {
            faults.push(format!("{}: {before:?} becomes {after:?}", case.name));
        }
    }
    none_of(&faults);
}

/// The text of a case that consists of one.
fn only_text(raw: &RawSet) -> Option<String> {
    let mut items = raw.items();
    let item = items.next().filter(|item| matches!(item.name, ItemName::Text(_)))?;
    items.next().is_none().then(|| item.text().unwrap_or_default().into_owned())
}
