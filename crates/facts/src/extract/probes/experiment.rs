//! Experiments: what was changed, what came of it, and what that says against the runs without the
//! change.

use crate::model::Facts;
use crate::model::cuda::{Stage, Trial, TrialResult};
use crate::model::experiment::{Change, Effect, Experiment, Limited, Run};
use crate::model::library::LibraryKind;
use crate::model::probe_run::ProbeRun;
use crate::model::process::{Attempt, Lever};
use crate::observed::{Origin, Seen};
use crate::wire::{Outcome, note};

/// Enters one experiment. What it means is known when all runs are.
pub(super) fn apply(run: &ProbeRun, facts: &mut Facts) {
    let Some(change) = run.note(note::CHANGE).and_then(Change::parse) else { return };
    let trial = super::cuda::trial(run);
    let hindered = if trial.is_none() { Some(hindrance(run)) } else { None };
    facts.experiments.push(Experiment {
        number: run.trial,
        change,
        why: run.note(note::WHY).unwrap_or_default().to_owned(),
        run: trial.map(|Trial { stage, result, what, .. }| Run { stage, result, what }),
        hindered,
        seconds: run.seconds,
        effect: Effect::Unclear,
        in_flight: run.note(note::TRACE_IN_FLIGHT).map(str::to_owned),
        origin: run.origin.clone(),
    });
}

/// Why a run came to no result.
fn hindrance(run: &ProbeRun) -> String {
    if let Some(reason) = run.note(note::NOT_MADE).or_else(|| run.note("not-tried")) {
        return reason.to_owned();
    }
    if let Some(call) = run.call("load").filter(|call| call.code != 0) {
        let error = call.value.as_deref().unwrap_or("no reason given");
        return format!("libcuda does not load: {error}");
    }
    match run.outcome {
        Outcome::NotStarted => {
            run.end_notes.first().cloned().unwrap_or_else(|| "it could not be started".to_owned())
        }
        _ => "its report is not whole".to_owned(),
    }
}

/// Judges every experiment against the runs without its change, and enters what follows.
pub(in crate::extract) fn conclude(facts: &mut Facts) {
    if facts.experiments.is_empty() {
        return;
    }
    controls(facts);
    let base = Base::of(facts);
    for index in 0..facts.experiments.len() {
        let Some(experiment) = facts.experiments.get_mut(index) else { return };
        experiment.effect = base.effect(experiment);
        let experiment = experiment.clone();
        one_gpu(&experiment, facts);
        if let Some((lever, helped)) = lever(&experiment, facts).filter(|_| base.is_settled()) {
            let attempt = Attempt { lever, helped, controlled: true };
            facts.process.attempts.push(Seen::new(attempt, experiment.origin));
        }
    }
}

/// A run that changes nothing is one more trial.
fn controls(facts: &mut Facts) {
    for experiment in &facts.experiments {
        if let (Change::Nothing, Some(run)) = (&experiment.change, &experiment.run) {
            facts.cuda.trials.push(trial(run, None, &experiment.origin));
        }
    }
}

fn trial(run: &Run, under: Option<String>, origin: &Origin) -> Trial {
    let fresh_process = Some(true);
    Trial { fresh_process, under, ..Trial::new(run.stage, run.result, &run.what, origin.clone()) }
}

/// CUDA with one GPU alone is a trial under a condition, as a person would tell it.
fn one_gpu(experiment: &Experiment, facts: &mut Facts) {
    if let (Change::OneGpu(uuid), Some(run)) = (&experiment.change, &experiment.run) {
        let under = format!("with CUDA_VISIBLE_DEVICES={uuid}");
        facts.cuda.trials.push(trial(run, Some(under), &experiment.origin));
    }
}

/// The runs without any change, made by gpudx itself.
struct Base {
    works: usize,
    /// How each that fails did.
    failures: Vec<(Stage, TrialResult)>,
}

impl Base {
    fn of(facts: &Facts) -> Base {
        let own = facts.cuda.plain().filter(|trial| trial.origin.item.starts_with("probe:"));
        let (good, bad): (Vec<&Trial>, Vec<&Trial>) = own.partition(|trial| trial.ok());
        // A run that did not go as far as the others fail says nothing of them.
        let failing = bad.iter().map(|trial| trial.stage).min().unwrap_or(Stage::Load);
        let works = good.iter().filter(|trial| trial.stage >= failing).count();
        let failures = bad.iter().map(|trial| signature(trial.stage, trial.result)).collect();
        Base { works, failures }
    }

    /// Two runs or more, which all went alike: then a run that goes otherwise owes it to its
    /// change.
    fn is_settled(&self) -> bool {
        let alike = self.failures.windows(2).all(|pair| pair.first() == pair.last());
        let both = self.works > 0 && !self.failures.is_empty();
        alike && !both && self.works + self.failures.len() >= 2
    }

    fn effect(&self, experiment: &Experiment) -> Effect {
        let Some(run) = &experiment.run else { return Effect::Unclear };
        let works = run.result == TrialResult::Code(0);
        let alike = self.failures.windows(2).all(|pair| pair.first() == pair.last());
        match (self.works, self.failures.first()) {
            (0, Some(_)) if works => Effect::Works,
            (0, Some(first)) if *first == signature(run.stage, run.result) => Effect::Same,
            (0, Some(_)) if alike => Effect::Differs,
            (1.., None) if works => Effect::Same,
            (1.., None) => Effect::Fails,
            _ => Effect::Unclear,
        }
    }
}

/// What makes two failures the same. Whether a hung process could be killed, and whether the same
/// hang was met in loading the library or in cuInit, are chance.
fn signature(stage: Stage, result: TrialResult) -> (Stage, TrialResult) {
    match result {
        TrialResult::Hung { .. } => (stage.max(Stage::Init), TrialResult::Hung { killable: None }),
        other => (stage, other),
    }
}

/// What an experiment says of a lever that causes ask for: `None` where it says nothing of one.
fn lever(experiment: &Experiment, facts: &Facts) -> Option<(Lever, bool)> {
    let helped = match experiment.effect {
        Effect::Works => true,
        Effect::Same => false,
        Effect::Fails | Effect::Differs | Effect::Unclear => {
            // It works as root and fails as somebody else.
            let of_user = matches!(experiment.change, Change::User(uid) if uid != 0);
            let as_root = facts.node.euid.value() == Some(&0);
            return (experiment.effect == Effect::Fails && of_user && as_root)
                .then_some((Lever::Root, true));
        }
    };
    let lever = match &experiment.change {
        Change::WithoutHooks => Lever::Interposer,
        Change::AllGpus => Lever::VisibleDevices,
        Change::WithoutMps => Lever::Mps,
        Change::Limit(Limited::OpenFiles, value) => Lever::OpenFiles(*value),
        Change::Limit(Limited::Processes, _) => Lever::Threads,
        Change::Limit(Limited::AddressSpace, _) => Lever::AddressSpace,
        Change::Library(path) => {
            let file = facts.library.others.iter().find(|file| file.path == *path)?;
            (file.kind == LibraryKind::Driver).then_some(Lever::DriverLibrary)?
        }
        Change::Nothing
        | Change::User(_)
        | Change::OneGpu(_)
        | Change::Traced
        | Change::ModuleLoading(_) => return None,
    };
    Some((lever, helped))
}
