//! `uvm.hmm-kaslr`

use facts::{Facts, Layer, Observed};

use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::machine;
use crate::need::Need;
use crate::readings::{self, code};
use crate::remedy::{Impact, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "uvm.hmm-kaslr",
    layer: Layer::Uvm,
    claim: "KASLR leaves no free physical range for HMM's pages",
    explanation: "HMM asks the kernel for a range of physical addresses as large as the GPU's memory \
        that nothing uses. Kernels that randomise their address space (KASLR) may at boot have \
        drawn the line below which such a range must lie so low that none is left: \
        request_free_mem_region gives -34 (ERANGE), the GPU is not registered, and cuInit answers \
        3. Whether it happens is drawn anew at each boot. The line is a debug print of nvidia_uvm, \
        so that nothing is logged unless uvm_debug_prints=1.",
    explains: &[SymptomId::CudaInitFails, SymptomId::GpuFaulted, SymptomId::FrameworkNoGpu],
    specializes: &["uvm.hmm"],
    look_alikes: &[
        LookAlike { id: "uvm.hmm", tell: "no error -34 in the log, and nokaslr changes nothing" },
        LookAlike { id: "kernel.lacks-sva", tell: "a coherent GPU on arm64, where HMM is off" },
        LookAlike { id: "process.fork-after-init", tell: "cuInit answers 0 in a fresh process" },
    ],
    references: &[
        "https://docs.nvidia.com/cuda/archive/13.2.1/cuda-features-archive/index.html",
        "https://github.com/ctrliq/kernel-src-tree/pull/4",
        "kernel-open/nvidia-uvm/uvm_pmm_gpu.c",
        "kernel/resource.c",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    if let Some(origin) = readings::cuda_works(facts) {
        weighing.rules_out("cuInit answers 0", origin);
        return weighing;
    }
    log(facts, &mut weighing);
    cure(facts, &mut weighing);
    if weighing.support.is_empty() {
        if readings::init_failed_with(facts, code::NOT_INITIALIZED).is_some() {
            excluded(facts, &mut weighing);
            weighing.needs(Need::KernelLog);
        }
        return weighing;
    }
    if let Some(trial) = readings::init_failed_with(facts, code::NOT_INITIALIZED) {
        weighing.supports(Moderate, "cuInit answers 3", &trial.origin);
    }
    if let Some(origin) = readings::nvml_works(facts) {
        weighing.supports(Weak, "NVML answers, so the driver and the GPUs are up", &origin);
    }
    excluded(facts, &mut weighing);
    weighing
}

/// The one line that tells it.
fn log(facts: &Facts, weighing: &mut Weighing) {
    for event in facts.log.with("UVM_RFMR") {
        match event.get("err") {
            Some("-34") => {
                let statement = "request_free_mem_region gives -34: no free range below the limit";
                weighing.confirms(statement, &event.origin);
            }
            Some(error) => {
                let statement = format!("request_free_mem_region gives {error}, not -34");
                weighing.objects(Strong, statement, &event.origin);
            }
            None => {}
        }
    }
}

/// It goes with KASLR: the same kernel works with nokaslr.
fn cure(facts: &Facts, weighing: &mut Weighing) {
    let cured = facts.cuda.trials.iter().find(|trial| {
        trial.ok() && trial.under.as_deref().is_some_and(|under| under.contains("nokaslr"))
    });
    if let Some(trial) = cured {
        weighing.confirms("CUDA starts once the kernel is booted with nokaslr", &trial.origin);
    }
}

/// With HMM or KASLR off there is nothing of the kind.
fn excluded(facts: &Facts, weighing: &mut Weighing) {
    if let Some(seen) = facts.host.cmdline.as_seen()
        && seen.value.iter().any(|word| word == "nokaslr")
    {
        weighing.rules_out("the kernel was booted with nokaslr", &seen.origin);
    }
    if let Some(seen) = facts.module.uvm_disable_hmm.as_seen().filter(|seen| seen.value) {
        weighing.rules_out("uvm_disable_hmm=Y", &seen.origin);
    }
    if let Observed::Seen(seen) = facts.host.config("RANDOMIZE_BASE")
        && !seen.value.is_on()
    {
        weighing.rules_out("the kernel is built without CONFIG_RANDOMIZE_BASE", &seen.origin);
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let place = machine::kernel_place(facts);
    let initramfs = machine::distribution(facts).rebuild_initramfs();
    Remedy::new(Impact::ReloadsModule, "every program that uses a GPU, in all containers")
        .step_to(
            place,
            "echo 'options nvidia_uvm uvm_disable_hmm=1' > /etc/modprobe.d/nvidia-uvm-hmm.conf",
            "CUDA does not need HMM; keeps KASLR",
        )
        .step_to(place, initramfs, "only where the initial RAM disk loads nvidia_uvm")
        .step_to(
            place,
            "modprobe -r nvidia_uvm && modprobe nvidia_uvm",
            "needs every GPU program stopped",
        )
        .step_to(
            place,
            "or: add nokaslr to the kernel's command line and reboot",
            "keeps HMM, for programs that share ordinary memory with the GPU",
        )
        .undo("rm /etc/modprobe.d/nvidia-uvm-hmm.conf and reload nvidia_uvm; take nokaslr off")
        .verify("several reboots in a row, and gpudx is healthy after each")
        .will_not_help("a reboot alone: the next draw may fail again")
        .will_not_help("reinstalling the driver: the range is the kernel's to give")
}
