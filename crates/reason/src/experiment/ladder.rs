//! The ladder: which one thing to change, in which order, so that the result tells causes apart.
//!
//! A rung stands here only where it can discriminate: a variable is taken out only where it is set,
//! a limit raised only where it is low and may be raised, one GPU shown alone only where there are
//! several. What each answer means for a cause is weighed by the cause.

use std::time::Duration;

use facts::Facts;
use facts::model::cuda::{Stage, Trial, TrialResult};
use facts::model::experiment::{Change, Effect, Limited};
use facts::model::library::LibraryKind;
use facts::model::process::Limit;

use crate::diagnose::{Diagnosis, State};
use crate::readings::{self, code};
use crate::symptom::SymptomId;
use crate::weigh::Verdict;

/// An experiment that is worth making.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rung {
    /// The one thing to change.
    pub change: Change,
    /// What calls for it, in one clause.
    pub why: String,
}

/// Most GPUs that are shown alone, one by one.
const GPUS_LIMIT: usize = 16;
/// Most other libraries that are tried.
const LIBRARIES_LIMIT: usize = 2;
/// Below this many, open files may be too few for cuInit on a machine with many GPUs.
const FEW_OPEN_FILES: u64 = 512;
/// Above this many, a start that walks through all of them is slow enough to look like a hang.
const MANY_OPEN_FILES: u64 = 1 << 26;
/// A limit that is neither.
const USUAL_OPEN_FILES: u64 = 65_536;
/// Below this many, threads of one user may run out.
const FEW_PROCESSES: u64 = 4096;

/// The rungs that a diagnosis calls for by itself. All of them when CUDA shows a symptom and nothing
/// is settled or that symptom stays unexplained; those that decide about the cause that leads, when
/// it is no more than likely; and the one for the caller when it works for root, on behalf of
/// somebody whom the modes of the nodes may not let in.
pub fn due(facts: &Facts, diagnosis: &Diagnosis) -> Vec<Rung> {
    let mut rungs = ladder(facts);
    if matches!(base(facts), Base::Works) {
        rungs.retain(|_| nodes_are_closed(facts));
        return rungs;
    }
    let symptoms = || diagnosis.symptoms.iter().filter(|symptom| is_of_cuda(symptom.id));
    let open = diagnosis.state == State::Undetermined && symptoms().next().is_some();
    if open || symptoms().any(|symptom| symptom.explained_by.is_empty()) {
        return rungs;
    }
    let leads = diagnosis.causes.first().filter(|first| first.verdict < Verdict::Confirmed);
    let Some(leads) = leads else { return Vec::new() };
    rungs.retain(|rung| decides(&rung.change, leads.cause.id));
    rungs
}

fn is_of_cuda(id: SymptomId) -> bool {
    matches!(
        id,
        SymptomId::CudaInitFails
            | SymptomId::CudaInitHangs
            | SymptomId::CudaInitCrashes
            | SymptomId::CudaContextFails
    )
}

/// Whether the result of a change confirms a cause or rules it out.
fn decides(change: &Change, cause: &str) -> bool {
    let causes: &[&str] = match change {
        Change::WithoutHooks => &["library.interposer"],
        Change::AllGpus => &["process.visible-devices"],
        Change::WithoutMps => &["share.mps-unreachable", "share.mps-version-skew"],
        Change::Library(_) => {
            &["library.compat-shadows", "library.compat-unsupported", "library.bundled-driver"]
        }
        Change::Limit(Limited::OpenFiles, _) => {
            &["process.open-files-low", "process.open-files-huge"]
        }
        Change::Limit(Limited::Processes, _) => &["process.threads"],
        Change::Limit(Limited::AddressSpace, _) => &["process.address-space"],
        Change::User(_) => &["node.permission"],
        Change::OneGpu(_) => &["uvm.mixed-families", "gpu.needs-reset"],
        Change::Nothing | Change::Traced | Change::ModuleLoading(_) => &[],
    };
    causes.contains(&cause)
}

/// A node of the driver's is not open to everybody.
fn nodes_are_closed(facts: &Facts) -> bool {
    let needed = readings::needed_nodes(facts).into_iter();
    let mut modes = needed.filter_map(|path| facts.node.at(&path).value()?.mode);
    modes.any(|mode| mode & 0o006 != 0o006)
}

