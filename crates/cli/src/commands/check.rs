//! `gpudx check`

use crate::args::{CheckArgs, ColorWhen};
use crate::exit::Exit;
use crate::source;

use super::report;

/// Looks at this machine and prints the report.
pub(crate) fn run(args: &CheckArgs, color: ColorWhen) -> Exit {
    let raw = source::host(args);
    match report::judged(&raw) {
        Ok(judged) => report::print(judged, "this machine", &args.report, color),
        Err(exit) => exit,
    }
}
