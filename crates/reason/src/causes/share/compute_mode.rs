//! `share.compute-mode`

use facts::model::process::Lever;
use facts::model::share::GpuProcess;
use facts::{Facts, Layer, Seen};

use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::gpu_state;
use crate::machine;
use crate::need::Need;
use crate::readings::code;
use crate::remedy::{Impact, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "share.compute-mode",
    layer: Layer::Share,
    claim: "the GPU's compute mode allows one owner, or none",
    explanation: "An administrator can set a GPU to Exclusive_Process (one process may hold a \
        context) or Prohibited (none may). cuInit works and the GPU is listed; creating a context \
        answers 46, \"all CUDA-capable devices are busy or unavailable\", also on a GPU that looks \
        idle. A leftover process, or a worker of one's own program that was first, is then the one \
        owner. The mode belongs to the GPU and is kept until it is set again or the driver is \
        unloaded.",
    explains: &[SymptomId::CudaContextFails, SymptomId::FrameworkNoGpu, SymptomId::CudaInitFails],
    specializes: &[],
    look_alikes: &[
        LookAlike {
            id: "share.mig-one-per-process",
            tell: "MIG mode is on and there is no instance: 46 on a GPU in Default mode",
        },
        LookAlike {
            id: "gpu.needs-reset",
            tell: "nvidia-smi asks for a reset, or an Xid stands before it",
        },
        LookAlike { id: "share.mps-unreachable", tell: "the code is 805 to 807" },
    ],
    references: &[
        "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#compute-modes",
        "https://github.com/pytorch/pytorch/issues/3871",
        "https://github.com/NVIDIA/DIGITS/issues/2005",
        "https://github.com/tensorflow/tensorflow/issues/526",
        "https://github.com/cBio/cbio-cluster/issues/144",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let busy =
        facts.cuda.plain().find(|trial| trial.failure_code() == Some(code::DEVICE_UNAVAILABLE));
    let Some(busy) = busy else {
        return Weighing::not_applicable();
    };
    let mut weighing = Weighing::new();
    let owner = owner(facts);
    match mode(facts) {
        Some(mode) if mode.value == "Prohibited" => {
            weighing.confirms("a GPU's compute mode is Prohibited", &mode.origin);
        }
        Some(mode) => {
            let statement = format!("a GPU's compute mode is {}", mode.value);
            match &owner {
                Some(_) => weighing.confirms(statement, &mode.origin),
                None => weighing.supports(Strong, statement, &mode.origin),
            };
        }
        None => by_absence(facts, &mut weighing),
    }
    match facts.process.tried(|lever| lever == Lever::ComputeMode) {
        Some((attempt, origin)) if attempt.helped => {
            weighing.supports(Strong, "it works once the compute mode is Default", origin);
        }
        Some((_, origin)) => {
            weighing.objects(Strong, "setting the compute mode to Default does not help", origin);
        }
        None => {}
    }
    weighing.supports(Moderate, "a CUDA call answers 46, busy or unavailable", &busy.origin);
    if let Some(line) = gpu_state::reset_required_logged(facts) {
        let statement = "the driver logged that the GPU must be reset, which answers 46 as well";
        weighing.objects(Strong, statement, &line.origin);
    }
    if let Some(process) = owner {
        let statement =
            format!("process {} ({}) computes on it", process.value.pid, process.value.name);
        weighing.supports(Weak, statement, &process.origin);
    } else if facts.share.no_processes.is_none() {
        weighing.needs(Need::ComputeMode);
    }
    weighing
}

/// The first mode that does not let everybody in.
fn mode(facts: &Facts) -> Option<Seen<String>> {
    let listed = facts.nvml.gpus.iter().find_map(|gpu| {
        let mode = gpu.value.compute_mode.clone().filter(|mode| mode != "Default")?;
        Some(Seen::new(mode, gpu.origin.clone()))
    });
    listed.or_else(|| facts.share.compute_mode_told.as_seen().cloned())
}

/// Modes that were listed and are all Default are the end of the matter.
fn by_absence(facts: &Facts, weighing: &mut Weighing) {
    let gpus = &facts.nvml.gpus;
    let all_open = gpus.iter().all(|gpu| gpu.value.compute_mode.as_deref() == Some("Default"));
    match gpus.first() {
        Some(first) if all_open => {
            weighing.rules_out("every GPU's compute mode is Default", &first.origin);
        }
        _ => {
            weighing.needs(Need::ComputeMode);
        }
    }
}

/// A process that computes on a GPU whose mode is not Default.
fn owner(facts: &Facts) -> Option<&Seen<GpuProcess>> {
    let closed: Vec<u32> = facts
        .nvml
        .gpus
        .iter()
        .filter(|gpu| gpu.value.compute_mode.as_deref().is_some_and(|mode| mode != "Default"))
        .filter_map(|gpu| gpu.value.index)
        .collect();
    facts.share.processes.iter().find(|process| {
        let there = process.value.gpu.is_none_or(|gpu| closed.contains(&gpu));
        process.value.computes() && there
    })
}

fn remedy(facts: &Facts) -> Remedy {
    let place = machine::kernel_place(facts);
    let gpu = facts
        .nvml
        .gpus
        .iter()
        .find(|gpu| gpu.value.compute_mode.as_deref().is_some_and(|mode| mode != "Default"))
        .and_then(|gpu| gpu.value.index);
    let which = gpu.map_or(String::new(), |index| format!(" -i {index}"));
    let mut remedy = Remedy::new(Impact::None, "nothing; whoever holds the GPU goes on");
    if let Some(process) = owner(facts) {
        remedy = remedy.step_to(
            place,
            format!("ps -fp {}", process.value.pid),
            "whose process holds the GPU; ending it frees the GPU in the present mode",
        );
    }
    remedy
        .step_to(
            place,
            format!("nvidia-smi{which} --compute-mode=0"),
            "as root: Default, several owners",
        )
        .step_to(
            place,
            "or nvidia-cuda-mps-control -d",
            "several processes through one owner, where the mode must stay",
        )
        .undo(format!("nvidia-smi{which} --compute-mode=EXCLUSIVE_PROCESS"))
        .verify(
            "nvidia-smi shows Default in the column Compute M., and the program gets its context",
        )
        .will_not_help("freeing memory: the GPU is closed, not full")
        .will_not_help(
            "CUDA_VISIBLE_DEVICES: on a cluster the scheduler may have set the mode on purpose",
        )
}
