//! `gpudx trace -- COMMAND…` and `gpudx trace -p PID`

mod lines;
mod save;
mod sums;

use std::fs::File;
use std::io::{self, Write};

use probe::trace::{self, Event, Options, Target};

use self::lines::Lines;
use self::save::Saved;
use crate::args::{DataFormat, TraceArgs};
use crate::exit::Exit;
use crate::output;

/// Where the trace goes. What is written is there at once: the trace must tell of a call that
/// never returns even when nothing comes after it.
type Out = Box<dyn Write>;

/// Traces and tells. The program's own output stays its own; the trace goes to standard error.
pub(crate) fn run(args: &TraceArgs) -> Exit {
    let mut out: Out = match &args.output {
        None => Box::new(io::stderr()),
        Some(path) => match File::create(path) {
            Ok(file) => Box::new(file),
            Err(error) => {
                return output::complain(
                    &format!("{}: {error}", path.display()),
                    Exit::Undetermined,
                );
            }
        },
    };
    let mut saved = match args.save.as_deref().map(Saved::new).transpose() {
        Ok(saved) => saved,
        Err(message) => return output::complain(&message, Exit::Undetermined),
    };
    let target = match args.pid {
        Some(pid) => Target::Attach(pid),
        None => Target::Launch(args.command.clone()),
    };
    let options = Options { deadline: args.deadline, hold: args.block, fail: args.fail.clone() };
    let mut lines = Lines::default();
    // There is nobody to tell when the trace cannot be written, and the program goes on.
    let mut tell = |event: &Event<'_>| {
        if let Some(saved) = &mut saved {
            saved.add(event);
        }
        let text = match args.format {
            DataFormat::Text => lines.event(event),
            DataFormat::Json => trace::json_line(event) + "\n",
        };
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    };
    let traced = trace::run(&target, options, &mut tell);
    let summary = match traced {
        Ok(summary) => summary,
        Err(refusal) => return output::complain(&refusal.to_string(), Exit::Undetermined),
    };
    if let Some(Err(message)) = saved.map(Saved::finish) {
        return output::complain(&message, Exit::Undetermined);
    }
    if summary.in_flight.is_empty() { Exit::Fine } else { Exit::Fault }
}
