//! The life of a child: what runs when the binary is started as `gpudx __probe NAME`.

mod change;
pub(crate) mod guard;
pub(crate) mod report;
mod traced;

use std::ffi::OsString;

use facts::wire::note;

use self::report::Report;
use crate::probes::{self, Options};
use crate::sys::process;

/// Exit status for a probe that does not exist or arguments that make no sense (EX_USAGE).
const USAGE_STATUS: i32 = 64;
/// Exit status for a child that has nowhere to report to (EX_OSERR).
const NO_OUTPUT_STATUS: i32 = 71;

/// Runs one probe and leaves the process without running any destructor, since those of a driver
/// library can block. `arguments` are those after the word `__probe`: the probe's name and its
/// options. Never returns.
pub fn main(arguments: &[OsString]) -> ! {
    let arguments: Vec<&str> = arguments.iter().filter_map(|word| word.to_str()).collect();
    let Some((name, words)) = arguments.split_first() else { process::leave(USAGE_STATUS) };
    let Some(probe) = probes::by_name(name) else { process::leave(USAGE_STATUS) };
    let Some(options) = Options::parse(words) else { process::leave(USAGE_STATUS) };
    change::before_report(&options, name);
    let Ok(mut report) = Report::to_parent() else { process::leave(NO_OUTPUT_STATUS) };
    if probe.touches_driver {
        guard::hold(&mut report);
    }
    match change::apply(&options.change) {
        Ok(()) => probe.run(&mut report, &options),
        Err(reason) => report.note(note::NOT_MADE, reason),
    }
    report.finish();
    process::leave(0)
}
