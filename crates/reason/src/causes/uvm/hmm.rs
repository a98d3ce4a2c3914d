//! `uvm.hmm`

use facts::model::ProbeRun;
use facts::model::cuda::Trial;
use facts::model::host::ConfigValue;
use facts::model::share::MpsStatement;
use facts::model::task::Hang;
use facts::{Facts, Layer, Observed, Seen};

use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::machine;
use crate::need::Need;
use crate::readings::{self, code};
use crate::remedy::{Impact, Remedy};
use crate::stuck::{self, Place};
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
        and NVML, which does not register GPUs with UVM, goes on answering, though a query such as \
        the addressing mode may hang behind the stuck call.",
    explains: &[
        SymptomId::GpuFaulted,
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
        LookAlike {
            id: "kernel.lacks-sva",
            tell: "a coherent GPU (GB10, Grace), addressing mode None, and a kernel without IOMMU_SVA",
        },
        LookAlike {
            id: "uvm.not-loaded",
            tell: "/proc/devices has no nvidia-uvm, and cuInit answers 999",
        },
        LookAlike {
            id: "uvm.hmm-kaslr",
            tell: "request_free_mem_region gives -34, and nokaslr cures it as well",
        },
        LookAlike {
            id: "uvm.hmm-crash",
            tell: "the kernel log has an oops or a soft lockup in HMM code",
        },
        LookAlike {
            id: "uvm.mixed-families",
            tell: "cuInit answers 0 as soon as GPUs of one family alone are visible",
        },
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

/// How the module's debug lines name HMM's failure: no range for the pages, or no pages in it.
const DEBUG_LINES: [&str; 3] = ["UVM_RFMR", "UVM_MEMREMAP", "UVM_DEVMEM"];

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    let cured = cure(facts);
    symptom_support(facts, &mut weighing);
    if weighing.support.is_empty() && cured.is_none() {
        if let Some(origin) = readings::cuda_works(facts) {
            weighing.rules_out("cuInit answers 0", origin);
        }
        return weighing;
    }
    if let Some(trial) = cured {
        weighing.confirms("CUDA starts once uvm_disable_hmm=1", &trial.origin);
    }
    log(facts, &mut weighing);
    switch(facts, cured.is_some(), &mut weighing);
    kernel(facts, &mut weighing);
    beneath(facts, &mut weighing);
    process(facts, cured.is_some(), &mut weighing);
    if let Some(trial) = readings::works_with_some_gpus(facts) {
        let statement = "CUDA starts with a part of the GPUs visible, HMM being as it is";
        weighing.rules_out(statement, &trial.origin);
    }
    weighing
}

/// cuInit answering 3 or not returning is what HMM's failure looks like from outside.
fn symptom_support(facts: &Facts, weighing: &mut Weighing) {
    if let Some(trial) = readings::init_failed_with(facts, code::NOT_INITIALIZED) {
        let statement =
            "cuInit answers 3, which is what libcuda makes of any refusal of UVM_REGISTER_GPU";
        weighing.supports(Moderate, statement, &trial.origin);
    }
    if let Some(trial) = readings::init_hang(facts) {
        weighing.supports(Moderate, "cuInit does not return", &trial.origin);
    }
    for run in facts.unchanged_runs().filter(|run| run.hung()) {
        stuck(run, weighing);
    }
    for place in stuck::hung_tasks(facts) {
        task(&place, weighing);
    }
    if let Some(event) = facts.log.with("HUNG_TASK").next()
        && facts.log.frames.iter().any(|(frame, _)| in_hmm(frame))
    {
        weighing.supports(Strong, "the kernel's watchdog found a task in HMM code", &event.origin);
    }
    for failure in &facts.cuda.uvm_failures {
        register_gpu(failure, weighing);
    }
}

/// What UVM_REGISTER_GPU answered. HMM's failures are those of memory, or ask for another try
/// (from 595 on); a device that is called invalid or unsupported is refused for what it is.
fn register_gpu(failure: &Seen<(String, String)>, weighing: &mut Weighing) {
    let (name, status) = &failure.value;
    if name != "UVM_REGISTER_GPU" {
        return;
    }
    let statement = format!("{name} answers {status}");
    if ["INVALID_DEVICE", "NOT_SUPPORTED"].iter().any(|refusal| status.contains(refusal)) {
        weighing.objects(Strong, statement, &failure.origin);
    } else {
        weighing.supports(Strong, statement, &failure.origin);
    }
}

