//! What a word means: a cause of the catalogue, or an entry of the driver's tables together with
//! the causes that print it.

mod cause;
mod related;

use std::io::{self, Write};

use facts::Layer;
use nvabi::Entry;
use reason::symptom::SymptomId;
use reason::{CAUSES, Cause};

pub use cause::{cause, cause_markdown};
pub use related::{Related, related};

use crate::screen::{Options, Role, Screen, Span};

/// Writes what the tables know of a word, with the causes that it points to.
pub fn entries(out: &mut impl Write, entries: &[Entry], options: Options) -> io::Result<()> {
    let mut screen = Screen::new(out, options);
    for (number, entry) in entries.iter().enumerate() {
        if number > 0 {
            screen.gap();
        }
        write_entry(&mut screen, entry)?;
    }
    Ok(())
}

fn write_entry<W: Write>(screen: &mut Screen<'_, W>, entry: &Entry) -> io::Result<()> {
    describe(screen, entry)?;
    points_to(screen, related(entry).iter().map(|related| related.cause))
}

fn describe<W: Write>(screen: &mut Screen<'_, W>, entry: &Entry) -> io::Result<()> {
    screen.paragraph(0, &Span::new(&entry.title, Role::Strong))?;
    let lines = entry.lines.iter();
    let mut rows: Vec<Vec<Span>> =
        lines.map(|(label, text)| vec![Span::plain(label), Span::plain(text)]).collect();
    rows.push(vec![Span::new("source", Role::Dim), Span::new(entry.source, Role::Dim)]);
    screen.grid(2, &rows)
}

/// Writes what a symptom means, with the causes that explain it.
pub fn symptom(out: &mut impl Write, id: SymptomId, options: Options) -> io::Result<()> {
    let mut screen = Screen::new(out, options);
    screen.paragraph(0, &Span::new(format!("{} (symptom)", id.name()), Role::Strong))?;
    screen.grid(2, &[vec![Span::plain("meaning"), Span::plain(id.meaning())]])?;
    points_to(&mut screen, CAUSES.iter().copied().filter(|cause| cause.can_explain(id)))
}

/// Writes the causes of a layer.
pub fn layer(out: &mut impl Write, layer: Layer, options: Options) -> io::Result<()> {
    let mut screen = Screen::new(out, options);
    screen.paragraph(0, &Span::new(format!("{} (layer)", layer.name()), Role::Strong))?;
    let within = |cause: &&'static Cause| cause.id.split('.').next() == Some(layer.name());
    points_to(&mut screen, CAUSES.iter().copied().filter(within))
}

/// Writes what a pasted line says: the signatures of the kernel log that it bears, and the causes
/// to which it points. Returns false, and writes nothing, when it says nothing.
pub fn line(out: &mut impl Write, text: &str, options: Options) -> io::Result<bool> {
    let known = related::signatures_in(text);
    let related = related::of_text(text);
    if known.is_empty() && related.is_empty() {
        return Ok(false);
    }
    let mut screen = Screen::new(out, options);
    for id in known {
        for entry in nvabi::lookup(id) {
            describe(&mut screen, &entry)?;
            screen.gap();
        }
    }
    points_to(&mut screen, related.into_iter())?;
    Ok(true)
}

fn points_to<W: Write>(
    screen: &mut Screen<'_, W>,
    causes: impl Iterator<Item = &'static Cause>,
) -> io::Result<()> {
    let row = |cause: &'static Cause| vec![Span::plain(cause.id), Span::plain(cause.claim)];
    let rows: Vec<Vec<Span>> = causes.map(row).collect();
    if rows.is_empty() {
        return Ok(());
    }
    screen.paragraph(2, &Span::new("points to (gpudx explain ID)", Role::Strong))?;
    screen.labelled(4, &rows)
}
