//! A confirmed cause stands and falls with its decisive evidence: without the lines that it cites
//! it is no longer confirmed, and no other cause is confirmed in its stead.

use std::collections::BTreeSet;

use facts::Origin;
use facts::raw::{ItemName, RawItem, RawSet, RawState};
use reason::{CAUSES, Diagnosis, Strength, Verdict};

use crate::corpus::{Case, cases, diagnose, none_of, with_items};

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
            let known = confirmed_at_first(&case.raw);
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

/// The causes for which the facts are enough, also those that a more specific one replaces.
fn confirmed_at_first(raw: &RawSet) -> BTreeSet<&'static str> {
    let facts = facts::extract(raw);
    let confirmed =
        CAUSES.iter().filter(|cause| (cause.weigh)(&facts).verdict() == Verdict::Confirmed);
    confirmed.map(|cause| cause.id).collect()
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

/// The input without what an origin cites: a line is blanked, a whole item could not be looked at.
/// `None` when nothing like it is there.
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
    let cited = origin.line as usize..=origin.end_line.max(origin.line) as usize;
    blanked(item, |number, _| cited.contains(&number))
}

fn without_text(item: &RawItem, excerpt: &str) -> Option<RawItem> {
    blanked(item, |_, line| facts::observed::clean_excerpt(line).contains(excerpt))
}

/// The item with some lines blanked; `None` when they are blank already.
fn blanked(item: &RawItem, drop: impl Fn(usize, &str) -> bool) -> Option<RawItem> {
    let text = item.text()?;
    let mut out = String::new();
    let mut any = false;
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        if !line.trim().is_empty() && drop(number, line) {
            any = true;
            out.push('\n');
        } else {
            out.push_str(line);
        }
    }
    let mut item = item.clone();
    item.state = RawState::Bytes(out.into_bytes().into());
    any.then_some(item)
}

/// The item as one that nobody could look at.
fn unseen(item: &RawItem) -> Option<RawItem> {
    let mut unseen = item.clone();
    unseen.state = RawState::TimedOut;
    (item.state != RawState::TimedOut).then_some(unseen)
}
