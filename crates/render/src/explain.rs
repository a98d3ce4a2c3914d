//! What a word means: a cause of the catalogue, or an entry of the driver's tables together with
//! the causes that print it.

mod cause;
mod related;

use std::io::{self, Write};

use nvabi::Entry;

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
    screen.paragraph(0, &Span::new(&entry.title, Role::Strong))?;
    let lines = entry.lines.iter();
    let mut rows: Vec<Vec<Span>> =
        lines.map(|(label, text)| vec![Span::plain(label), Span::plain(text)]).collect();
    rows.push(vec![Span::new("source", Role::Dim), Span::new(entry.source, Role::Dim)]);
    screen.grid(2, &rows)?;
    let related = related(entry);
    if related.is_empty() {
        return Ok(());
    }
    screen.paragraph(2, &Span::new("points to (gpudx explain ID)", Role::Strong))?;
    let row =
        |related: &Related| vec![Span::plain(related.cause.id), Span::plain(related.cause.claim)];
    screen.labelled(4, &related.iter().map(row).collect::<Vec<_>>())
}
