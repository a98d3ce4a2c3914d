//! `uvm.mixed-families`

use facts::model::cuda::Trial;
use facts::{Facts, Layer, Origin};
use nvabi::pci_id;

use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::machine;
use crate::need::Need;
use crate::readings::{self, code};
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "uvm.mixed-families",
    layer: Layer::Uvm,
    claim: "this build of nvidia_uvm cannot register GPUs of different families together",
    explanation: "All GPUs of a process share one UVM address space, and nvidia_uvm demands that \
        they agree on how memory is kept coherent. Community builds of the open modules that force \
        peer-to-peer access mark one family of GPUs as coherent, so that the first GPU of another \
        family is refused: cuInit answers 3 with all GPUs visible, and 0 as soon as \
        CUDA_VISIBLE_DEVICES leaves one family. NVIDIA's own builds take mixed machines.",
    explains: &[SymptomId::CudaInitFails, SymptomId::FrameworkNoGpu],
    specializes: &["uvm.hmm"],
    look_alikes: &[
        LookAlike {
            id: "uvm.hmm",
            tell: "cuInit answers 3 with any choice of GPUs; uvm_disable_hmm=1 cures it",
        },
        LookAlike {
            id: "process.visible-devices",
            tell: "cuInit answers 100 and not 3, and the list of visible devices is at fault",
        },
        LookAlike { id: "kernel.lacks-sva", tell: "one coherent GPU alone fails as well" },
    ],
    references: &[
        "https://github.com/aikitoria/open-gpu-kernel-modules/issues/26",
        "https://github.com/tinygrad/open-gpu-kernel-modules",
        "kernel-open/nvidia-uvm/uvm_va_space.c",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    let families = families(facts);
    let Some(trial) =
        readings::init_failed_with(facts, code::NOT_INITIALIZED).or_else(|| conditional(facts))
    else {
        return weighing;
    };
    // A report may name GPUs that are not in the machine, so that names alone say too little.
    if readings::boards(facts).is_empty() && readings::works_with_some_gpus(facts).is_none() {
        weighing.needs(Need::GpuModel);
        return weighing;
    }
    match families.as_slice() {
        [] => {
            weighing.needs(Need::GpuModel);
            return weighing;
        }
        [(family, origin)] => {
            weighing.rules_out_by_all(format!("all GPUs are of one family, {family}"), origin);
            return weighing;
        }
        [(first, origin), (second, _), ..] => {
            let statement = format!("GPUs of {first} and of {second} are in this machine");
            weighing.supports(Moderate, statement, origin);
        }
    }
    if trial.failure_code() == Some(code::NOT_INITIALIZED) {
        weighing.supports(Moderate, "cuInit answers 3 with all of them", &trial.origin);
    }
    subset(facts, &mut weighing);
    module(facts, &mut weighing);
    if let Some(origin) = readings::nvml_works(facts) {
        weighing.supports(Weak, "NVML lists them, so the driver is up", &origin);
    }
    weighing
}

/// "It works with one family": nothing plain is said of it with all.
fn conditional(facts: &Facts) -> Option<&Trial> {
    facts.cuda.plain().next().is_none().then(|| readings::works_with_some_gpus(facts))?
}

/// The families of the GPUs at hand, each with where one was seen.
fn families(facts: &Facts) -> Vec<(&'static str, Origin)> {
    let boards = readings::boards(facts);
    let seen: Vec<(&'static str, Origin)> = if boards.is_empty() {
        let told = facts.host.gpu_names.iter();
        told.filter_map(|name| {
            let product = pci_id::by_product_name(&name.value)?;
            Some((product.architecture, name.origin.clone()))
        })
        .collect()
    } else {
        boards.into_iter().map(|board| (board.value.product.architecture, board.origin)).collect()
    };
    let mut found: Vec<(&'static str, Origin)> = Vec::new();
    for (family, origin) in seen {
        if !found.iter().any(|(known, _)| *known == family) {
            found.push((family, origin));
        }
    }
    found
}

fn subset(facts: &Facts, weighing: &mut Weighing) {
    if let Some(trial) = readings::works_with_some_gpus(facts) {
        weighing.supports(Strong, "CUDA starts with a part of the GPUs visible", &trial.origin);
    } else {
        weighing.needs(Need::OneFamily);
    }
    for failure in &facts.cuda.uvm_failures {
        let (call, status) = &failure.value;
        if call == "UVM_REGISTER_GPU" {
            weighing.supports(Moderate, format!("{call} answers {status}"), &failure.origin);
        }
    }
    let off = facts.cuda.trials.iter().find(|trial| trial.hmm_disabled == Some(true) && trial.ok());
    if let Some(trial) = off {
        weighing.rules_out("CUDA starts with all of them once HMM is off", &trial.origin);
    }
}

/// A module that is not NVIDIA's own build.
fn module(facts: &Facts, weighing: &mut Weighing) {
    if let Some(seen) = &facts.module.patched_told {
        weighing.supports(Moderate, "the kernel module is a patched build", &seen.origin);
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let place = machine::kernel_place(facts);
    Remedy::new(Impact::RestartsProcess, "the CUDA program")
        .step_to(
            Place::Program,
            "CUDA_VISIBLE_DEVICES=INDICES of one family, as nvidia-smi -L lists them, with CUDA_DEVICE_ORDER=PCI_BUS_ID",
            "each process sees one family",
        )
        .step_to(
            place,
            "or install NVIDIA's own build of the modules, or a patched one in which that is mended (610.57.04-p2p)",
            "takes all families together; NVIDIA's own loses the forced peer-to-peer access",
        )
        .undo("unset CUDA_VISIBLE_DEVICES")
        .verify("cuInit answers 0 with every GPU visible")
        .will_not_help("uvm_disable_hmm=1: HMM has no part in it")
        .will_not_help("another slot or power supply: either family works alone")
}
