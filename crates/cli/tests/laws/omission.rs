//! Whoever pastes an output may leave a line out and not say so: what a text no longer shows
//! confirms no cause that the whole text did not decide, unless it is the right one, and does not
//! rule out the right one.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use facts::raw::{ItemName, RawItem, RawSet, RawState};
use reason::{CAUSES, Verdict};
use synth::expectations::{Expected, corpus};

use crate::corpus::{Case, cases, decided, diagnose, none_of, with_items};

/// The cases are dealt to several tests, since each line of each is a diagnosis of its own.
const SHARES: usize = 4;

#[test]
fn a_line_that_was_left_out_decides_nothing_in_the_first_share() {
    share(0);
}

#[test]
fn a_line_that_was_left_out_decides_nothing_in_the_second_share() {
    share(1);
}

#[test]
fn a_line_that_was_left_out_decides_nothing_in_the_third_share() {
    share(2);
}

#[test]
fn a_line_that_was_left_out_decides_nothing_in_the_fourth_share() {
    share(3);
}

fn share(first: usize) {
    let mut faults = Vec::new();
    let mut tried = 0;
    for case in cases().iter().skip(first).step_by(SHARES) {
        tried += without_each_line(case, &mut faults);
    }
    assert!(tried > 500, "only {tried} lines were left out");
    none_of(&faults);
}

/// Leaves out each line of each text and output in turn. Returns how many.
fn without_each_line(case: &Case, faults: &mut Vec<String>) -> usize {
    let known = decided(&case.raw);
    let right = Expected::of(&corpus().join(&case.name)).unwrap().top;
    let is_right = |id: &str| right.iter().any(|top| top == id);
    let cited = cited(&case.raw, &right);
    let is_known = |id: &str| known.contains(id) || is_right(id);
    let mut tried = 0;
    for item in case.raw.items().filter(|item| was_pasted(item)) {
        let Some(text) = item.text() else { continue };
        for (number, line) in (1_usize..).zip(text.lines()).filter(|(_, line)| is_listed(line)) {
            tried += 1;
            let diagnosis = diagnose(&without(&case.raw, item, number));
            let cited = cited.contains(&number) || cited.contains(&(number + 1));
            for out in diagnosis.ruled_out.iter().filter(|out| is_right(out.cause.id) && !cited) {
                let id = out.cause.id;
                faults.push(format!("{}: without {line:?} {id} is ruled out", case.name));
            }
            let confirmed =
                diagnosis.causes.iter().filter(|cause| cause.verdict == Verdict::Confirmed);
            for finding in confirmed.filter(|finding| !is_known(finding.cause.id)) {
                faults.push(format!(
                    "{}: without {line:?} {} is confirmed",
                    case.name, finding.cause.id
                ));
            }
        }
    }
    tried
}

/// The lines that speak for the right cause: without them something else may look right. An answer
/// that is cited goes with the line of its command.
fn cited(raw: &RawSet, right: &[String]) -> BTreeSet<usize> {
    let facts = facts::extract(raw);
    let causes = CAUSES.iter().filter(|cause| right.iter().any(|id| id == cause.id));
    let support = causes.flat_map(|cause| (cause.weigh)(&facts).support);
    support.map(|piece| usize::try_from(piece.origin.line).unwrap()).collect()
}

/// A log is no list: without the first Xid of a burst, the head of a message or the top frame of a
/// stack it tells of something else, and is right.
fn is_listed(line: &str) -> bool {
    !line.trim().is_empty() && !line.contains("NVRM:") && !line.contains("+0x")
}

fn was_pasted(item: &RawItem) -> bool {
    matches!(item.name, ItemName::Text(_) | ItemName::Command(_))
}

/// The set without one line (from 1) of one of its items, and nothing in its place.
fn without(raw: &RawSet, item: &RawItem, number: usize) -> RawSet {
    with_items(raw, |other| {
        let mut other = other.clone();
        if other.name == item.name {
            let text = item.text().unwrap();
            let lines = (1_usize..).zip(text.split_inclusive('\n'));
            let kept: String =
                lines.filter(|(at, _)| *at != number).map(|(_, line)| line).collect();
            other.state = RawState::Bytes(kept.into_bytes().into());
        }
        other
    })
}