/// Functions that only HMM's setting up and its pages pass through.
fn in_hmm(frame: &str) -> bool {
    ["uvm_hmm", "memremap_pages", "request_free_mem_region", "migrate_vma"]
        .iter()
        .any(|name| frame.contains(name))
}

/// Where a probe of our own is stuck: the stack says more than the call, the call more than the
/// state. A busy process in user space repeats a call that was answered, which is another fault.
fn stuck(run: &ProbeRun, weighing: &mut Weighing) {
    let Some(stuck) = &run.stuck else { return };
    let uvm_call = stuck.call.as_deref().filter(|call| call.contains("UVM_"));
    if stuck.stack.iter().any(|frame| in_hmm(frame)) {
        weighing.supports(Strong, "the stuck task is in HMM code of nvidia_uvm", &run.origin);
    } else if let Some(call) = uvm_call {
        weighing.supports(Strong, format!("the stuck task is in {call}"), &run.origin);
    } else if matches!(run.hang(), Some(Hang::RepeatsCalls | Hang::BusyInUserSpace)) {
        let statement = "the process is busy in user space: it repeats a call that answers";
        weighing.objects(Strong, statement, &run.origin);
    } else if let Some(call) = &stuck.call {
        // Whoever waits in the driver may wait for one that is stuck in nvidia_uvm.
        let strength = if call.contains("socket") { Strong } else { Moderate };
        weighing.objects(
            strength,
            format!("the stuck task is in {call}, not in nvidia_uvm"),
            &run.origin,
        );
    }
}

/// Another program that hangs inside nvidia_uvm.
fn task(place: &Place<'_>, weighing: &mut Weighing) {
    let who = &place.who;
    let call = place.stuck.call.as_deref().filter(|call| call.contains("UVM_"));
    if place.stuck.stack.iter().any(|frame| in_hmm(frame)) {
        let statement = format!("{who} is in HMM code of nvidia_uvm");
        weighing.supports(Strong, statement, place.origin);
    } else if let Some(call) = call {
        weighing.supports(Strong, format!("{who} is in {call}"), place.origin);
    } else if let Some(frame) = place.stuck.stack.iter().find(|frame| in_uvm(frame)) {
        weighing.supports(Moderate, format!("{who} is in {frame}"), place.origin);
    }
}

fn in_uvm(frame: &str) -> bool {
    frame.contains("[nvidia_uvm]") || frame.starts_with("uvm_")
}

/// The cure is the proof: it fails with HMM on and works with HMM off on the same machine.
fn cure(facts: &Facts) -> Option<&Trial> {
    let failed =
        facts.cuda.trials.iter().any(|trial| !trial.ok() && trial.hmm_disabled != Some(true));
    facts.cuda.trials.iter().filter(|_| failed).find(|trial| trial.ok() && with_hmm_off(trial))
}

fn with_hmm_off(trial: &Trial) -> bool {
    trial.hmm_disabled == Some(true)
        || trial.under.as_deref().is_some_and(|under| under.contains("uvm_disable_hmm=1"))
}

/// The module names HMM only with uvm_debug_prints=1; then it is proof.
fn log(facts: &Facts, weighing: &mut Weighing) {
    if let Some(event) = facts.log.first(&DEBUG_LINES) {
        let text = facts::observed::clean_excerpt(&event.text);
        weighing.confirms(format!("the kernel log says: {text}"), &event.origin);
    } else if !facts.log.read.is_seen() {
        weighing.needs(Need::KernelLog);
    }
    if let Some(origin) = readings::logged(facts, &["RMINIT_FAILED", "RM_INIT_ADAPTER"]) {
        weighing.objects(Strong, "RmInitAdapter fails, beneath UVM", origin);
    }
}

