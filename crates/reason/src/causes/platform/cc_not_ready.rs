//! `platform.cc-not-ready`

use facts::model::cuda::Trial;
use facts::{Facts, Layer, Origin};

use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::need::Need;
use crate::readings::{self, code};
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "platform.cc-not-ready",
    layer: Layer::Platform,
    claim: "Confidential Computing is on, and the GPU has not been declared ready",
    explanation: "With Confidential Computing on, the GPU takes no work until somebody in the guest \
        says that it may: normally the attestation service, after it has checked the GPU's report. \
        Until then the driver loads, nvidia-smi lists the GPU as healthy, and cuInit answers 802 or \
        the first context fails. The state is lost with every reboot of the guest and reload of the \
        driver.",
    explains: &[SymptomId::CudaInitFails, SymptomId::CudaContextFails, SymptomId::FrameworkNoGpu],
    specializes: &["gpu.needs-reset"],
    look_alikes: &[
        LookAlike {
            id: "fabric.manager-missing",
            tell: "an NVSwitch machine without confidential computing",
        },
        LookAlike { id: "fabric.vm-partition", tell: "the GPUs' fabric state is not completed" },
        LookAlike { id: "gpu.needs-reset", tell: "the driver asks for a recovery" },
    ],
    references: &[
        "https://github.com/NVIDIA/nvtrust/issues/56",
        "https://github.com/NVIDIA/nvtrust/issues/87",
        "https://docs.nvidia.com/confidential-computing/",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let platform = &facts.platform;
    let cured = cure(facts);
    let off = platform.cc_on.as_seen().filter(|seen| !seen.value);
    if let Some(off) = off {
        let mut weighing = Weighing::new();
        weighing.rules_out("Confidential Computing is off", &off.origin);
        return weighing;
    }
    let on = platform.cc_on.as_seen();
    let told = platform.cc_told.first();
    if on.is_none() && told.is_none() && platform.cc_ready.is_empty() && cured.is_none() {
        return Weighing::not_applicable();
    }
    let mut weighing = Weighing::new();
    if let Some(origin) = cured {
        weighing.confirms("CUDA works once the GPU is declared ready", origin);
    }
    let failed = failure(facts);
    state(facts, failed.is_some(), &mut weighing);
    if let Some(trial) = failed {
        let not_ready = trial.failure_code() == Some(code::SYSTEM_NOT_READY);
        let (strength, statement) = if not_ready {
            (Strong, "cuInit answers 802, system not yet ready")
        } else {
            (Weak, "CUDA fails")
        };
        weighing.supports(strength, statement, &trial.origin);
    } else if let Some(origin) = readings::cuda_works(facts).filter(|_| weighing.support.is_empty())
    {
        weighing.rules_out("cuInit answers 0", origin);
        return weighing;
    }
    if let Some(on) = on {
        weighing.supports(Moderate, "Confidential Computing is on", &on.origin);
    } else if let Some(told) = told.filter(|_| !weighing.support.is_empty()) {
        weighing.supports(Weak, "the input speaks of Confidential Computing", &told.origin);
    }
    broken(facts, &mut weighing);
    if platform.cc_ready.is_empty() && cured.is_none() {
        weighing.needs(Need::ConfCompute);
    }
    weighing
}

/// The cure is the proof.
fn cure(facts: &Facts) -> Option<&Origin> {
    let told = facts.platform.cc_cured.first().map(|told| &told.origin);
    let tried = facts.cuda.trials.iter().find(|trial| {
        let under = trial.under.as_deref().unwrap_or("");
        let declared =
            ["-srs 1", "--set-gpus-ready-state", "-srs=1"].iter().any(|word| under.contains(word));
        trial.ok() && declared
    });
    tried.map(|trial| &trial.origin).or(told)
}

fn failure(facts: &Facts) -> Option<&Trial> {
    readings::init_failure(facts)
        .map(|(_, trial)| trial)
        .or_else(|| readings::context_failure(facts))
}

/// The ready state. The first reading counts: the last one may be after the cure.
fn state(facts: &Facts, failed: bool, weighing: &mut Weighing) {
    let Some(first) = facts.platform.cc_ready.first() else { return };
    if first.value {
        weighing.rules_out("the GPU's ready state is 'ready'", &first.origin);
    } else if failed {
        weighing.confirms("the GPU's ready state is 'not ready'", &first.origin);
    } else {
        weighing.supports(Strong, "the GPU's ready state is 'not ready'", &first.origin);
    }
}

/// A broken encrypted channel is another fault: declaring ready does not mend it.
fn broken(facts: &Facts, weighing: &mut Weighing) {
    let lines = ["CC_FATAL", "CC_DMA_DECRYPT", "CC_SPDM", "LKCA", "RMINIT_FAILED", "FSP_TIMEOUT"];
    if let Some(origin) = readings::logged(facts, &lines) {
        weighing.objects(Strong, "the driver does not come up with the GPU at all", origin);
    }
}

fn remedy(_: &Facts) -> Remedy {
    Remedy::new(Impact::None, "nothing")
        .step_to(Place::Guest, "nvidia-smi conf-compute -f; nvidia-smi conf-compute -grs", "whether it is on, and whether the GPU is ready")
        .step_to(
            Place::Guest,
            "run the attestation (nvattest, or python3 -m verifier.cc_admin), and look at its verdict",
            "declaring a GPU ready without it gives up what the mode is for",
        )
        .step_to(Place::Guest, "nvidia-smi conf-compute -srs 1", "declares the GPU ready, as root")
        .step_to(
            Place::Guest,
            "systemctl enable nvidia-persistenced, and a unit that attests and declares at boot",
            "the state is lost when the driver is unloaded",
        )
        .undo("nvidia-smi conf-compute -srs 0")
        .verify("nvidia-smi conf-compute -grs prints ready, and cuInit answers 0")
        .will_not_help("another driver or CUDA version: the GPU takes no work from any of them")
        .will_not_help("nvidia-fabricmanager: there is no fabric to bring up")
}