/// The rungs that the facts call for, the cheapest that tells most first. None where the run that
/// fails left a process behind that cannot be killed, since each further one might, and none where
/// the runs do not agree, since a single further one then tells nothing.
pub fn ladder(facts: &Facts) -> Vec<Rung> {
    let mut rungs = Vec::new();
    match base(facts) {
        Base::None | Base::LeftBehind | Base::Disagrees => {}
        Base::Works => as_caller(facts, &mut rungs),
        Base::Fails(trial) => {
            let question = Question { facts, trial };
            question.once_more(&mut rungs);
            question.hooks(&mut rungs);
            question.visible(&mut rungs);
            question.mps(&mut rungs);
            question.libraries(&mut rungs);
            question.limits(&mut rungs);
            if question.code().is_none_or(|code| !SURE.contains(&code)) {
                as_caller(facts, &mut rungs);
            }
            question.gpus(&mut rungs);
            question.timing(&mut rungs);
            question.loading(&mut rungs);
        }
    }
    rungs
}

/// Whether experiments must go on to a context to meet what fails.
pub fn beyond_init(facts: &Facts) -> bool {
    matches!(base(facts), Base::Fails(trial) if trial.stage >= Stage::Context)
}

/// How long a run without any change takes to fail; `None` when it hangs.
pub fn usual(facts: &Facts) -> Option<Duration> {
    let runs = facts.probes.iter().filter(|run| run.probe == "cuinit");
    let seconds = runs.clone().map(|run| run.seconds).fold(0.0, f64::max);
    let hung = runs.clone().any(facts::model::ProbeRun::hung);
    (!hung).then(|| Duration::from_secs_f64(seconds.clamp(0.0, 60.0)))
}

/// Why a rung is not to be made any more, after what came of those before it.
pub fn no_more(facts: &Facts, change: &Change) -> Option<&'static str> {
    if facts.experiments.iter().any(facts::model::Experiment::left_behind) {
        return Some("an earlier one left a process behind that cannot be killed");
    }
    if matches!(base(facts), Base::Disagrees) {
        return Some("the runs without any change do not agree, so that it would tell nothing");
    }
    let one_gpu = |change: &Change| matches!(change, Change::OneGpu(_));
    let decided = facts.experiments.iter().any(|made| {
        // One GPU tells only beside all the others.
        made.effect == Effect::Works && !(one_gpu(&made.change) && one_gpu(change))
    });
    decided.then_some("an earlier one changed the result already")
}

/// The control: after a change that cures, the same once more without it must fail as before.
pub fn control(facts: &Facts) -> Option<Rung> {
    let cured = facts.experiments.iter().find(|made| made.effect == Effect::Works)?;
    let why = format!("it works {}: does it still fail without that?", cured.change.words());
    Some(Rung { change: Change::Nothing, why })
}

/// What gpudx's own runs came to.
enum Base<'a> {
    None,
    Works,
    Fails(&'a Trial),
    LeftBehind,
    Disagrees,
}

fn base(facts: &Facts) -> Base<'_> {
    let own = || facts.cuda.plain().filter(|trial| trial.origin.item.starts_with("probe:"));
    if own().any(|trial| trial.result == TrialResult::Hung { killable: Some(false) }) {
        return Base::LeftBehind;
    }
    match own().find(|trial| !trial.ok()) {
        Some(failed) if own().any(|trial| trial.ok() && trial.stage >= failed.stage) => {
            Base::Disagrees
        }
        Some(failed) => Base::Fails(failed),
        None if own().next().is_some() => Base::Works,
        None => Base::None,
    }
}

/// Codes that tell by themselves what is wrong: a stub, another release, the fabric.
const SURE: [i64; 4] =
    [code::STUB_LIBRARY, code::SYSTEM_NOT_READY, code::DRIVER_MISMATCH, code::COMPAT_NOT_SUPPORTED];
/// CUDA_ERROR_MPS_CONNECTION_FAILED to CUDA_ERROR_MPS_CLIENT_TERMINATED.
const MPS_CODES: std::ops::RangeInclusive<i64> = 805..=810;

fn rung(rungs: &mut Vec<Rung>, change: Change, why: impl Into<String>) {
    rungs.push(Rung { change, why: why.into() });
}

