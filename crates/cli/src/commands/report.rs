//! What `check` and `read` have in common: a set of raw items becomes a report on standard output.

use facts::raw::RawSet;
use render::Report;

use crate::args::{ColorWhen, ReportArgs, ReportFormat};
use crate::exit::Exit;
use crate::judge::{self, Judged};
use crate::output;

/// Prints the report on a judged input.
pub(super) fn print(mut judged: Judged, input: &str, args: &ReportArgs, color: ColorWhen) -> Exit {
    let exit = Exit::of(judged.diagnosis.state);
    judge::keep_layers(&mut judged.diagnosis, &args.layer);
    let report = Report { diagnosis: &judged.diagnosis, facts: &judged.facts, input };
    let options = output::options(color, args.verbose);
    output::print(exit, |out| match args.format.unwrap_or(ReportFormat::Text) {
        ReportFormat::Text => render::terminal::write(out, &report, options),
        ReportFormat::Json => render::json::write(out, &report),
        ReportFormat::Md => render::markdown::write(out, &report),
    })
}

/// Judges raw items, or says in one line why that was not possible.
pub(super) fn judged(raw: &RawSet) -> Result<Judged, Exit> {
    judge::judge(raw).map_err(|message| output::complain(&message, Exit::Undetermined))
}
