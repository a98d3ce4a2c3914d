//! The cases, and what came out of an input.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::sync::LazyLock;

use facts::raw::{ItemName, RawItem, RawSet, RawState};
use reason::{CAUSES, Diagnosis, State, Strength, Verdict};
use synth::expectations;

/// A case with its raw items.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) raw: RawSet,
}

/// All cases.
pub(crate) fn cases() -> &'static [Case] {
    static CASES: LazyLock<Vec<Case>> = LazyLock::new(|| {
        let folders = expectations::cases();
        assert!(folders.len() > 100, "the corpus is not where it should be");
        folders
            .iter()
            .map(|folder| Case {
                name: expectations::name(folder),
                raw: probe::source::collect_case(folder).unwrap(),
            })
            .collect()
    });
    &CASES
}

pub(crate) fn diagnose(raw: &RawSet) -> Diagnosis {
    reason::diagnose(&facts::extract(raw))
}

/// What a reader would remember of a diagnosis.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) state: State,
    pub(crate) first: Option<(&'static str, Verdict)>,
}

impl Outcome {
    pub(crate) fn of(raw: &RawSet) -> Outcome {
        let diagnosis = diagnose(raw);
        let first = diagnosis.causes.first();
        Outcome {
            state: diagnosis.state,
            first: first.map(|finding| (finding.cause.id, finding.verdict)),
        }
    }
}

/// The causes for which something decisive speaks, also those that a more specific one replaces
/// or that an objection holds back.
pub(crate) fn decided(raw: &RawSet) -> BTreeSet<&'static str> {
    let facts = facts::extract(raw);
    let decided = CAUSES.iter().filter(|cause| {
        let support = (cause.weigh)(&facts).support;
        support.iter().any(|piece| piece.strength == Strength::Decisive)
    });
    decided.map(|cause| cause.id).collect()
}

/// The same set with some items changed.
pub(crate) fn with_items(raw: &RawSet, mut change: impl FnMut(&RawItem) -> RawItem) -> RawSet {
    let mut changed: RawSet = raw.items().map(&mut change).collect();
    changed.live = raw.live;
    changed
}

/// The same set with its pasted texts rewritten; `None` when that changes nothing.
pub(crate) fn with_texts(raw: &RawSet, rewrite: impl Fn(&str) -> Vec<u8>) -> Option<RawSet> {
    let mut is_changed = false;
    let changed = with_items(raw, |item| {
        let mut item = item.clone();
        if let (ItemName::Text(_), Some(text)) = (&item.name, item.text()) {
            let bytes = rewrite(&text);
            is_changed |= item.bytes() != Some(&bytes[..]);
            item.state = RawState::Bytes(bytes.into());
        }
        item
    });
    is_changed.then_some(changed)
}

/// Fails with all that is wrong.
#[track_caller]
pub(crate) fn none_of(faults: &[String]) {
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}
