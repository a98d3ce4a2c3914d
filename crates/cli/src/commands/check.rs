//! `gpudx check`

mod experiments;

use std::time::Instant;

use facts::raw::RawSet;
use reason::experiment::{self, Experiment};

use super::report;
use crate::args::{CheckArgs, ColorWhen};
use crate::exit::Exit;
use crate::judge::Judged;
use crate::source;

/// Looks at this machine and prints the report.
pub(crate) fn run(args: &CheckArgs, color: ColorWhen) -> Exit {
    let started = Instant::now();
    let mut raw = source::host(args);
    let judged = report::judged(&raw)
        .and_then(|judged| context(args, started, &mut raw, judged))
        .and_then(|judged| experiments::run(args, started, &mut raw, judged));
    match judged {
        Ok(judged) => report::print(judged, "this machine", &args.report, color),
        Err(exit) => exit,
    }
}

/// Goes on to a context when the facts call for one, and weighs again.
fn context(
    args: &CheckArgs,
    started: Instant,
    raw: &mut RawSet,
    judged: Judged,
) -> Result<Judged, Exit> {
    if args.root.is_some() {
        return Ok(judged);
    }
    match experiment::wanted(&judged.facts) {
        None => Ok(judged),
        Some(Experiment::Context(..)) => {
            let trials = judged.facts.probes.iter().filter(|run| run.probe == "cuinit").count();
            let trial = u32::try_from(trials + 1).unwrap_or(u32::MAX);
            source::context(args, started.elapsed(), trial, raw);
            report::judged(raw)
        }
    }
}
