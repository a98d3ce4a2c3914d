//! `gpudx check`

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
    let raw = source::host(args);
    let judged = report::judged(&raw).and_then(|judged| experiment(args, started, raw, judged));
    match judged {
        Ok(judged) => report::print(judged, "this machine", &args.report, color),
        Err(exit) => exit,
    }
}

/// Makes one more observation when the facts call for it, and weighs again.
fn experiment(
    args: &CheckArgs,
    started: Instant,
    mut raw: RawSet,
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
            source::context(args, started.elapsed(), trial, &mut raw);
            report::judged(&raw)
        }
    }
}
