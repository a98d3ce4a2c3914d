//! How a text was pasted changes no verdict, nor does what is unrelated.

use facts::raw::{ItemName, RawSet};

use crate::corpus::{Case, Outcome, cases, none_of, with_texts};
use crate::rewrite::{blocks, form, noise, values};

/// The rewriting changes some texts, and nothing of what comes out of any.
#[track_caller]
fn changes_nothing(rewrite: impl Fn(&str) -> Vec<u8>) {
    changes_nothing_of(cases().iter(), |raw| with_texts(raw, &rewrite));
}

#[track_caller]
fn changes_nothing_of<'a>(
    cases: impl Iterator<Item = &'a Case>,
    change: impl Fn(&RawSet) -> Option<RawSet>,
) {
    let mut faults = Vec::new();
    let mut tried = 0;
    for case in cases {
        let Some(changed) = change(&case.raw) else { continue };
        tried += 1;
        let (before, after) = (Outcome::of(&case.raw), Outcome::of(&changed));
        if before != after {
            faults.push(format!("{}: {before:?} becomes {after:?}", case.name));
        }
    }
    assert!(tried > 5, "only {tried} cases were changed at all");
    none_of(&faults);
}

#[test]
fn line_ends() {
    changes_nothing(|text| form::with_carriage_returns(text).into_bytes());
}

#[test]
fn encoding() {
    changes_nothing(form::in_utf16);
}

#[test]
fn quoting() {
    changes_nothing(|text| form::quoted(text).into_bytes());
}

#[test]
fn trailing_blanks() {
    changes_nothing(|text| form::with_trailing_blanks(text).into_bytes());
}

#[test]
fn prompts() {
    changes_nothing(|text| form::with_other_prompts(text).into_bytes());
}

#[test]
fn colored_prompts() {
    changes_nothing(|text| form::with_colored_prompts(text).into_bytes());
}

#[test]
fn time_stamps() {
    changes_nothing(|text| values::later(text).into_bytes());
}

#[test]
fn pci_addresses() {
    changes_nothing(|text| values::on_other_buses(text).into_bytes());
}

#[test]
fn versions_of_unrelated_packages() {
    changes_nothing(|text| values::with_other_packages(text).into_bytes());
}

#[test]
fn order_of_independent_outputs() {
    changes_nothing(|text| blocks::in_other_order(text).into_bytes());
}

#[test]
fn order_of_items() {
    let reversed = |raw: &RawSet| {
        // Texts are read in the order in which they were given, as a story goes on.
        let (texts, others): (Vec<_>, Vec<_>) =
            raw.items().cloned().partition(|item| matches!(item.name, ItemName::Text(_)));
        let mut set: RawSet = others.into_iter().rev().chain(texts).collect();
        set.live = raw.live;
        (set.len() > 1).then_some(set)
    };
    changes_nothing_of(cases().iter(), reversed);
}

#[test]
fn a_few_unrelated_lines() {
    changes_nothing(|text| noise::around(text, 20).into_bytes());
}

/// A case of every cause. A build without optimization reads slowly, so that several tests share
/// the causes among them.
fn ten_thousand_unrelated_lines(share: usize) {
    let group = |case: &Case| case.name.split('/').next().unwrap_or_default().to_owned();
    let mut seen = std::collections::BTreeSet::new();
    let firsts = cases().iter().filter(|case| {
        let is_text = case.raw.items().any(|item| matches!(item.name, ItemName::Text(_)));
        is_text && seen.insert(group(case))
    });
    changes_nothing_of(firsts.skip(share).step_by(SHARES), |raw| {
        with_texts(raw, |text| noise::around(text, 5_000).into_bytes())
    });
}

/// Among how many tests the causes are shared.
const SHARES: usize = 4;

#[test]
fn ten_thousand_unrelated_lines_first_share() {
    ten_thousand_unrelated_lines(0);
}

#[test]
fn ten_thousand_unrelated_lines_second_share() {
    ten_thousand_unrelated_lines(1);
}

#[test]
fn ten_thousand_unrelated_lines_third_share() {
    ten_thousand_unrelated_lines(2);
}

#[test]
fn ten_thousand_unrelated_lines_fourth_share() {
    ten_thousand_unrelated_lines(3);
}
