//! The stages as a person reads them.

use std::cmp::Reverse;
use std::io::{self, Write};

use reason::diagnose::Finding;
use reason::{Evidence, State};

use super::{Shift, Stage, Turn, turn};
use crate::Report;
use crate::screen::{Options, Role, Screen, Span};
use crate::terminal::remedy;
use crate::view;

/// Writes the walk through the stages.
pub fn write(out: &mut impl Write, stages: &[Stage], options: Options) -> io::Result<()> {
    let mut screen = Screen::new(out, options);
    let mut before = None;
    for (number, stage) in stages.iter().enumerate() {
        let title = format!("Stage {} of {}: {}", number + 1, stages.len(), stage.title);
        screen.paragraph(0, &Span::new(title, Role::Strong))?;
        write_stage(&mut screen, stage, &turn(before, stage), before.is_some())?;
        screen.gap();
        before = Some(stage);
    }
    conclusion(&mut screen, stages)
}

fn write_stage<W: Write>(
    screen: &mut Screen<'_, W>,
    stage: &Stage,
    turn: &Turn,
    later: bool,
) -> io::Result<()> {
    let report = Report { diagnosis: &stage.diagnosis, facts: &stage.facts, input: &stage.title };
    let mut rows = Vec::new();
    let mut add = |label: &str, role: Role, texts: Vec<String>| {
        for (number, text) in texts.into_iter().enumerate() {
            let label = if number == 0 { label } else { "" };
            rows.push(vec![Span::new(label, role), Span::plain(text)]);
        }
    };
    add("seen", Role::Bad, turn.appeared.clone());
    add("gone", Role::Good, turn.vanished.clone());
    let changes = turn.changed.iter().take(CHANGES_SHOWN);
    add(
        "changed",
        Role::Strong,
        changes.map(|change| format!("{}: {} → {}", change.name, change.from, change.to)).collect(),
    );
    let label = if later { "remains" } else { "believed" };
    add(label, Role::Doubt, turn.in_play.iter().map(believed).collect());
    add("refuted", Role::Good, refuted(turn, later));
    add("no longer", Role::Dim, dropped(turn));
    add("still open", Role::Doubt, open(turn));
    let notes = stage.diagnosis.notes.iter();
    add(
        "note",
        Role::Plain,
        notes.map(|note| format!("{} ({})", note.text, note.origin)).collect(),
    );
    screen.grid(2, &rows)?;
    screen.paragraph(2, &Span::new(view::verdict_sentence(&report), verdict_role(stage)))
}

/// Observations that changed, at most so many: the rest is under `gpudx read -v`.
const CHANGES_SHOWN: usize = 6;

/// Causes that wait for an observation, at most so many with what they need.
const OPEN_SHOWN: usize = 4;

/// Pieces of evidence for one cause, at most so many.
const EVIDENCE_SHOWN: usize = 4;

/// Causes refuted that nobody had in play, at most so many by name.
const REFUTED_SHOWN: usize = 8;

fn verdict_role(stage: &Stage) -> Role {
    match stage.diagnosis.state {
        State::Healthy | State::NoGpu => Role::Good,
        State::Fault => Role::Bad,
        State::Undetermined => Role::Doubt,
    }
}

fn refuted(turn: &Turn, later: bool) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    for refutation in turn.refuted.iter().take(REFUTED_SHOWN) {
        let was = match refutation.was {
            Some(was) if later => format!(" ({was} until now)"),
            _ => String::new(),
        };
        texts.push(format!("{}{was}: {}", refutation.id, quoted(&refutation.by)));
    }
    let rest = turn.refuted.len().saturating_sub(REFUTED_SHOWN);
    if rest > 0 {
        texts.push(format!("and {rest} more"));
    }
    texts
}

/// The strongest pieces with their origins.
fn quoted(pieces: &[Evidence]) -> String {
    let mut ranked: Vec<&Evidence> = pieces.iter().collect();
    ranked.sort_by_key(|piece| Reverse(piece.strength));
    let text = |piece: &&Evidence| format!("{} ({})", piece.statement, piece.origin);
    let mut texts: Vec<String> = ranked.iter().take(EVIDENCE_SHOWN).map(text).collect();
    let rest = pieces.len().saturating_sub(EVIDENCE_SHOWN);
    if rest > 0 {
        texts.push(format!("and {rest} more"));
    }
    texts.join("; ")
}

fn believed(shift: &Shift) -> String {
    let standing = match shift.from {
        Some(from) if from != shift.to => format!("{from} → {}", shift.to),
        Some(_) => format!("still {}", shift.to),
        None => shift.to.to_owned(),
    };
    let evidence = if shift.new_evidence.is_empty() {
        String::new()
    } else {
        format!("; since {}", quoted(&shift.new_evidence))
    };
    format!("{} ({standing}): {}{evidence}", shift.id, shift.claim)
}

fn dropped(turn: &Turn) -> Vec<String> {
    if turn.dropped.is_empty() {
        return Vec::new();
    }
    vec![format!("{}: there is nothing left for it to explain", turn.dropped.join(", "))]
}

fn open(turn: &Turn) -> Vec<String> {
    let shown = turn.open.iter().take(OPEN_SHOWN);
    let mut texts: Vec<String> = shown.map(|(id, need)| format!("{id}: needs {need}")).collect();
    let rest = turn.open.iter().skip(OPEN_SHOWN).map(|(id, _)| *id).collect::<Vec<_>>();
    if !rest.is_empty() {
        texts.push(format!("and {}", rest.join(", ")));
    }
    texts
}

/// The best cause of the last stage that had one, its remedy, and whether a later stage shows
/// that it was right.
fn conclusion<W: Write>(screen: &mut Screen<'_, W>, stages: &[Stage]) -> io::Result<()> {
    let last_cause = stages.iter().enumerate().rev().find_map(|(number, stage)| {
        stage.diagnosis.causes.first().map(|finding| (number, finding))
    });
    let Some((number, finding)) = last_cause else {
        return screen.paragraph(0, &Span::new("What remained: no cause was named.", Role::Strong));
    };
    screen.title("What remained: ", finding.cause.claim, &label(finding))?;
    if let Some(text) = borne_out(stages, number) {
        screen.paragraph(2, &Span::new(text, Role::Good))?;
    }
    remedy::write(screen, &finding.remedy, None)
}

fn label(finding: &Finding) -> String {
    format!("[{}, {}]", finding.cause.id, finding.verdict.name())
}

fn borne_out(stages: &[Stage], number: usize) -> Option<String> {
    let sick = stages.get(number)?;
    let (at, healthy) = stages
        .iter()
        .enumerate()
        .skip(number + 1)
        .find(|(_, stage)| stage.diagnosis.state == State::Healthy)?;
    let changes = turn(Some(sick), healthy).changed;
    let changes: Vec<String> = changes
        .iter()
        .take(CHANGES_SHOWN)
        .map(|change| format!("{} went from {} to {}", change.name, change.from, change.to))
        .collect();
    let between = if changes.is_empty() {
        String::new()
    } else {
        format!(", after {}", changes.join(" and "))
    };
    Some(format!("Stage {} bears it out: the machine is healthy{between}.", at + 1))
}
