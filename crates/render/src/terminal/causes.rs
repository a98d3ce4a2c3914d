//! The causes in play.

use std::cmp::Reverse;
use std::io::{self, Write};

use reason::diagnose::Finding;
use reason::{Diagnosis, Evidence, State, Verdict};

use crate::screen::{Role, Screen, Span};
use crate::view;

pub(super) fn write<W: Write>(screen: &mut Screen<'_, W>, diagnosis: &Diagnosis) -> io::Result<()> {
    screen.gap();
    let in_full = if screen.options().verbose {
        diagnosis.causes.len()
    } else {
        view::shown_in_full(diagnosis)
    };
    let (full, brief) = diagnosis.causes.split_at(in_full.min(diagnosis.causes.len()));
    for finding in full {
        cause(screen, diagnosis.state, finding)?;
    }
    also(screen, brief)?;
    if screen.options().verbose {
        not_judged(screen, diagnosis)?;
    }
    Ok(())
}

fn cause<W: Write>(screen: &mut Screen<'_, W>, state: State, finding: &Finding) -> io::Result<()> {
    let certain = finding.verdict >= Verdict::Likely && state == State::Fault;
    let word = if certain { "Cause: " } else { "Possible cause: " };
    let id = format!("[{}, {}]", finding.cause.id, finding.verdict.name());
    screen.title(word, finding.cause.claim, &id)?;
    if screen.options().verbose {
        let mut rows = evidence_rows("for", &finding.weighing.support);
        rows.extend(evidence_rows("against", &finding.weighing.against));
        return screen.grid(2, &rows);
    }
    screen.grid(
        2,
        &[
            vec![Span::plain("for"), Span::plain(joined(&finding.weighing.support))],
            vec![Span::plain("against"), Span::plain(joined(&finding.weighing.against))],
        ],
    )
}

/// The statements, the strongest first; a dash where there is none.
fn joined(pieces: &[Evidence]) -> String {
    if pieces.is_empty() {
        return "–".to_owned();
    }
    let mut pieces: Vec<&Evidence> = pieces.iter().collect();
    pieces.sort_by_key(|piece| Reverse(piece.strength));
    let statements: Vec<&str> = pieces.iter().map(|piece| piece.statement.as_str()).collect();
    statements.join("; ")
}

/// Each piece with its strength and origin.
fn evidence_rows(side: &str, pieces: &[Evidence]) -> Vec<Vec<Span>> {
    if pieces.is_empty() {
        return vec![vec![Span::plain(side), Span::plain(""), Span::plain("–")]];
    }
    let row = |piece: &Evidence| {
        let excerpt = &piece.origin.excerpt;
        let quote = if excerpt.is_empty() { String::new() } else { format!(": {excerpt}") };
        vec![
            Span::plain(side),
            Span::new(piece.strength.name(), Role::Dim),
            Span::plain(format!("{}  ({}{quote})", piece.statement, piece.origin)),
        ]
    };
    pieces.iter().map(row).collect()
}

/// Causes that were not ruled out and rank below.
fn also<W: Write>(screen: &mut Screen<'_, W>, brief: &[Finding]) -> io::Result<()> {
    if brief.is_empty() {
        return Ok(());
    }
    screen.line(&[Span::new("Not excluded", Role::Strong)])?;
    let row = |finding: &Finding| {
        let label = format!("{} ({})", finding.cause.id, finding.verdict.name());
        let text = format!("{}; for: {}", finding.cause.claim, joined(&finding.weighing.support));
        vec![Span::plain(label), Span::plain(text)]
    };
    screen.labelled(2, &brief.iter().map(row).collect::<Vec<_>>())
}

fn not_judged<W: Write>(screen: &mut Screen<'_, W>, diagnosis: &Diagnosis) -> io::Result<()> {
    if diagnosis.unknown.is_empty() && diagnosis.explained_away.is_empty() {
        return Ok(());
    }
    screen.line(&[Span::new("Not judged", Role::Strong)])?;
    let mut rows: Vec<Vec<Span>> = Vec::new();
    for unknown in &diagnosis.unknown {
        let needs: Vec<&str> = unknown.needs.iter().map(|need| need.observe()).collect();
        rows.push(vec![Span::plain(unknown.cause.id), Span::plain(needs.join("; "))]);
    }
    for gone in &diagnosis.explained_away {
        let text = format!("explained by the more specific {}", gone.by);
        rows.push(vec![Span::plain(gone.id), Span::plain(text)]);
    }
    screen.labelled(2, &rows)
}
