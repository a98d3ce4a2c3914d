//! A cause of the catalogue in full. The definition is the documentation: the command line and
//! the page of the docs are printed from the same static.

use std::io::{self, Write};

use facts::Facts;
use reason::Cause;

use crate::markdown::{self, code, escape};
use crate::screen::{Options, Role, Screen, Span};
use crate::terminal::remedy;

/// Writes a cause for a person at a terminal.
pub fn cause(out: &mut impl Write, cause: &Cause, options: Options) -> io::Result<()> {
    let mut screen = Screen::new(out, options);
    screen.title("", cause.claim, &format!("[{}]", cause.id))?;
    screen.gap();
    screen.paragraph(0, &Span::plain(cause.explanation))?;
    let symptoms: Vec<&str> = cause.explains.iter().map(|symptom| symptom.name()).collect();
    screen.gap();
    screen
        .grid(0, &[vec![Span::new("explains", Role::Strong), Span::plain(symptoms.join(", "))]])?;
    if !cause.specializes.is_empty() {
        let text = cause.specializes.join(", ");
        screen
            .grid(0, &[vec![Span::new("more specific than", Role::Strong), Span::plain(text)]])?;
    }
    if !cause.look_alikes.is_empty() {
        screen.gap();
        screen.line(&[Span::new("Easily mistaken for it", Role::Strong)])?;
        let rows: Vec<Vec<Span>> = cause
            .look_alikes
            .iter()
            .map(|other| vec![Span::plain(other.id), Span::plain(other.tell)])
            .collect();
        screen.labelled(2, &rows)?;
    }
    screen.gap();
    remedy::write(&mut screen, &(cause.remedy)(&Facts::default()), None)?;
    if !cause.references.is_empty() {
        screen.gap();
        screen.line(&[Span::new("References", Role::Strong)])?;
        for reference in cause.references {
            screen.line(&[Span::plain("  "), Span::plain(reference)])?;
        }
    }
    Ok(())
}

/// Writes a cause as the page of the docs.
pub fn cause_markdown(out: &mut impl Write, cause: &Cause) -> io::Result<()> {
    writeln!(out, "# {}\n\n{}.\n", code(cause.id), escape(cause.claim))?;
    writeln!(out, "{}\n", escape(cause.explanation))?;
    let symptoms: Vec<String> = cause.explains.iter().map(|symptom| code(symptom.name())).collect();
    writeln!(out, "Explains: {}\n", symptoms.join(", "))?;
    if !cause.specializes.is_empty() {
        let ids: Vec<String> = cause.specializes.iter().map(|id| code(id)).collect();
        writeln!(out, "More specific than: {}\n", ids.join(", "))?;
    }
    if !cause.look_alikes.is_empty() {
        writeln!(out, "## Easily mistaken for it\n\n| cause | what tells it apart |\n|---|---|")?;
        for other in cause.look_alikes {
            writeln!(out, "| {} | {} |", code(other.id), escape(other.tell))?;
        }
        writeln!(out)?;
    }
    writeln!(out, "## What puts it right\n")?;
    markdown::remedy(out, &(cause.remedy)(&Facts::default()))?;
    if !cause.references.is_empty() {
        writeln!(out, "## References\n")?;
        for reference in cause.references {
            writeln!(out, "- {}", reference_text(reference))?;
        }
    }
    Ok(())
}

fn reference_text(reference: &str) -> String {
    if reference.starts_with("https://") { format!("<{reference}>") } else { code(reference) }
}