fn switch(facts: &Facts, cured: bool, weighing: &mut Weighing) {
    match &facts.module.uvm_disable_hmm {
        Observed::Seen(seen) if seen.value => {
            let still_fails =
                facts.cuda.plain().any(|trial| !trial.ok() && trial.hmm_disabled == Some(true));
            let works = cured || readings::cuda_works(facts).is_some();
            if still_fails || !works {
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
    // The mode as NVML tells it: a GPU in ATS mode shares its tables and has no use for HMM.
    let mode = |name| {
        facts.nvml.gpus.iter().find(|gpu| gpu.value.addressing_mode.as_deref() == Some(name))
    };
    if let Some(gpu) = mode("HMM") {
        weighing.supports(Weak, "NVML calls the addressing mode HMM", &gpu.origin);
    } else if let Some(gpu) = mode("ATS") {
        weighing.objects(
            Strong,
            "the addressing mode is ATS, in which HMM is not used",
            &gpu.origin,
        );
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
    // Distributions carry the interfaces back into older kernels, so the release alone excludes
    // nothing.
    if let Some(seen) = facts.host.kernel.as_seen().filter(|seen| !seen.value.at_least(5, 13)) {
        let statement =
            format!("kernel {} is older than the interfaces that HMM needs", seen.value);
        weighing.objects(Moderate, statement, &seen.origin);
    }
    if let Some(seen) = facts.host.arch.as_seen().filter(|seen| seen.value == "aarch64") {
        weighing.objects(Moderate, "on aarch64 HMM is off unless it is asked for", &seen.origin);
    }
}

/// What lies beneath must be sound for the fault to lie in UVM.
fn beneath(facts: &Facts, weighing: &mut Weighing) {
    match readings::nvml_works(facts) {
        Some(origin) => {
            weighing.supports(Moderate, "NVML answers, so the driver and the GPUs are up", &origin);
        }
        None => {
            weighing.needs(Need::Nvml);
        }
    }
    if let Some((code, origin)) = readings::nvml_failure(facts) {
        weighing.objects(Strong, format!("NVML fails as well, with {code}"), &origin);
    }
    let mut mps = facts.share.mps_statements.iter();
    if let Some(said) = mps.find(|said| said.value == MpsStatement::OnlyWithMps) {
        weighing.rules_out("without MPS the same host starts CUDA", &said.origin);
    }
    if let Some(origin) = readings::uvm_missing(facts) {
        weighing.rules_out("nvidia_uvm is not loaded at all", &origin);
    } else if let Some(origin) = readings::uvm_registered(facts)
        && weighing.support.len() > 1
    {
        weighing.supports(Weak, "nvidia_uvm is loaded", &origin);
    }
}

/// A forked process answers 3 as well; a fresh one tells the two apart. Where fresh ones now fail
/// and now work, nothing is told.
fn process(facts: &Facts, cured: bool, weighing: &mut Weighing) {
    let fresh: Vec<&Trial> =
        facts.cuda.plain().filter(|trial| trial.fresh_process == Some(true)).collect();
    let failed = fresh.iter().find(|trial| !trial.ok());
    let worked = fresh.iter().find(|trial| trial.ok() && !with_hmm_off(trial));
    match (failed, worked) {
        (None, Some(trial)) if !cured => {
            weighing.rules_out("cuInit answers 0 in a fresh process", &trial.origin);
        }
        (Some(trial), None) if trial.failure_code() == Some(code::NOT_INITIALIZED) => {
            weighing.supports(Weak, "it is a fresh process, so no fork is at fault", &trial.origin);
        }
        (None, None) => {
            weighing.needs(Need::FreshProcess);
        }
        (Some(_), _) | (None, Some(_)) => {}
    }
    if let Some(seen) = facts.process.forking_workers.first() {
        let statement = format!("the program runs in {}, and a fork gives 3 as well", seen.value);
        weighing.objects(Moderate, statement, &seen.origin);
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let place = machine::kernel_place(facts);
    let initramfs = machine::distribution(facts).rebuild_initramfs();
    Remedy::new(
        Impact::ReloadsModule,
        "every program that uses a GPU, in all containers",
    )
    .step_to(
        place,
        "echo 'options nvidia_uvm uvm_disable_hmm=1' > /etc/modprobe.d/nvidia-uvm-hmm.conf",
        "keeps HMM off from now on",
    )
    .step_to(
        place,
        initramfs,
        "only where the initial RAM disk loads nvidia_uvm",
    )
    .step_to(
        place,
        "modprobe -r nvidia_uvm && modprobe nvidia_uvm",
        "needs every GPU program stopped; reboot instead if a task cannot be killed",
    )
    .undo("rm /etc/modprobe.d/nvidia-uvm-hmm.conf, then reload nvidia_uvm")
    .verify("cat /sys/module/nvidia_uvm/parameters/uvm_disable_hmm prints Y, and gpudx is healthy")
    .will_not_help(
        "reinstalling the driver or the toolkit: the fault is between nvidia_uvm and the kernel",
    )
    .will_not_help("another PyTorch build: cuInit fails before any framework code runs")
}