/// As root on behalf of somebody else: the program in question runs as that user.
fn as_caller(facts: &Facts, rungs: &mut Vec<Rung>) {
    let Some(caller) = facts.process.env.get("SUDO_UID") else { return };
    let uid = caller.value.parse().ok().filter(|uid| *uid != 0);
    if let (Some(uid), Some(0)) = (uid, facts.node.euid.value()) {
        rung(rungs, Change::User(uid), "gpudx runs as root on behalf of this user");
    }
}

/// A failure, and what might change it.
struct Question<'a> {
    facts: &'a Facts,
    trial: &'a Trial,
}

impl Question<'_> {
    fn code(&self) -> Option<i64> {
        self.trial.failure_code()
    }

    /// The code does not say by itself what is wrong.
    fn is_open(&self) -> bool {
        self.code().is_none_or(|code| !SURE.contains(&code) && !MPS_CODES.contains(&code))
    }

    fn variable(&self, name: &str) -> Option<String> {
        let seen = self.facts.process.env.get(name).filter(|seen| !seen.value.is_empty())?;
        Some(format!("{name}={}", seen.value))
    }

    /// One run alone may have been an accident.
    fn once_more(&self, rungs: &mut Vec<Rung>) {
        let own = self.facts.cuda.plain().filter(|trial| trial.origin.item.starts_with("probe:"));
        if own.count() < 2 {
            rung(rungs, Change::Nothing, "one run may be an accident");
        }
    }

    fn hooks(&self, rungs: &mut Vec<Rung>) {
        const VARIABLES: [&str; 3] = ["LD_PRELOAD", "LD_AUDIT", "CUDA_INJECTION64_PATH"];
        let set = VARIABLES.iter().find_map(|name| self.variable(name));
        let listed = || {
            let mut all = self.facts.library.interposers.iter();
            all.find(|(_, origin)| &*origin.item == "/etc/ld.so.preload")
                .map(|(path, _)| format!("/etc/ld.so.preload names {path}"))
        };
        if let Some(why) = set.or_else(listed) {
            rung(rungs, Change::WithoutHooks, why);
        }
    }

    fn visible(&self, rungs: &mut Vec<Rung>) {
        // An empty value hides every GPU and so is one that matters.
        let set = self.facts.process.env.get("CUDA_VISIBLE_DEVICES").filter(|_| self.is_open());
        if let Some(seen) = set {
            let why = format!("CUDA_VISIBLE_DEVICES={} chooses what cuInit sees", seen.value);
            rung(rungs, Change::AllGpus, why);
        }
    }

    fn mps(&self, rungs: &mut Vec<Rung>) {
        if self.code().is_some_and(|code| SURE.contains(&code)) {
            return;
        }
        let share = &self.facts.share;
        let pipe = self.variable("CUDA_MPS_PIPE_DIRECTORY").or_else(|| {
            let pipe = share.mps_pipe.value().map(|path| format!("MPS has its pipe in {path}"));
            let daemon = share.mps_daemon.value().filter(|runs| **runs);
            pipe.or_else(|| daemon.map(|_| "an MPS daemon runs".to_owned()))
        });
        if let Some(why) = pipe {
            rung(rungs, Change::WithoutMps, why);
        }
    }

    /// Another libcuda: of the module's release where that is known, since any other is refused.
    fn libraries(&self, rungs: &mut Vec<Rung>) {
        let fabric = self.code() == Some(code::SYSTEM_NOT_READY);
        let mps = self.code().is_some_and(|code| MPS_CODES.contains(&code));
        let Some(mapped) = self.facts.library.cuda.value().filter(|_| !fabric && !mps) else {
            return;
        };
        let module = readings::driver_version(self.facts);
        let mut tried = vec![mapped.real_path.as_str()];
        for file in &self.facts.library.others {
            let other = file.soname == "libcuda.so.1"
                && file.kind == LibraryKind::Driver
                && !tried.contains(&file.real_path.as_str());
            let fits = match (&module, &file.version) {
                (Some(module), Some(version)) => version.same_release(&module.value),
                (Some(_), None) => false,
                (None, _) => true,
            };
            if other && fits && tried.len() <= LIBRARIES_LIMIT {
                tried.push(&file.real_path);
                let why = format!("{} is found first, and this lies here too", mapped.path);
                rung(rungs, Change::Library(file.path.clone()), why);
            }
        }
    }

    fn limits(&self, rungs: &mut Vec<Rung>) {
        if !self.is_open() {
            return;
        }
        let hangs = matches!(self.trial.result, TrialResult::Hung { .. });
        match self.soft(Limited::OpenFiles) {
            Some(Some(soft)) if soft < FEW_OPEN_FILES => {
                self.raise(Limited::OpenFiles, soft, Some(USUAL_OPEN_FILES), rungs);
            }
            Some(None | Some(MANY_OPEN_FILES..)) if hangs => {
                let change = Change::Limit(Limited::OpenFiles, Some(USUAL_OPEN_FILES));
                rung(
                    rungs,
                    change,
                    "so many open files are allowed that walking them takes minutes",
                );
            }
            _ => {}
        }
        let root = self.facts.node.euid.value() == Some(&0);
        if let Some(Some(soft)) = self.soft(Limited::Processes)
            && soft < FEW_PROCESSES
            && !root
        {
            self.raise(Limited::Processes, soft, None, rungs);
        }
        if let Some(Some(soft)) = self.soft(Limited::AddressSpace) {
            self.raise(Limited::AddressSpace, soft, None, rungs);
        }
    }

    fn soft(&self, limited: Limited) -> Option<Limit> {
        self.facts.process.limits.get(limited.name()).map(|seen| seen.value)
    }

    /// Raises a limit to `enough`, or as far as the hard limit lets it.
    fn raise(&self, limited: Limited, soft: u64, enough: Limit, rungs: &mut Vec<Rung>) {
        let Some(hard) = self.facts.process.hard_limits.get(limited.name()) else { return };
        let value = match (hard.value, enough) {
            (Some(hard), Some(enough)) => Some(hard.min(enough)),
            (hard, None) => hard,
            (None, enough) => enough,
        };
        if value.is_none_or(|value| value > soft) {
            let what = limited.name().trim_start_matches("Max ");
            let why = format!("the limit of {what} is {soft}, and this process may raise it");
            rung(rungs, Change::Limit(limited, value), why);
        }
    }

    /// Each GPU alone, where there are several and what fails is not the same for all.
    fn gpus(&self, rungs: &mut Vec<Rung>) {
        let chosen = self.facts.process.env.get("CUDA_VISIBLE_DEVICES");
        let one_chosen = chosen.is_some_and(|seen| !seen.value.contains(','));
        if !self.is_open() || self.code() == Some(code::NO_DEVICE) || one_chosen {
            return;
        }
        let by_nvml = self.facts.nvml.gpus.iter().filter_map(|gpu| gpu.value.uuid.clone());
        let by_module = self.facts.module.gpus.iter().filter_map(|gpu| gpu.value.uuid.clone());
        let mut uuids: Vec<String> = by_nvml.chain(by_module).collect();
        // A GPU that could not be asked shows question marks.
        uuids.retain(|uuid| uuid.starts_with("GPU-") && !uuid.contains('?'));
        uuids.sort_unstable();
        uuids.dedup();
        if uuids.len() < 2 {
            return;
        }
        let why = format!("there are {} GPUs, and one may be what fails", uuids.len());
        for uuid in uuids.into_iter().take(GPUS_LIMIT) {
            rung(rungs, Change::OneGpu(uuid), why.clone());
        }
    }

    /// What does not return, or dies, may do so by a race, and the tracer changes timing.
    fn timing(&self, rungs: &mut Vec<Rung>) {
        if matches!(self.trial.result, TrialResult::Hung { .. } | TrialResult::Crashed(_)) {
            rung(rungs, Change::Traced, "it may be a race, and the tracer changes timing");
        }
    }

    /// When modules are loaded matters from a context on.
    fn loading(&self, rungs: &mut Vec<Rung>) {
        if self.trial.stage < Stage::Context {
            return;
        }
        let set = self.variable("CUDA_MODULE_LOADING");
        let eager = set.as_ref().is_some_and(|set| set.ends_with("EAGER"));
        let other = if eager { "LAZY" } else { "EAGER" };
        let why =
            set.unwrap_or_else(|| "modules are loaded lazily unless told otherwise".to_owned());
        rung(rungs, Change::ModuleLoading(other.to_owned()), why);
    }
}
