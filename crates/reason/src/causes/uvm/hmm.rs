//! `uvm.hmm`

use facts::model::host::ConfigValue;
use facts::{Facts, Layer, Observed};

use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::need::Need;
use crate::readings::{self, code};
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "uvm.hmm",
    layer: Layer::Uvm,
    claim: "HMM support in nvidia_uvm does not work on this kernel",
    explanation: "When nvidia_uvm is loaded with HMM on, registering a GPU asks the kernel for a \
        free physical address range as large as the GPU's memory and for device-private pages in \
        it. On some kernels that fails or never returns. libcuda turns any failure of \
        UVM_REGISTER_GPU into 3 (CUDA_ERROR_NOT_INITIALIZED); nothing is logged in release builds; \
        and NVML, which does not register GPUs with UVM, goes on answering.",
    explains: &[
        SymptomId::CudaInitFails,
        SymptomId::CudaInitHangs,
        SymptomId::NvmlHangs,
        SymptomId::FrameworkNoGpu,
    ],
    specializes: &[],
    look_alikes: &[
        LookAlike {
            id: "process.fork-after-init",
            tell: "cuInit answers 3 in the forked process and 0 in a fresh one",
        },
        LookAlike {
            id: "module.deadlock",
            tell: "the stuck task's stack holds a driver lock outside nvidia_uvm, and NVML hangs from its first call",
        },
        LookAlike {
            id: "firmware.gsp-lacks-chip",
            tell: "the GPU reports no GSP version, and RmInitAdapter fails in the kernel log",
        },
        LookAlike { id: "uvm.not-loaded", tell: "/proc/devices has no nvidia-uvm, and cuInit answers 999" },
    ],
    references: &[
        "https://github.com/NVIDIA/open-gpu-kernel-modules/issues/901",
        "https://github.com/NVIDIA/open-gpu-kernel-modules/issues/947",
        "https://github.com/ollama/ollama/issues/11593",
        "kernel-open/nvidia-uvm/uvm_hmm.c",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    symptom_support(facts, &mut weighing);
    if weighing.support.is_empty() {
        if let Some(origin) = readings::cuda_works(facts) {
            weighing.rules_out("cuInit answers 0", origin);
        }
        return weighing;
    }
    cure(facts, &mut weighing);
    switch(facts, &mut weighing);
    kernel(facts, &mut weighing);
    neighbours(facts, &mut weighing);
    weighing
}

/// cuInit answering 3 or not returning is what HMM's failure looks like from outside.
fn symptom_support(facts: &Facts, weighing: &mut Weighing) {
    if let Some(trial) = readings::init_failed_with(facts, code::NOT_INITIALIZED) {
        let statement = "cuInit answers 3, which is what libcuda makes of any refusal of UVM_REGISTER_GPU";
        weighing.supports(Moderate, statement, &trial.origin);
    }
    if let Some(trial) = readings::init_hang(facts) {
        weighing.supports(Moderate, "cuInit does not return", &trial.origin);
    }
    for run in facts.probes.iter().filter(|run| run.hung()) {
        let Some(stuck) = &run.stuck else { continue };
        let in_uvm_call = stuck.call.as_deref().is_some_and(|call| call.contains("UVM_"));
        let in_hmm = stuck.stack.iter().any(|frame| frame.contains("hmm") || frame.contains("memremap"));
        if in_hmm {
            weighing.supports(Strong, "the stuck task sleeps in HMM code of nvidia_uvm", &run.origin);
        } else if in_uvm_call {
            let call = stuck.call.clone().unwrap_or_default();
            weighing.supports(Strong, format!("the stuck task is in {call}"), &run.origin);
        }
    }
    for failure in &facts.cuda.uvm_failures {
        let (name, status) = &failure.value;
        if name == "UVM_REGISTER_GPU" {
            weighing.supports(Strong, format!("{name} answers {status}"), &failure.origin);
        }
    }
}

/// The cure is the proof: it fails with HMM on and works with HMM off on the same machine.
fn cure(facts: &Facts, weighing: &mut Weighing) {
    let failed = facts.cuda.trials.iter().any(|trial| !trial.ok() && trial.hmm_disabled != Some(true));
    let cured = facts.cuda.trials.iter().find(|trial| {
        let by_switch = trial.hmm_disabled == Some(true)
            || trial.under.as_deref().is_some_and(|under| under.contains("uvm_disable_hmm=1"));
        trial.ok() && by_switch
    });
    if let (true, Some(trial)) = (failed, cured) {
        weighing.confirms("CUDA starts once uvm_disable_hmm=1", &trial.origin);
    }
}

