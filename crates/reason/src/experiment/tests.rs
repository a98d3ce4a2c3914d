//! Which experiments the facts call for.

use facts::model::cuda::{Stage, Trial, TrialResult};
use facts::model::nvml::NvmlGpu;
use facts::{Origin, Seen};

use super::*;

fn working() -> Facts {
    let mut facts = Facts::default();
    facts.cuda.trials.push(Trial {
        stage: Stage::Device,
        result: TrialResult::Code(0),
        fresh_process: Some(true),
        hmm_disabled: None,
        seconds: None,
        traced: false,
        what: "cuInit".to_owned(),
        under: None,
        origin: Origin::item("probe:cuinit#1"),
    });
    facts
}

fn with_gpu(gpu: NvmlGpu) -> Facts {
    let mut facts = working();
    facts.nvml.gpus.push(Seen::new(gpu, Origin::item("probe:nvml#1")));
    facts
}

#[test]
fn a_sound_machine_pays_for_no_context() {
    assert_eq!(wanted(&working()), None);
    let mode = |mode: &str| NvmlGpu { compute_mode: Some(mode.into()), ..NvmlGpu::default() };
    assert_eq!(wanted(&with_gpu(mode("Default"))), None);
    assert!(wanted(&with_gpu(mode("Prohibited"))).is_some());
    let full = NvmlGpu { memory_mib: Some((80_000, 81_000)), ..NvmlGpu::default() };
    assert!(wanted(&with_gpu(full)).is_some());
}

#[test]
fn no_experiment_where_cuinit_fails_or_a_context_was_made() {
    assert_eq!(wanted(&Facts::default()), None);
    let mut facts = with_gpu(NvmlGpu { mig: Some(true), ..NvmlGpu::default() });
    assert!(wanted(&facts).is_some());
    facts.cuda.trials[0].stage = Stage::Free;
    assert_eq!(wanted(&facts), None);
}

/// The facts of a check by this user, in whose environment these variables are set, and whose runs
/// of cuInit ended so.
fn failing(results: &[TrialResult], uid: u32, variables: &[(&str, &str)]) -> Facts {
    let mut facts = Facts::default();
    for (result, number) in results.iter().zip(1_u32..) {
        let mut trial = working().cuda.trials.remove(0);
        trial.result = *result;
        trial.stage = if trial.ok() { Stage::Device } else { Stage::Init };
        trial.origin = Origin::item(format!("probe:cuinit#{number}"));
        facts.cuda.trials.push(trial);
    }
    let origin = Origin::item("/proc/self/environ");
    facts.node.euid = facts::Observed::seen(uid, origin.clone());
    for (name, value) in variables {
        let seen = Seen::new((*value).to_owned(), origin.clone());
        facts.process.env.insert((*name).to_owned(), seen);
    }
    facts
}

const UNKNOWN: TrialResult = TrialResult::Code(999);
const HUNG: TrialResult = TrialResult::Hung { killable: Some(true) };

fn words(facts: &Facts) -> Vec<String> {
    ladder(facts).iter().map(|rung| rung.change.to_string()).collect()
}

#[test]
fn a_rung_stands_only_where_it_can_discriminate() {
    assert!(words(&failing(&[UNKNOWN; 3], 0, &[])).is_empty());
    for (name, value, change) in [
        ("LD_PRELOAD", "/opt/shim.so", "without-hooks"),
        ("CUDA_INJECTION64_PATH", "/opt/tool.so", "without-hooks"),
        ("CUDA_VISIBLE_DEVICES", "0", "all-gpus"),
        ("CUDA_VISIBLE_DEVICES", "", "all-gpus"),
        ("CUDA_MPS_PIPE_DIRECTORY", "/run/mps", "without-mps"),
        ("SUDO_UID", "1000", "user 1000"),
    ] {
        assert_eq!(words(&failing(&[UNKNOWN; 3], 0, &[(name, value)])), [change], "{name}");
    }
    for (name, value) in [("LD_PRELOAD", ""), ("SUDO_UID", "0"), ("SUDO_UID", "x")] {
        assert!(words(&failing(&[UNKNOWN; 3], 0, &[(name, value)])).is_empty(), "{name}={value}");
    }
    // One who is not root cannot become another user.
    assert!(words(&failing(&[UNKNOWN; 3], 1000, &[("SUDO_UID", "7")])).is_empty());
}

