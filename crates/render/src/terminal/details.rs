//! Under `-v`: every observation with its origin, every probe run, every line not understood.

use std::io::{self, Write};

use facts::model::ProbeRun;
use facts::wire::Stuck;

use crate::Report;
use crate::observations::{self, Observation};
use crate::screen::{Role, Screen, Span};

pub(super) fn write<W: Write>(screen: &mut Screen<'_, W>, report: &Report<'_>) -> io::Result<()> {
    let all = observations::list(report.facts);
    let (known, unknown): (Vec<_>, Vec<_>) = all.into_iter().partition(Observation::was_looked_for);
    heading(screen, "Observations")?;
    screen.labelled(2, &known.iter().map(row).collect::<Vec<_>>())?;
    if !unknown.is_empty() {
        let names: Vec<String> = unknown.iter().map(Observation::full_name).collect();
        screen
            .paragraph(2, &Span::new(format!("not looked at: {}", names.join(", ")), Role::Dim))?;
    }
    probes(screen, &report.diagnosis.probes)?;
    not_understood(screen, report)
}

fn heading<W: Write>(screen: &mut Screen<'_, W>, text: &str) -> io::Result<()> {
    screen.gap();
    screen.line(&[Span::new(text, Role::Strong)])
}

fn row(observation: &Observation) -> Vec<Span> {
    let text = match &observation.origin {
        Some(origin) => format!("{}  ({origin})", observation.value),
        None => observation.value.clone(),
    };
    vec![Span::plain(observation.full_name()), Span::plain(text)]
}

fn probes<W: Write>(screen: &mut Screen<'_, W>, runs: &[ProbeRun]) -> io::Result<()> {
    if runs.is_empty() {
        return Ok(());
    }
    heading(screen, "Probes")?;
    let row = |run: &ProbeRun| {
        vec![
            Span::plain(format!("{}#{}", run.probe, run.trial)),
            Span::plain(run.outcome.name()),
            Span::plain(run_text(run)),
        ]
    };
    screen.grid(2, &runs.iter().map(row).collect::<Vec<_>>())
}

fn run_text(run: &ProbeRun) -> String {
    let mut parts = vec![format!("{:.2} s, {} calls", run.seconds, run.calls.len())];
    parts.extend(run.code.filter(|code| *code != 0).map(|code| format!("code {code}")));
    parts.extend(run.in_flight.as_ref().map(|(call, on)| {
        let on = on.as_ref().map_or(String::new(), |on| format!(" on {on}"));
        format!("never returned from {call}{on}")
    }));
    parts.extend(run.stuck.as_ref().map(|stuck| stuck_text(run, stuck)));
    parts.join(", ")
}

fn stuck_text(run: &ProbeRun, stuck: &Stuck) -> String {
    let mut parts = vec![format!("stuck: task {} in state {}", stuck.tid, stuck.state)];
    parts.extend(run.hang().map(|hang| format!("it {}", hang.words())));
    parts.extend(stuck.wchan.as_ref().map(|wchan| format!("at {wchan}")));
    parts.extend(stuck.call.as_ref().map(|call| format!("in {call}")));
    parts.extend(super::stuck::particulars(stuck, true));
    parts.join(", ")
}

/// Most lines listed; a log can hold a million.
const LINE_LIMIT: usize = 200;

fn not_understood<W: Write>(screen: &mut Screen<'_, W>, report: &Report<'_>) -> io::Result<()> {
    let log = report.diagnosis.not_understood.iter();
    let mut rows: Vec<Vec<Span>> = log
        .map(|origin| vec![Span::plain(origin.to_string()), Span::plain(&*origin.excerpt)])
        .collect();
    for complaint in &report.facts.complaints {
        let text = format!("{}: {}", complaint.problem, complaint.origin.excerpt);
        rows.push(vec![Span::plain(complaint.origin.to_string()), Span::plain(text)]);
    }
    if rows.is_empty() {
        return Ok(());
    }
    heading(screen, "Not understood")?;
    let left_out = rows.len().saturating_sub(LINE_LIMIT);
    rows.truncate(LINE_LIMIT);
    screen.labelled(2, &rows)?;
    if left_out > 0 {
        screen.paragraph(2, &Span::new(format!("and {left_out} more"), Role::Dim))?;
    }
    Ok(())
}
