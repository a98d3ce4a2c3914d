//! What one stage changes against the one before.

use reason::{Diagnosis, Evidence, Verdict};

use super::Stage;
use crate::observations::{self, Observation};

/// A cause that this stage rules out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refutation {
    /// The cause.
    pub id: &'static str,
    /// What it was before: `possible`, `not judged`; `None` when it had not come up.
    pub was: Option<&'static str>,
    /// What rules it out.
    pub by: Vec<Evidence>,
}

/// A cause in play whose standing changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shift {
    /// The cause.
    pub id: &'static str,
    /// Its claim.
    pub claim: &'static str,
    /// What it was before, if it was in play or waiting to be judged.
    pub from: Option<&'static str>,
    /// What it is now.
    pub to: &'static str,
    /// The evidence that was not there before.
    pub new_evidence: Vec<Evidence>,
}

/// An observation that gives another value than before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Which.
    pub name: String,
    /// The value before.
    pub from: String,
    /// The value now.
    pub to: String,
}

/// What one stage changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Turn {
    /// Symptoms that were not there before, by summary.
    pub appeared: Vec<String>,
    /// Symptoms that are gone, by summary.
    pub vanished: Vec<String>,
    /// Causes ruled out now and not before.
    pub refuted: Vec<Refutation>,
    /// Causes in play, with what changed about them, the best first.
    pub in_play: Vec<Shift>,
    /// Causes that were in play and are no longer, without having been ruled out.
    pub dropped: Vec<&'static str>,
    /// Causes that wait for an observation, with the first observation that each lacks.
    pub open: Vec<(&'static str, &'static str)>,
    /// Observations that changed.
    pub changed: Vec<Change>,
}

/// Compares a stage with the one before it, or with knowing nothing.
pub fn turn(before: Option<&Stage>, now: &Stage) -> Turn {
    let earlier = before.map(|stage| &stage.diagnosis);
    Turn {
        appeared: symptoms_only_in(&now.diagnosis, earlier),
        vanished: earlier
            .map(|earlier| symptoms_only_in(earlier, Some(&now.diagnosis)))
            .unwrap_or_default(),
        refuted: refuted(earlier, &now.diagnosis),
        in_play: in_play(earlier, &now.diagnosis),
        dropped: dropped(earlier, &now.diagnosis),
        open: open(&now.diagnosis),
        changed: before.map(|before| changed(before, now)).unwrap_or_default(),
    }
}

fn symptoms_only_in(here: &Diagnosis, there: Option<&Diagnosis>) -> Vec<String> {
    let known = |id, code| {
        let there = there.into_iter().flat_map(|diagnosis| &diagnosis.symptoms);
        there.into_iter().any(|symptom| symptom.id == id && symptom.code == code)
    };
    let new = here.symptoms.iter().filter(|symptom| !known(symptom.id, symptom.code));
    new.map(|symptom| symptom.summary.clone()).collect()
}

/// What a cause was taken for: its verdict in play, `not judged`, or `ruled out`.
fn standing(diagnosis: Option<&Diagnosis>, id: &str) -> Option<&'static str> {
    let diagnosis = diagnosis?;
    if let Some(finding) = diagnosis.causes.iter().find(|finding| finding.cause.id == id) {
        return Some(finding.verdict.name());
    }
    if diagnosis.unknown.iter().any(|unknown| unknown.cause.id == id) {
        return Some("not judged");
    }
    let ruled_out = diagnosis.ruled_out.iter().any(|ruled_out| ruled_out.cause.id == id);
    ruled_out.then(|| Verdict::RuledOut.name())
}

fn refuted(earlier: Option<&Diagnosis>, now: &Diagnosis) -> Vec<Refutation> {
    let refutation = |cause: &reason::diagnose::RuledOut| Refutation {
        id: cause.cause.id,
        was: standing(earlier, cause.cause.id),
        by: cause.evidence.clone(),
    };
    let mut refuted: Vec<Refutation> = now.ruled_out.iter().map(refutation).collect();
    refuted.retain(|refutation| refutation.was != Some(Verdict::RuledOut.name()));
    // What somebody believed matters more than what nobody had thought of.
    refuted.sort_by_key(|refutation| match refutation.was {
        None => 2,
        Some("not judged") => 1,
        Some(_) => 0,
    });
    refuted
}

fn in_play(earlier: Option<&Diagnosis>, now: &Diagnosis) -> Vec<Shift> {
    let findings = now.causes.iter();
    let shift = |finding: &reason::diagnose::Finding| {
        let id = finding.cause.id;
        let known: Vec<&str> = earlier
            .and_then(|earlier| earlier.causes.iter().find(|known| known.cause.id == id))
            .map(|known| known.weighing.support.iter().map(|p| p.statement.as_str()).collect())
            .unwrap_or_default();
        let is_new = |piece: &&Evidence| !known.contains(&piece.statement.as_str());
        Shift {
            id,
            claim: finding.cause.claim,
            from: standing(earlier, id),
            to: finding.verdict.name(),
            new_evidence: finding.weighing.support.iter().filter(is_new).cloned().collect(),
        }
    };
    findings.map(shift).collect()
}

fn dropped(earlier: Option<&Diagnosis>, now: &Diagnosis) -> Vec<&'static str> {
    let before = earlier.into_iter().flat_map(|diagnosis| &diagnosis.causes);
    before.map(|finding| finding.cause.id).filter(|id| standing(Some(now), id).is_none()).collect()
}

fn open(now: &Diagnosis) -> Vec<(&'static str, &'static str)> {
    let first = |unknown: &reason::diagnose::UnknownCause| {
        Some((unknown.cause.id, unknown.needs.first()?.observe()))
    };
    now.unknown.iter().filter_map(first).collect()
}

/// Single readings that were seen in both stages and differ. Numbered entries of lists are left
/// out, since their place says nothing about what they are; so is what merely became known.
fn changed(before: &Stage, now: &Stage) -> Vec<Change> {
    let earlier = observations::list(&before.facts);
    let comparable =
        |entry: &&Observation| entry.seen && !entry.name.ends_with(']') && !entry.value.is_empty();
    let later = observations::list(&now.facts);
    let mut changes = Vec::new();
    for new in later.iter().filter(comparable) {
        let same_name = |old: &&Observation| old.layer == new.layer && old.name == new.name;
        let Some(old) = earlier.iter().filter(comparable).find(same_name) else { continue };
        if old.value != new.value {
            let name = new.full_name();
            changes.push(Change { name, from: old.value.clone(), to: new.value.clone() });
        }
    }
    changes
}