#[test]
fn a_code_that_tells_by_itself_calls_for_no_visibility_or_limit() {
    let all = [("CUDA_VISIBLE_DEVICES", "0"), ("CUDA_MPS_PIPE_DIRECTORY", "/run/mps")];
    for code in [34, 802, 803, 804] {
        let facts = failing(&[TrialResult::Code(code); 3], 0, &all);
        assert!(words(&facts).is_empty(), "{code}");
    }
    let facts = failing(&[TrialResult::Code(805); 3], 0, &all);
    assert_eq!(words(&facts), ["without-mps"]);
}

#[test]
fn one_run_is_made_once_more_and_a_hang_is_traced() {
    assert_eq!(words(&failing(&[UNKNOWN], 0, &[])), ["nothing"]);
    assert_eq!(words(&failing(&[HUNG, HUNG], 0, &[])), ["traced"]);
}

#[test]
fn nothing_is_tried_beside_a_process_that_cannot_be_killed_or_runs_that_disagree() {
    let set = [("LD_PRELOAD", "/opt/shim.so")];
    let left = TrialResult::Hung { killable: Some(false) };
    assert!(words(&failing(&[left], 0, &set)).is_empty());
    assert!(words(&failing(&[UNKNOWN, TrialResult::Code(0)], 0, &set)).is_empty());
    assert!(words(&Facts::default()).is_empty());
}

#[test]
fn gpus_are_shown_alone_where_there_are_several() {
    let with_gpus = |count: usize, code: i64| {
        let mut facts = failing(&[TrialResult::Code(code); 2], 0, &[]);
        for index in 0..count {
            let gpu = NvmlGpu { uuid: Some(format!("GPU-{index}")), ..NvmlGpu::default() };
            facts.nvml.gpus.push(Seen::new(gpu, Origin::item("probe:nvml#1")));
        }
        words(&facts)
    };
    assert_eq!(with_gpus(2, 999), ["one-gpu GPU-0", "one-gpu GPU-1"]);
    assert!(with_gpus(1, 999).is_empty());
    assert!(with_gpus(2, 802).is_empty());
    assert_eq!(with_gpus(40, 999).len(), 16);
}

#[test]
fn a_limit_is_raised_where_it_is_low_and_may_be_raised() {
    let with_limit = |uid: u32, name: &str, soft: u64, hard: Option<u64>| {
        let mut facts = failing(&[TrialResult::Code(304); 2], uid, &[]);
        let origin = Origin::item("/proc/self/limits");
        facts.process.limits.insert(name.to_owned(), Seen::new(Some(soft), origin.clone()));
        facts.process.hard_limits.insert(name.to_owned(), Seen::new(hard, origin));
        words(&facts)
    };
    assert_eq!(with_limit(0, "Max open files", 32, Some(1024)), ["limit open-files 1024"]);
    assert_eq!(with_limit(0, "Max open files", 32, None), ["limit open-files 65536"]);
    assert!(with_limit(0, "Max open files", 32, Some(32)).is_empty());
    assert!(with_limit(0, "Max open files", 1024, None).is_empty());
    assert_eq!(with_limit(7, "Max processes", 32, None), ["limit processes unlimited"]);
    assert!(with_limit(0, "Max processes", 32, None).is_empty(), "root is not held by it");
}

#[test]
fn the_ladder_ends_at_a_cure_and_asks_for_the_control() {
    use facts::model::experiment::{Change, Effect, Experiment, Run};
    let mut facts = failing(&[UNKNOWN; 3], 0, &[("LD_PRELOAD", "/opt/shim.so")]);
    let made = |change: Change, effect: Effect, result: TrialResult| Experiment {
        number: 1,
        change,
        why: String::new(),
        run: Some(Run { stage: Stage::Device, result, what: "cuInit".to_owned() }),
        hindered: None,
        seconds: 0.2,
        effect,
        in_flight: None,
        origin: Origin::item("probe:experiment#1"),
    };
    let works = TrialResult::Code(0);
    let one = |name: &str| Change::OneGpu(name.to_owned());
    facts.experiments.push(made(Change::AllGpus, Effect::Same, UNKNOWN));
    assert_eq!(no_more(&facts, &one("GPU-1")), None);
    assert_eq!(control(&facts), None);
    facts.experiments.push(made(one("GPU-0"), Effect::Works, works));
    assert_eq!(no_more(&facts, &one("GPU-1")), None, "the others tell which one it is");
    assert!(no_more(&facts, &Change::Traced).is_some());
    assert_eq!(control(&facts).map(|rung| rung.change), Some(Change::Nothing));
    facts.experiments[0].run = Some(Run {
        stage: Stage::Init,
        result: TrialResult::Hung { killable: Some(false) },
        what: "cuInit".to_owned(),
    });
    assert!(no_more(&facts, &one("GPU-1")).is_some());
}
