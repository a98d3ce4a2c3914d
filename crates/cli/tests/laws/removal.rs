//! A confirmed cause stands and falls with its decisive evidence: without the lines that it cites
//! it is no longer confirmed, and no other cause is confirmed in its stead.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use facts::Origin;
use facts::parse::transcript;
use facts::raw::{ItemName, RawItem, RawSet, RawState};
use reason::{Diagnosis, Strength, Verdict};

use crate::corpus::{Case, cases, decided, diagnose, none_of, with_items};

/// A log may say the same on many lines, each of which must go before the cause does.
const ROUNDS: usize = 64;

#[test]
fn without_its_decisive_evidence_nothing_is_confirmed() {
    let mut faults = Vec::new();
    let mut tried = 0;
    for case in cases() {
        let diagnosis = diagnose(&case.raw);
        if let Some(first) =
            diagnosis.causes.first().filter(|first| first.verdict == Verdict::Confirmed)
        {
            tried += 1;
            let known = decided(&case.raw);
            faults.extend(fault(case, first.cause.id, &known));
        }
    }
    assert!(tried > 50, "only {tried} cases have a confirmed cause");
    none_of(&faults);
}

/// What is wrong with a case whose first cause, `id`, is confirmed.
fn fault(case: &Case, id: &str, known: &BTreeSet<&str>) -> Option<String> {
    let mut raw = case.raw.clone();
    let mut removed = Vec::new();
    for _ in 0..ROUNDS {
        let diagnosis = diagnose(&raw);
        if let Some(other) = confirmed(&diagnosis).find(|id| !known.contains(id)) {
            return Some(format!("{}: without {removed:?} {other} is confirmed", case.name));
        }
        let decisive = decisive(&diagnosis, id);
        if decisive.is_empty() {
            return None;
        }
        for origin in decisive {
            let Some(without) = without(&raw, &origin) else {
                let what = format!("{origin} ({:?})", origin.excerpt);
                return Some(format!("{}: {id} cites {what}, which is not there", case.name));
            };
            raw = without;
            removed.push(origin.to_string());
        }
    }
    Some(format!("{}: {id} is confirmed without {removed:?}", case.name))
}

fn confirmed(diagnosis: &Diagnosis) -> impl Iterator<Item = &'static str> {
    let findings = diagnosis.causes.iter().filter(|finding| finding.verdict == Verdict::Confirmed);
    findings.map(|finding| finding.cause.id)
}

/// Where the decisive evidence stands as long as the cause is confirmed, each place once.
fn decisive(diagnosis: &Diagnosis, id: &str) -> BTreeSet<Origin> {
    let findings = diagnosis.causes.iter();
    let confirmed = findings.filter(|f| f.cause.id == id && f.verdict == Verdict::Confirmed);
    confirmed
        .flat_map(|finding| &finding.weighing.support)
        .filter(|piece| piece.strength == Strength::Decisive)
        .map(|piece| piece.origin.clone())
        .collect()
}

/// What a person writes for what was left out.
const LEFT_OUT: &str = "[...]";

/// The input without what an origin cites. A line is left out, and the text says so: a listing
/// without it would state its absence. A whole item could not be looked at. `None` when nothing
/// like it is there.
fn without(raw: &RawSet, origin: &Origin) -> Option<RawSet> {
    let target = origin.input.as_ref().unwrap_or(&origin.item);
    let is_cited = |item: &RawItem| match &item.name {
        ItemName::Text(label) => label.as_str() == &**target || item.name.to_string() == **target,
        name => name.to_string() == **target,
    };
    if raw.items().any(is_cited) {
        return changed(raw, |item| is_cited(item).then(|| without_lines(item, origin)).flatten());
    }
    // What was renamed on the way, as the file behind `cat FILE`, is known by its text.
    let excerpt = origin.excerpt.trim_end_matches('…');
    if excerpt.is_empty() {
        return None;
    }
    changed(raw, |item| without_text(item, excerpt))
}

fn changed(raw: &RawSet, change: impl Fn(&RawItem) -> Option<RawItem>) -> Option<RawSet> {
    let mut any = false;
    let set = with_items(raw, |item| {
        let changed = change(item);
        any |= changed.is_some();
        changed.unwrap_or_else(|| item.clone())
    });
    any.then_some(set)
}

fn without_lines(item: &RawItem, origin: &Origin) -> Option<RawItem> {
    if origin.line == 0 {
        return unseen(item);
    }
    let cited = match &item.name {
        // What no line shows, the whole output does.
        ItemName::Text(_) if origin.excerpt.is_empty() => output_around(item, origin.line)?,
        _ => origin.line..=origin.end_line.max(origin.line),
    };
    left_out(item, |number, _| cited.contains(&number))
}

/// The lines of the command and its output in which a line stands.
fn output_around(item: &RawItem, line: u32) -> Option<RangeInclusive<u32>> {
    let text = item.text()?;
    transcript::split(&text).into_iter().find_map(|segment| {
        let first =
            if segment.command.is_some() { segment.command_line } else { segment.first_line };
        let length = u32::try_from(segment.text.lines().count()).unwrap();
        let lines = first..=segment.first_line + length.saturating_sub(1);
        lines.contains(&line).then_some(lines)
    })
}

fn without_text(item: &RawItem, excerpt: &str) -> Option<RawItem> {
    left_out(item, |_, line| facts::observed::clean_excerpt(line).contains(excerpt))
}

/// The item without some lines; `None` when they are gone already.
fn left_out(item: &RawItem, drop: impl Fn(u32, &str) -> bool) -> Option<RawItem> {
    let text = item.text()?;
    let is_text = matches!(item.name, ItemName::Text(_));
    let mut out = String::new();
    let mut any = false;
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        if line.trim() != LEFT_OUT && !line.trim().is_empty() && drop(number, line) {
            any = true;
            out.push_str(if is_text { LEFT_OUT } else { "" });
            out.push('\n');
        } else {
            out.push_str(line);
        }
    }
    let mut item = item.clone();
    item.state = RawState::Bytes(out.into_bytes().into());
    item.partial |= !is_text;
    any.then_some(item)
}

/// The item as one that nobody could look at.
fn unseen(item: &RawItem) -> Option<RawItem> {
    let mut unseen = item.clone();
    unseen.state = RawState::TimedOut;
    (item.state != RawState::TimedOut).then_some(unseen)
}
