//! The report as a person reads it in a terminal: one screen for the common case.

mod causes;
mod details;
pub(crate) mod remedy;
mod stuck;

use std::io::{self, Write};

use reason::layers::LayerStatus;
use reason::{Diagnosis, State, Verdict};

use crate::Report;
use crate::screen::{Options, Role, Screen, Span};
use crate::view::{self, LayerRow};

/// Writes the report.
pub fn write(out: &mut impl Write, report: &Report<'_>, options: Options) -> io::Result<()> {
    let mut screen = Screen::new(out, options);
    for line in head_lines(&view::head(report), options.columns()) {
        screen.paragraph(0, &Span::new(line, Role::Strong))?;
    }
    layers(&mut screen, report.diagnosis)?;
    verdict(&mut screen, report)?;
    symptoms(&mut screen, report.diagnosis)?;
    causes::write(&mut screen, report.diagnosis)?;
    experiments(&mut screen, report)?;
    ruled_out(&mut screen, report.diagnosis)?;
    remedy::write_all(&mut screen, report.diagnosis)?;
    next(&mut screen, report.diagnosis)?;
    stuck::write(&mut screen, report)?;
    notes(&mut screen, report)?;
    if options.verbose {
        details::write(&mut screen, report)?;
    }
    Ok(())
}

/// Joins the parts of the head line, breaking between parts where there is no room.
fn head_lines(parts: &[String], columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 3 + part.chars().count() <= columns => {
                line.push_str(" · ");
                line.push_str(part);
            }
            _ => lines.push(part.clone()),
        }
    }
    lines
}

fn layers<W: Write>(screen: &mut Screen<'_, W>, diagnosis: &Diagnosis) -> io::Result<()> {
    let rows: Vec<Vec<Span>> = view::layers(diagnosis).iter().map(layer_cells).collect();
    if rows.is_empty() {
        return Ok(());
    }
    screen.gap();
    screen.grid(1, &rows)
}

fn layer_cells(row: &LayerRow) -> Vec<Span> {
    let role = match row.status {
        LayerStatus::Ok => Role::Good,
        LayerStatus::Fault => Role::Bad,
        LayerStatus::Unknown => Role::Doubt,
        LayerStatus::Blocked | LayerStatus::NotApplicable => Role::Dim,
    };
    vec![Span::plain(row.layer.name()), Span::new(row.word, role), Span::plain(&row.summary)]
}

/// The sentence that says what came out, where no cause says it.
fn verdict<W: Write>(screen: &mut Screen<'_, W>, report: &Report<'_>) -> io::Result<()> {
    let diagnosis = report.diagnosis;
    let role = match diagnosis.state {
        State::Fault if !diagnosis.causes.is_empty() => return Ok(()),
        State::Fault => Role::Bad,
        State::Healthy | State::NoGpu => Role::Good,
        State::Undetermined => Role::Doubt,
    };
    screen.gap();
    screen.paragraph(0, &Span::new(view::verdict_sentence(report), role))
}

/// The symptoms where no layer's line shows them, and those that stay unexplained always.
fn symptoms<W: Write>(screen: &mut Screen<'_, W>, diagnosis: &Diagnosis) -> io::Result<()> {
    let in_layers = diagnosis.layers.iter().any(|line| line.status == LayerStatus::Fault);
    let mut rows = Vec::new();
    for symptom in &diagnosis.symptoms {
        let unexplained = symptom.explained_by.is_empty();
        if in_layers && !unexplained && !screen.options().verbose {
            continue;
        }
        let role = if unexplained { Role::Doubt } else { Role::Plain };
        let mark = if unexplained { "unexplained" } else { "seen" };
        rows.push(vec![Span::new(mark, role), Span::plain(&symptom.summary)]);
    }
    if rows.is_empty() {
        return Ok(());
    }
    screen.gap();
    screen.line(&[Span::new("Symptoms", Role::Strong)])?;
    screen.grid(2, &rows)
}

