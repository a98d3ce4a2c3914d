//! The report as Markdown, to be pasted into a ticket.

mod text;

use std::io::{self, Write};

use reason::diagnose::Finding;
use reason::{Diagnosis, Evidence, Remedy, State};

pub(crate) use text::{code, escape, fenced};

use crate::Report;
use crate::view;

/// Writes the report.
pub fn write(out: &mut impl Write, report: &Report<'_>) -> io::Result<()> {
    let diagnosis = report.diagnosis;
    writeln!(out, "## {}\n", escape(&view::verdict_sentence(report)))?;
    writeln!(out, "{}\n", escape(&view::head(report).join(" · ")))?;
    layers(out, diagnosis)?;
    symptoms(out, diagnosis)?;
    for finding in &diagnosis.causes {
        cause(out, finding)?;
    }
    experiments(out, report)?;
    ruled_out(out, diagnosis)?;
    unknown(out, diagnosis)?;
    next(out, diagnosis)?;
    notes(out, diagnosis)
}

fn layers(out: &mut impl Write, diagnosis: &Diagnosis) -> io::Result<()> {
    let rows = view::layers(diagnosis);
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(out, "| layer | status | |\n|---|---|---|")?;
    for row in rows {
        writeln!(out, "| {} | {} | {} |", row.layer.name(), row.word, escape(&row.summary))?;
    }
    writeln!(out)
}

fn symptoms(out: &mut impl Write, diagnosis: &Diagnosis) -> io::Result<()> {
    if diagnosis.symptoms.is_empty() {
        return Ok(());
    }
    writeln!(out, "### Symptoms\n")?;
    for symptom in &diagnosis.symptoms {
        let mark = if symptom.explained_by.is_empty() { " — **unexplained**" } else { "" };
        let origin = code(&symptom.origin.to_string());
        writeln!(out, "- {}{mark} ({origin})", escape(&symptom.summary))?;
    }
    writeln!(out)
}

fn cause(out: &mut impl Write, finding: &Finding) -> io::Result<()> {
    let verdict = finding.verdict.name();
    writeln!(out, "### {} ({}, {verdict})\n", escape(finding.cause.claim), code(finding.cause.id))?;
    evidence(out, "For", &finding.weighing.support)?;
    evidence(out, "Against", &finding.weighing.against)?;
    remedy(out, &finding.remedy)
}

fn evidence(out: &mut impl Write, side: &str, pieces: &[Evidence]) -> io::Result<()> {
    if pieces.is_empty() {
        return writeln!(out, "{side}: nothing seen\n");
    }
    writeln!(out, "{side}:\n")?;
    for piece in pieces {
        let origin = code(&piece.origin.to_string());
        let strength = piece.strength.name();
        writeln!(out, "- {} ({strength}, {origin})", escape(&piece.statement))?;
    }
    writeln!(out)
}

/// The remedy, also for the page of a cause.
pub(crate) fn remedy(out: &mut impl Write, remedy: &Remedy) -> io::Result<()> {
    let stops = match remedy.stops.as_str() {
        "" | "nothing" => String::new(),
        stops => format!("; stops {}", escape(stops)),
    };
    writeln!(out, "Remedy ({}{stops}):\n", remedy.impact.name())?;
    for step in &remedy.steps {
        let why = match step.why.as_str() {
            "" => String::new(),
            why => format!(": {}", escape(why)),
        };
        writeln!(out, "On the {}{why}\n", step.place.name())?;
        writeln!(out, "{}\n", fenced(&step.run))?;
    }
    for (label, text) in [("Undo", &remedy.undo), ("Verify", &remedy.verify)] {
        if !text.is_empty() {
            writeln!(out, "- {label}: {}", escape(text))?;
        }
    }
    for measure in &remedy.will_not_help {
        writeln!(out, "- Will not help: {}", escape(measure))?;
    }
    writeln!(out)
}

fn experiments(out: &mut impl Write, report: &Report<'_>) -> io::Result<()> {
    let made = view::experiments(report.facts);
    if made.is_empty() {
        return Ok(());
    }
    writeln!(out, "### Experiments\n\n| cuInit | | |\n|---|---|---|")?;
    for row in made {
        let (change, result) = (escape(&row.change), escape(&row.result));
        writeln!(out, "| {change} | {} | {result} |", row.word)?;
    }
    writeln!(out)
}

fn ruled_out(out: &mut impl Write, diagnosis: &Diagnosis) -> io::Result<()> {
    let rows = view::ruled_out(diagnosis);
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(out, "### Ruled out\n\n| cause | by |\n|---|---|")?;
    for row in rows {
        let ids: Vec<String> = row.ids.iter().map(|id| code(id)).collect();
        writeln!(out, "| {} | {} |", ids.join(", "), escape(&row.statements.join("; ")))?;
    }
    writeln!(out)
}

fn unknown(out: &mut impl Write, diagnosis: &Diagnosis) -> io::Result<()> {
    if diagnosis.unknown.is_empty() {
        return Ok(());
    }
    let ids: Vec<String> = diagnosis.unknown.iter().map(|cause| code(cause.cause.id)).collect();
    writeln!(out, "### Not judged\n\n{}\n", ids.join(", "))
}

fn next(out: &mut impl Write, diagnosis: &Diagnosis) -> io::Result<()> {
    if diagnosis.state == State::Healthy || diagnosis.next.is_empty() {
        return Ok(());
    }
    writeln!(out, "### What would settle it\n")?;
    for step in &diagnosis.next {
        writeln!(out, "1. {}", escape(step.need.observe()))?;
    }
    writeln!(out)
}

fn notes(out: &mut impl Write, diagnosis: &Diagnosis) -> io::Result<()> {
    if diagnosis.notes.is_empty() {
        return Ok(());
    }
    writeln!(out, "### Notes\n")?;
    for note in &diagnosis.notes {
        writeln!(out, "- {} ({})", escape(&note.text), code(&note.origin.to_string()))?;
    }
    writeln!(out)
}
