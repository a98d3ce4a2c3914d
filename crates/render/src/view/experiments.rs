//! Experiments as a reader sees them: what was changed, and what came of it.

use facts::Facts;
use facts::model::cuda::TrialResult;
use facts::model::experiment::{Effect, Experiment, Run};

/// One experiment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExperimentRow {
    /// What was changed, in words.
    pub change: String,
    /// What that made of the result: `works`, `the same`, `not made`, …
    pub word: &'static str,
    /// What came of the run, or why there is nothing.
    pub result: String,
    /// True when it changed the result.
    pub tells: bool,
}

/// All experiments, in the order in which they were listed.
pub fn experiments(facts: &Facts) -> Vec<ExperimentRow> {
    facts.experiments.iter().map(row).collect()
}

fn row(made: &Experiment) -> ExperimentRow {
    ExperimentRow {
        change: made.change.words(),
        word: word(made),
        result: result(made),
        tells: matches!(made.effect, Effect::Works | Effect::Fails | Effect::Differs),
    }
}

fn word(made: &Experiment) -> &'static str {
    match (&made.run, made.effect) {
        (None, _) => "no result",
        (Some(_), Effect::Works) => "works",
        (Some(_), Effect::Fails) => "fails",
        (Some(_), Effect::Differs) => "differs",
        (Some(_), Effect::Same) => "the same",
        (Some(_), Effect::Unclear) => "unclear",
    }
}

/// What came of it, in one clause.
pub fn result(made: &Experiment) -> String {
    let Some(run) = &made.run else {
        return made.hindered.clone().unwrap_or_default();
    };
    let mut text = run_text(run);
    if let Some(call) = &made.in_flight {
        text = format!("{text}, in {call}");
    }
    format!("{text} ({:.1} s)", made.seconds)
}

fn run_text(run: &Run) -> String {
    let what = &run.what;
    match run.result {
        TrialResult::Code(code) => format!("{what} answers {code}"),
        TrialResult::Hung { killable: Some(false) } => {
            format!("{what} does not return and cannot be killed")
        }
        TrialResult::Hung { .. } => format!("{what} does not return"),
        TrialResult::Crashed(Some(signal)) => format!("{what} ends by signal {signal}"),
        TrialResult::Crashed(None) => format!("{what} crashes"),
        TrialResult::Failed => format!("{what} fails"),
        TrialResult::WrongResult => format!("{what} gives wrong data"),
    }
}
