//! `process.fork-after-init`

use facts::model::cuda::{Stage, Trial};
use facts::model::framework::FrameworkMessage;
use facts::{Facts, Layer};

use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::need::Need;
use crate::readings::code;
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "process.fork-after-init",
    layer: Layer::Process,
    claim: "CUDA was initialized before a fork, and the forked process cannot use it",
    explanation: "The driver's state in a process does not survive fork: in the child every call \
        answers 3 (CUDA_ERROR_NOT_INITIALIZED), cuInit itself included. The machine is healthy, \
        and a fresh process gets 0 at the same moment. Frameworks warn (\"Cannot re-initialize \
        CUDA in forked subprocess\") only of what they initialized themselves; when some library \
        called cuInit in the parent, the child just looks like a broken driver.",
    explains: &[SymptomId::CudaInitFails, SymptomId::CudaContextFails, SymptomId::FrameworkNoGpu],
    specializes: &[],
    look_alikes: &[LookAlike {
        id: "uvm.hmm",
        tell: "cuInit answers 3 in every fresh process as well",
    }],
    references: &[
        "https://github.com/vllm-project/vllm/issues/46996",
        "https://github.com/pytorch/pytorch/issues/189287",
        "https://docs.pytorch.org/docs/stable/notes/multiprocessing.html#cuda-in-multiprocessing",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    let message = facts.framework.messages.iter();
    for (_, origin) in message.filter(|(kind, _)| *kind == FrameworkMessage::ForkedSubprocess) {
        let statement = "the framework says that CUDA cannot start again in a forked process";
        weighing.confirms(statement, origin);
    }
    let threes = || facts.cuda.init_failures(code::NOT_INITIALIZED);
    let forked = threes().find(|trial| trial.fresh_process == Some(false));
    let failed = forked.or_else(|| threes().next());
    if let Some(trial) = failed {
        three_and_zero(facts, trial, &mut weighing);
        if let Some(seen) = facts.process.forking_workers.first() {
            let statement = format!("the program runs in {}, which was forked", seen.value);
            weighing.supports(Moderate, statement, &seen.origin);
        }
    }
    fresh_failure(facts, &mut weighing);
    weighing
}

/// 3 here and 0 in a fresh process is the fork's signature.
fn three_and_zero(facts: &Facts, failed: &Trial, weighing: &mut Weighing) {
    let fresh = facts.cuda.plain().find(|trial| {
        trial.fresh_process == Some(true) && trial.ok() && trial.stage >= Stage::Init
    });
    let forked = failed.fresh_process == Some(false);
    match (forked, fresh) {
        (true, Some(works)) => {
            weighing.confirms("cuInit answers 3 in the forked process", &failed.origin);
            weighing.supports(Strong, "cuInit answers 0 in a fresh process", &works.origin);
        }
        (true, None) => {
            weighing.supports(Strong, "cuInit answers 3 in a forked process", &failed.origin);
            weighing.needs(Need::FreshProcess);
        }
        (false, Some(works)) if failed.fresh_process.is_none() => {
            weighing.supports(Strong, "cuInit answers 0 in a fresh process", &works.origin);
            let statement = "and 3 in the program, which is what a fork after cuInit gives";
            weighing.supports(Moderate, statement, &failed.origin);
        }
        (false, _) => {
            let statement = "cuInit answers 3, as it does in a process forked after it ran";
            weighing.supports(Weak, statement, &failed.origin);
            weighing.needs(Need::FreshProcess);
        }
    }
}

/// A fresh process, the probe's own or a one-line program, that fails as well.
fn fresh_failure(facts: &Facts, weighing: &mut Weighing) {
    let failed = facts.cuda.plain().find(|trial| {
        trial.fresh_process == Some(true)
            && !trial.ok()
            && matches!(trial.stage, Stage::Init | Stage::Version | Stage::Count)
    });
    let Some(trial) = failed else { return };
    let statement = match trial.failure_code() {
        Some(number) => {
            format!("cuInit answers {number} in a fresh process too, which nothing forked")
        }
        None => "cuInit fails in a fresh process too, which nothing forked".to_owned(),
    };
    weighing.rules_out(statement, &trial.origin);
}

fn remedy(facts: &Facts) -> Remedy {
    let vllm = facts.framework.packages.iter().any(|package| package.value.name == "vllm");
    let mut remedy = Remedy::new(Impact::RestartsProcess, "the program in question");
    if vllm {
        remedy = remedy.step_to(
            Place::Program,
            "export VLLM_WORKER_MULTIPROC_METHOD=spawn",
            "vLLM then starts its workers as fresh processes",
        );
    }
    remedy = remedy
        .step_to(
            Place::Program,
            "multiprocessing.set_start_method(\"spawn\")",
            "before anything else, under if __name__ == \"__main__\"",
        )
        .step_to(
            Place::Program,
            "export PYTORCH_NVML_BASED_CUDA_CHECK=1",
            "lets torch.cuda.is_available() ask NVML, which survives a fork",
        );
    if !vllm {
        remedy = remedy.step_to(
            Place::Program,
            "export VLLM_WORKER_MULTIPROC_METHOD=spawn",
            "where the program is vLLM",
        );
    }
    remedy
        .undo("unset the variables; set_start_method(\"fork\")")
        .verify("python3 -c 'import ctypes; print(ctypes.CDLL(\"libcuda.so.1\").cuInit(0))' prints 0, and so does the worker")
        .will_not_help("reinstalling driver or toolkit, or a reboot: a fresh process works as it is")
        .will_not_help("calling cuInit again in the child: it answers 3 for ever")
}

#[cfg(test)]
mod tests {
    use facts::Origin;
    use facts::model::cuda::TrialResult;

    use super::*;
    use crate::weigh::Verdict;

    fn trial(code: i64, fresh_process: Option<bool>) -> Trial {
        Trial {
            stage: Stage::Init,
            result: TrialResult::Code(code),
            fresh_process,
            hmm_disabled: None,
            seconds: None,
            traced: false,
            what: "cuInit".to_owned(),
            under: None,
            origin: Origin::item("text:report"),
        }
    }

    fn verdict(trials: Vec<Trial>) -> Verdict {
        let mut facts = Facts::default();
        facts.cuda.trials = trials;
        weigh(&facts).verdict()
    }

    #[test]
    fn three_in_the_child_and_zero_afresh() {
        let forked = || trial(3, Some(false));
        assert_eq!(verdict(vec![forked(), trial(0, Some(true))]), Verdict::Confirmed);
        assert_eq!(verdict(vec![trial(3, None), trial(0, Some(true))]), Verdict::Likely);
        assert_eq!(verdict(vec![forked()]), Verdict::Possible);
        assert_eq!(verdict(vec![trial(3, None)]), Verdict::Unknown);
        assert_eq!(verdict(vec![trial(3, Some(true))]), Verdict::RuledOut);
        assert_eq!(verdict(vec![trial(999, None)]), Verdict::NotApplicable);
    }
}
