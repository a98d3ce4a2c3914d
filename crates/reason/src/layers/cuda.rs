//! The lines of CUDA and of the frameworks on top.

use facts::Facts;
use facts::model::ProbeRun;
use facts::model::cuda::{Stage, Trial, TrialResult};

use super::Line;
use super::hardware::counted;
use crate::symptom::named_cuda_code;

/// `cuInit returned in 0 of 3 trials (10 s each); in UVM_REGISTER_GPU on /dev/nvidia-uvm, state D
/// in uvm_…`.
pub(super) fn cuda(facts: &Facts) -> Line {
    let trials: Vec<&Trial> = facts.cuda.plain().collect();
    if trials.is_empty() {
        return Line::unknown(match cut_short(facts, "cuinit") {
            Some(time) => format!("cuInit had {time} only, too little for it to end"),
            None => "cuInit was not tried".to_owned(),
        });
    }
    if trials.iter().any(|trial| matches!(trial.result, TrialResult::Hung { .. })) {
        return Line::fault(hanging(facts, &trials));
    }
    if let Some(failed) = trials.iter().find(|trial| !trial.ok()) {
        let words = match failed.result {
            TrialResult::Code(code) => format!("{} answers {}", failed.what, named_cuda_code(code)),
            TrialResult::Crashed(_) => format!("the process dies inside {}", failed.what),
            TrialResult::Failed => format!("{} does not start", failed.what),
            TrialResult::WrongResult => format!("{} gave wrong data", failed.what),
            TrialResult::Hung { .. } => format!("{} does not return", failed.what),
        };
        return Line::fault(words);
    }
    let last = trials.last().map_or_else(String::new, |trial| working(facts, trial));
    Line::ok(last)
}

/// The time that a probe had, where it was too little for its end to tell anything.
pub(super) fn cut_short(facts: &Facts, probe: &str) -> Option<String> {
    let mut runs = facts.unchanged_runs().filter(|run| run.probe == probe);
    runs.find(|run| run.was_cut_short()).map(|run| format!("{:.0} ms", 1000.0 * run.seconds))
}

/// How often it returned, and where it is stuck.
fn hanging(facts: &Facts, trials: &[&Trial]) -> String {
    let hung = |trial: &&&Trial| matches!(trial.result, TrialResult::Hung { .. });
    let returned = trials.len() - trials.iter().filter(hung).count();
    let what = trials.iter().find(hung).map_or("cuInit", |trial| trial.what.as_str());
    let run = facts.probes.iter().find(|run| run.probe == "cuinit" && run.hung());
    let seconds = run.map_or(String::new(), |run| format!(" ({:.0} s each)", run.seconds));
    let place = run.and_then(stuck_words).map_or(String::new(), |words| format!("; {words}"));
    format!("{what} returned in {returned} of {}{seconds}{place}", counted(trials.len(), "trial"))
}

/// `in UVM_REGISTER_GPU on /dev/nvidia-uvm, state D in uvm_api_register_gpu`.
fn stuck_words(run: &ProbeRun) -> Option<String> {
    let stuck = run.stuck.as_ref()?;
    let call = stuck.call.as_ref().map(|call| format!("in {}", call.trim_start_matches("ioctl ")));
    let function = stuck.wchan.as_deref().or(stuck.stack.first().map(String::as_str));
    let state = match function {
        Some(function) => format!("state {} in {function}", stuck.state),
        None => format!("state {}", stuck.state),
    };
    Some([call, Some(state)].into_iter().flatten().collect::<Vec<_>>().join(", "))
}

/// How far it got.
fn working(facts: &Facts, trial: &Trial) -> String {
    let seconds = trial.seconds.map_or(String::new(), |seconds| format!(" in {seconds:.2} s"));
    let devices = facts.cuda.count.value().map_or(String::new(), |count| {
        format!(", {}", counted(usize::try_from(*count).unwrap_or(0), "device"))
    });
    let far = match trial.stage {
        Stage::Kernel | Stage::Free => "; context, copy and kernel work",
        Stage::Context | Stage::Allocation | Stage::Copy => "; a context works",
        Stage::Load | Stage::Init | Stage::Version | Stage::Count | Stage::Device => "",
    };
    format!("{} answers 0{seconds}{devices}{far}", trial.what)
}

/// `torch 2.10.0+cu128 for CUDA 12.8`.
pub(super) fn framework(facts: &Facts) -> Option<Line> {
    if let Some(torch) = facts.framework.torch.value() {
        let version = torch.version.as_ref().map_or(String::new(), |version| format!(" {version}"));
        let cuda = match torch.cuda {
            Some(Some(cuda)) => format!(" for CUDA {cuda}"),
            Some(None) => " without CUDA".to_owned(),
            None => String::new(),
        };
        return Some(Line::ok(format!("torch{version}{cuda}")));
    }
    let available = facts.framework.torch_available.value()?;
    let words = if *available { "torch finds CUDA" } else { "torch finds no CUDA" };
    Some(if *available { Line::ok(words) } else { Line::unknown(words) })
}