fn switch(facts: &Facts, weighing: &mut Weighing) {
    match &facts.module.uvm_disable_hmm {
        Observed::Seen(seen) if seen.value => {
            let still_fails = facts.cuda.plain().any(|trial| !trial.ok() && trial.hmm_disabled == Some(true));
            let cured = readings::cuda_works(facts).is_some();
            if still_fails || !cured {
                weighing.rules_out("HMM is off: uvm_disable_hmm=Y", &seen.origin);
            }
        }
        Observed::Seen(seen) => {
            weighing.supports(Moderate, "HMM is on: uvm_disable_hmm=N", &seen.origin);
        }
        Observed::Absent(_) | Observed::Denied(..) | Observed::Unknown(_) => {
            weighing.needs(Need::UvmDisableHmm);
        }
    }
}

fn kernel(facts: &Facts, weighing: &mut Weighing) {
    for name in ["HMM_MIRROR", "DEVICE_PRIVATE"] {
        match facts.host.config(name) {
            Observed::Seen(seen) if seen.value == ConfigValue::No => {
                let statement = format!("the kernel has no HMM: CONFIG_{name} is not set");
                weighing.rules_out(statement, &seen.origin);
            }
            Observed::Seen(seen) => {
                weighing.supports(Weak, format!("the kernel has CONFIG_{name}"), &seen.origin);
            }
            Observed::Absent(_) | Observed::Denied(..) | Observed::Unknown(_) => {
                weighing.needs(Need::KernelHmmConfig);
            }
        }
    }
}

/// What lies beneath must be sound for the fault to lie in UVM.
fn neighbours(facts: &Facts, weighing: &mut Weighing) {
    match readings::nvml_works(facts) {
        Some(origin) => {
            weighing.supports(Moderate, "NVML answers, so the driver and the GPUs are up", &origin);
        }
        None => {
            weighing.needs(Need::Nvml);
        }
    }
    if let Some(origin) = readings::uvm_missing(facts) {
        weighing.rules_out("nvidia_uvm is not loaded at all", &origin);
    }
    if let Some((code, origin)) = readings::nvml_failure(facts) {
        weighing.objects(Strong, format!("NVML fails as well, with {code}"), &origin);
    }
    if let Some(trial) = facts.cuda.plain().find(|trial| trial.fresh_process == Some(true) && trial.ok()) {
        weighing.rules_out("cuInit answers 0 in a fresh process", &trial.origin);
    } else if !facts.cuda.trials.iter().any(|trial| trial.fresh_process == Some(true)) {
        weighing.needs(Need::FreshProcess);
    }
    if let Observed::Seen(seen) = facts.module.loaded("nvidia_uvm")
        && weighing.support.len() > 1
    {
        weighing.supports(Weak, "nvidia_uvm is loaded", &seen.origin);
    }
    if !facts.log.read.is_seen() {
        weighing.needs(Need::KernelLog);
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let in_container = facts
        .host
        .container
        .value()
        .is_some_and(|kind| *kind != facts::model::host::ContainerKind::None);
    let place = if in_container { Place::Host } else { Place::Here };
    Remedy::new(Impact::ReloadsModule, "every program that uses a GPU, in all containers")
        .step_to(
            place,
            "echo 'options nvidia_uvm uvm_disable_hmm=1' > /etc/modprobe.d/nvidia-uvm-hmm.conf",
            "keeps HMM off from now on",
        )
        .step_to(
            place,
            "modprobe -r nvidia_uvm && modprobe nvidia_uvm",
            "needs every GPU program stopped; reboot if a task cannot be killed",
        )
        .undo("rm /etc/modprobe.d/nvidia-uvm-hmm.conf, then reload nvidia_uvm")
        .verify("cat /sys/module/nvidia_uvm/parameters/uvm_disable_hmm prints Y, and gpudx is healthy")
        .will_not_help("reinstalling the driver or the toolkit: the fault is between nvidia_uvm and the kernel")
        .will_not_help("another PyTorch build: cuInit fails before any framework code runs")
}
