//! A probe under the tracer: this child starts another one, traces it, and ends as it ends. The
//! report is the traced one's own; only the driver call in flight at its end is added.

use std::ffi::OsString;
use std::io::Write;

use facts::model::experiment::Change;
use facts::wire::{Record, note};

use super::change;
use super::report::DONE;
use crate::probes::Options;
use crate::sys::process;
use crate::trace::{self, Ended, Event, Target};

/// Runs the probe so, and never returns.
pub(super) fn run(probe: &str, options: &Options) -> ! {
    let mut command: Vec<OsString> = vec!["/proc/self/exe".into()];
    command.extend(change::arguments(probe, options, &Change::Nothing));
    let traced = trace::run(&Target::Launch(command), trace::Options::default(), &mut |event| {
        if let Event::Unreturned(call, ..) = event {
            tell(note::TRACE_IN_FLIGHT, &format!("{} on {}", call.name, call.node));
        }
    });
    match traced {
        Ok(summary) => match summary.ended {
            Ended::Exited(status) => process::leave(status),
            Ended::Killed(signal) => process::die_of(signal),
            Ended::Deadline | Ended::Asked | Ended::Gone => process::leave(1),
        },
        Err(refusal) => {
            tell(note::NOT_MADE, &refusal.to_string());
            tell(DONE, "");
            process::leave(0)
        }
    }
}

/// Writes one note to the parent's pipe, which the traced child shares: a line is written at once.
fn tell(key: &str, value: &str) {
    let note = Record::Note { key: key.to_owned(), value: value.to_owned() };
    let Ok(mut line) = serde_json::to_vec(&note) else { return };
    line.push(b'\n');
    // A parent that is gone has no use for it.
    let _ = std::io::stdout().write_all(&line).and_then(|()| std::io::stdout().flush());
}
