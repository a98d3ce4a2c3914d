//! The ladder of experiments: list them, make them one by one, weigh again after each.
//!
//! What is worth making and when to stop is decided by `reason`, how a change is made by `probe`;
//! here the two meet.

use std::time::{Duration, Instant};

use facts::raw::RawSet;
use probe::source::{ExperimentOrder, experiment_time};
use reason::experiment::{self, Rung};

use super::super::report;
use crate::args::{CheckArgs, ExperimentWhen, ReportFormat};
use crate::exit::Exit;
use crate::judge::Judged;
use crate::{output, source};

/// What is left below this is not worth listing an experiment for.
const SHORTEST: Duration = Duration::from_millis(500);

/// Makes the experiments that the facts call for, when they are asked for or nothing is settled.
pub(super) fn run(
    args: &CheckArgs,
    started: Instant,
    raw: &mut RawSet,
    judged: Judged,
) -> Result<Judged, Exit> {
    let left = source::deadline(args).saturating_sub(started.elapsed());
    let rungs = match args.experiment {
        ExperimentWhen::Auto if left >= SHORTEST => {
            experiment::due(&judged.facts, &judged.diagnosis)
        }
        ExperimentWhen::Always => experiment::ladder(&judged.facts),
        ExperimentWhen::Auto | ExperimentWhen::Never => Vec::new(),
    };
    if rungs.is_empty() || args.root.is_some() {
        if args.experiment == ExperimentWhen::Always {
            say(args, "no experiment would tell anything here");
        }
        return Ok(judged);
    }
    Ladder { args, started, raw, context: experiment::beyond_init(&judged.facts) }
        .climb(&rungs, judged)
}

/// One line for whoever reads along. A report for programs is all that they read.
fn say(args: &CheckArgs, message: &str) {
    if matches!(args.report.format, None | Some(ReportFormat::Text)) {
        output::say(message);
    }
}

struct Ladder<'a> {
    args: &'a CheckArgs,
    started: Instant,
    raw: &'a mut RawSet,
    /// They go on to a context.
    context: bool,
}

impl Ladder<'_> {
    fn climb(mut self, rungs: &[Rung], mut judged: Judged) -> Result<Judged, Exit> {
        let words: Vec<String> = rungs.iter().map(|rung| rung.change.words()).collect();
        let list = words.join("; ");
        say(
            self.args,
            &format!("experiments with cuInit, in children that change nothing here: {list}"),
        );
        let usual = experiment::usual(&judged.facts);
        // The control may follow.
        let mut to_come = u32::try_from(rungs.len() + 1).unwrap_or(u32::MAX);
        for (rung, number) in rungs.iter().zip(1..) {
            let reason = experiment::no_more(&judged.facts, &rung.change);
            self.step(rung, number, to_come, usual, reason);
            to_come -= 1;
            judged = report::judged(self.raw)?;
        }
        if let Some(control) = experiment::control(&judged.facts) {
            let number = u32::try_from(rungs.len() + 1).unwrap_or(u32::MAX);
            self.step(&control, number, 1, usual, None);
            judged = report::judged(self.raw)?;
        }
        Ok(judged)
    }

    /// Makes one experiment, or records why it is not made.
    fn step(
        &mut self,
        rung: &Rung,
        number: u32,
        to_come: u32,
        usual: Option<Duration>,
        reason: Option<&str>,
    ) {
        let order = ExperimentOrder {
            number,
            change: rung.change.clone(),
            why: rung.why.clone(),
            context: self.context,
        };
        let left = source::deadline(self.args).saturating_sub(self.started.elapsed());
        let made = match (reason, experiment_time(left, to_come, usual)) {
            (Some(reason), _) => source::no_experiment(&order, reason),
            (None, None) => source::no_experiment(&order, "no time was left for it"),
            (None, Some(limit)) => source::experiment(&order, limit),
        };
        self.raw.append(made);
    }
}