/// What was tried in children, and what each change made of the result.
fn experiments<W: Write>(screen: &mut Screen<'_, W>, report: &Report<'_>) -> io::Result<()> {
    let made = view::experiments(report.facts);
    if made.is_empty() {
        return Ok(());
    }
    screen.line(&[Span::new("Experiments, one thing changed in each", Role::Strong)])?;
    let cells = |row: &view::ExperimentRow| {
        let role = if row.tells { Role::Strong } else { Role::Dim };
        vec![Span::plain(&row.change), Span::new(row.word, role), Span::plain(&row.result)]
    };
    screen.grid(2, &made.iter().map(cells).collect::<Vec<_>>())
}

fn ruled_out<W: Write>(screen: &mut Screen<'_, W>, diagnosis: &Diagnosis) -> io::Result<()> {
    let rows = view::ruled_out(diagnosis);
    if rows.is_empty() {
        return Ok(());
    }
    screen.line(&[Span::new("Ruled out", Role::Strong)])?;
    let in_full = if screen.options().verbose { rows.len() } else { RULED_OUT_IN_FULL };
    let (full, brief) = rows.split_at(in_full.min(rows.len()));
    let cells = |row: &view::RuledOutRow| {
        vec![Span::plain(row.label()), Span::plain(row.statements.join("; "))]
    };
    screen.labelled(2, &full.iter().map(cells).collect::<Vec<_>>())?;
    if brief.is_empty() {
        return Ok(());
    }
    let labels: Vec<String> = brief.iter().map(view::RuledOutRow::label).collect();
    let text = format!("and {} (-v says by what)", labels.join(", "));
    screen.paragraph(2, &Span::new(text, Role::Dim))
}

/// Rows of ruled-out causes that are shown with what rules them out, so that the common case fits
/// on one screen. The diagnosis has the most tempting ones first.
const RULED_OUT_IN_FULL: usize = 7;

/// What would decide it. The surer the first cause, the less there is to look at.
fn next<W: Write>(screen: &mut Screen<'_, W>, diagnosis: &Diagnosis) -> io::Result<()> {
    let best = diagnosis.causes.first().map(|finding| finding.verdict);
    let shown = match (diagnosis.state, best) {
        (State::Healthy, _) | (_, Some(Verdict::Confirmed)) => 0,
        (State::Fault, _) => 3,
        (State::Undetermined | State::NoGpu, _) => usize::MAX,
    };
    if shown == 0 || diagnosis.next.is_empty() {
        return Ok(());
    }
    screen.line(&[Span::new("Next, what would settle it", Role::Strong)])?;
    let rows: Vec<Vec<Span>> = diagnosis
        .next
        .iter()
        .take(shown)
        .zip(1_usize..)
        .map(|(step, number)| {
            let about = if step.separates.is_empty() {
                String::new()
            } else {
                format!("  [{}]", step.separates.join(", "))
            };
            let text = format!("{}{about}", step.need.observe());
            vec![Span::new(number.to_string(), Role::Dim), Span::plain(text)]
        })
        .collect();
    screen.grid(2, &rows)
}

fn notes<W: Write>(screen: &mut Screen<'_, W>, report: &Report<'_>) -> io::Result<()> {
    let diagnosis = report.diagnosis;
    let mut rows: Vec<Vec<Span>> = diagnosis
        .notes
        .iter()
        .map(|note| vec![Span::plain(format!("{} ({})", note.text, note.origin))])
        .collect();
    for run in diagnosis.probes.iter().filter(|run| !run.end_notes.is_empty()) {
        let text = format!("probe {}#{}: {}", run.probe, run.trial, run.end_notes.join("; "));
        rows.push(vec![Span::plain(text)]);
    }
    let unlisted = diagnosis.not_understood.len();
    if unlisted > 0 {
        let lines = if unlisted == 1 { "line names" } else { "lines name" };
        let text =
            format!("{unlisted} log {lines} the driver and matched no known form (-v lists)");
        rows.push(vec![Span::new(text, Role::Dim)]);
    }
    if rows.is_empty() {
        return Ok(());
    }
    screen.line(&[Span::new("Notes", Role::Strong)])?;
    screen.grid(2, &rows)
}
