//! What puts it right.

use std::io::{self, Write};

use reason::{Diagnosis, Impact, Remedy, Verdict};

use crate::screen::{Role, Screen, Span};
use crate::view;

/// Remedies of the causes that are shown in full and at least likely. Nobody should act on a
/// guess, so the remedy of a merely possible cause is shown only on request.
pub(super) fn write_all<W: Write>(
    screen: &mut Screen<'_, W>,
    diagnosis: &Diagnosis,
) -> io::Result<()> {
    let verbose = screen.options().verbose;
    let shown = if verbose { diagnosis.causes.len() } else { view::shown_in_full(diagnosis) };
    let several = shown > 1;
    for finding in diagnosis.causes.iter().take(shown) {
        if finding.verdict >= Verdict::Likely || verbose {
            let of = several.then_some(finding.cause.id);
            write(screen, &finding.remedy, of)?;
        }
    }
    Ok(())
}

/// One remedy; `of` names the cause where there are several.
pub(crate) fn write<W: Write>(
    screen: &mut Screen<'_, W>,
    remedy: &Remedy,
    of: Option<&str>,
) -> io::Result<()> {
    let of = of.map_or(String::new(), |id| format!(" for {id}"));
    let title = format!("Remedy{of} ({})", cost(remedy));
    screen.paragraph(0, &Span::new(title, Role::Strong))?;
    for step in &remedy.steps {
        let place = Span::new(format!("  {}: ", step.place.name()), Role::Dim);
        screen.line(&[place, Span::new(&step.run, Role::Command)])?;
        if !step.why.is_empty() {
            screen.paragraph(6, &Span::new(&step.why, Role::Dim))?;
        }
    }
    let mut rows = Vec::new();
    for (label, text) in [("undo", &remedy.undo), ("verify", &remedy.verify)] {
        if !text.is_empty() {
            rows.push(vec![Span::plain(label), Span::plain(text)]);
        }
    }
    for measure in &remedy.will_not_help {
        rows.push(vec![Span::plain("will not help"), Span::plain(measure)]);
    }
    screen.grid(2, &rows)
}

fn cost(remedy: &Remedy) -> String {
    match (remedy.impact, remedy.stops.as_str()) {
        (Impact::None, "" | "nothing") => Impact::None.name().to_owned(),
        (impact, "") => impact.name().to_owned(),
        (impact, stops) => format!("{}; stops {stops}", impact.name()),
    }
}
