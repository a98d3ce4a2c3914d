//! `uvm.hmm-crash`

use facts::model::log::LogEvent;
use facts::{Facts, Layer};

use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::machine;
use crate::need::Need;
use crate::readings;
use crate::remedy::{Impact, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "uvm.hmm-crash",
    layer: Layer::Uvm,
    claim: "an HMM path in nvidia_uvm crashed the kernel or spins in it",
    explanation: "The HMM code of nvidia_uvm has faults of its own in some releases. In 595.45 to \
        595.58 uvm_hmm_unregister_gpu follows a pointer that was never set when the GPU's device \
        memory could not be set up, so that the exit of any CUDA process, nvtop included, oopses \
        the kernel. In others an eviction spins for ever. After an oops the dead task's locks stay \
        held, and whatever touches the GPU next hangs until a reboot.",
    explains: &[
        SymptomId::GpuFaulted,
        SymptomId::CudaInitFails,
        SymptomId::CudaInitHangs,
        SymptomId::CudaInitCrashes,
        SymptomId::CudaContextFails,
        SymptomId::NvmlHangs,
        SymptomId::FrameworkNoGpu,
    ],
    specializes: &["uvm.hmm", "module.deadlock"],
    look_alikes: &[
        LookAlike {
            id: "uvm.hmm",
            tell: "no oops and no lockup: cuInit answers 3 or sleeps in a UVM call",
        },
        LookAlike {
            id: "module.deadlock",
            tell: "the watchdog speaks of a task that sleeps, and no oops stands before it",
        },
        LookAlike {
            id: "uvm.fatal-latched",
            tell: "the log says 'global fatal error', and the kernel goes on",
        },
    ],
    references: &[
        "https://github.com/NVIDIA/open-gpu-kernel-modules/issues/1082",
        "https://github.com/NVIDIA/open-gpu-kernel-modules/pull/1110",
        "https://github.com/NVIDIA/open-gpu-kernel-modules/issues/1223",
        "kernel-open/nvidia-uvm/uvm_hmm.c",
    ],
    weigh,
    remedy,
};

/// Functions of nvidia_uvm that only HMM passes through.
fn in_hmm(frame: &str) -> bool {
    frame.contains("uvm_hmm")
        || frame.contains("uvm_pmm_gpu_free_orphan")
        || frame.contains("devmem_fault")
}

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    let crash = crash(facts);
    let frame = facts.log.frames.iter().find(|(frame, _)| in_hmm(frame));
    match (&crash, frame) {
        (Some((what, event)), Some((frame, _))) => {
            weighing.confirms(format!("{what} in {frame}"), &event.origin);
        }
        (Some((what, event)), None) => other_code(facts, what, event, &mut weighing),
        (None, Some((frame, origin))) if facts.log.with("HUNG_TASK").next().is_none() => {
            weighing.supports(Moderate, format!("a stack in the log holds {frame}"), origin);
        }
        (None, _) => {}
    }
    if let Some(origin) = readings::logged(facts, &["UVM_NULL_HMM"]) {
        weighing.confirms("the kernel oopsed in uvm_hmm_unregister_gpu", origin);
    }
    if weighing.support.is_empty() {
        return weighing;
    }
    build(facts, &mut weighing);
    weighing
}

/// A crash or lockup of the kernel, in words.
fn crash(facts: &Facts) -> Option<(&'static str, &LogEvent)> {
    let event = facts.log.first(&["OOPS", "SOFT_LOCKUP", "RCU_STALL"])?;
    let what = match event.signature {
        "OOPS" => "the kernel oopsed",
        "SOFT_LOCKUP" => "a processor spins",
        _ => "a processor stalls",
    };
    Some((what, event))
}

/// A crash in the driver's modules, elsewhere than in HMM.
fn other_code(facts: &Facts, what: &str, event: &LogEvent, weighing: &mut Weighing) {
    if let Some((function, _)) = readings::driver_crash(facts) {
        let statement = format!("{what} in {function}, which is no HMM code");
        weighing.rules_out(statement, &event.origin);
    } else if facts.log.frames.is_empty() {
        weighing.needs(Need::KernelLog);
    }
}

/// The releases with the known fault, and the switch.
fn build(facts: &Facts, weighing: &mut Weighing) {
    if let Some(seen) = readings::driver_version(facts)
        && seen.value.branch() == 595
    {
        let statement = format!("driver {} is of the branch with the known fault", seen.value);
        weighing.supports(Weak, statement, &seen.origin);
    }
    if let Some(seen) = facts.module.uvm_disable_hmm.as_seen() {
        if seen.value {
            weighing.objects(Strong, "uvm_disable_hmm=Y", &seen.origin);
        } else {
            weighing.supports(Weak, "uvm_disable_hmm=N", &seen.origin);
        }
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let place = machine::kernel_place(facts);
    let initramfs = machine::distribution(facts).rebuild_initramfs();
    Remedy::new(Impact::Reboots, "everything on the machine")
        .step_to(
            place,
            "echo 'options nvidia_uvm uvm_disable_hmm=1' > /etc/modprobe.d/nvidia-uvm-hmm.conf",
            "keeps HMM off, and with it the faulty code",
        )
        .step_to(place, initramfs, "only where the initial RAM disk loads nvidia_uvm")
        .step_to(place, "reboot", "after an oops locks stay held; the module cannot be unloaded")
        .step_to(
            place,
            "or install a release with the fix (the patch of open-gpu-kernel-modules#1110)",
            "keeps HMM",
        )
        .undo("rm /etc/modprobe.d/nvidia-uvm-hmm.conf, then reboot")
        .verify("start and end a CUDA program: dmesg has no new 'BUG:' line, and gpudx is healthy")
        .will_not_help("ending the programs by kill -9: their exit is what crashes")
        .will_not_help("another application or framework: any CUDA process ends that way")
}
