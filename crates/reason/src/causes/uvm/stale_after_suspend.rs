//! `uvm.stale-after-suspend`

use facts::model::cuda::Trial;
use facts::model::log::LogEvent;
use facts::{Facts, Layer, Origin};

use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::machine::{self, Distribution};
use crate::need::Need;
use crate::readings::{self, code};
use crate::remedy::{Impact, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "uvm.stale-after-suspend",
    layer: Layer::Uvm,
    claim: "nvidia_uvm did not come back from suspend",
    explanation: "A suspend takes the GPU's memory away. nvidia_uvm gets its state back only when \
        the driver was told beforehand to save it (the nvidia-suspend and nvidia-resume services, \
        NVreg_PreserveVideoMemoryAllocations). Else, after the first resume, cuInit answers 999 in \
        every new process while nvidia-smi works, and a CUDA process that was left running goes on \
        with a GPU that has lost its memory, shows Xid 13 or 31, and keeps the module in use. \
        Reloading nvidia_uvm cures it until the next suspend.",
    explains: &[
        SymptomId::CudaInitFails,
        SymptomId::CudaContextFails,
        SymptomId::GpuFaulted,
        SymptomId::FrameworkNoGpu,
    ],
    specializes: &["uvm.not-loaded", "gpu.xid"],
    look_alikes: &[
        LookAlike { id: "uvm.not-loaded", tell: "/proc/devices has no nvidia-uvm" },
        LookAlike {
            id: "node.wrong-number",
            tell: "the node's major differs from the one in /proc/devices",
        },
        LookAlike {
            id: "uvm.fatal-latched",
            tell: "the log has a global fatal error of nvidia-uvm, with no suspend before it",
        },
        LookAlike { id: "gpu.xid", tell: "the Xid comes without a suspend before it" },
    ],
    references: &[
        "https://github.com/NixOS/nixpkgs/issues/334180",
        "https://github.com/pop-os/default-settings/pull/64",
        "https://download.nvidia.com/XFree86/Linux-x86_64/580.95.05/README/powermanagement.html",
    ],
    weigh,
    remedy,
};

/// How soon after a resume a fault belongs to it, in seconds.
const SOON_S: f64 = 120.0;

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    if let Some(origin) = readings::cuda_works(facts) {
        weighing.rules_out("cuInit answers 0", origin);
        return weighing;
    }
    if let Some(origin) = readings::uvm_missing(facts) {
        weighing.rules_out("nvidia_uvm is not loaded at all", &origin);
        return weighing;
    }
    let failing = readings::init_failed_with(facts, code::UNKNOWN);
    let Some((statement, strength, resumed)) = resume(facts) else {
        if failing.is_some() && readings::nvml_works(facts).is_some() {
            never_slept(facts, &mut weighing);
        }
        return weighing;
    };
    let cured = cure(facts);
    weighing.supports(strength, statement, &resumed);
    answer(facts, failing, cured.is_some(), &mut weighing);
    after_resume(facts, &mut weighing);
    if let Some(trial) = cured {
        weighing.confirms("CUDA works again once nvidia_uvm is loaded anew", &trial.origin);
    }
    if let Some(origin) = readings::nvml_works(facts) {
        weighing.supports(Moderate, "NVML answers, so the GPU itself came back", &origin);
    } else if let Some((number, origin)) = readings::nvml_failure(facts) {
        weighing.objects(Strong, format!("NVML fails as well, with {number}"), &origin);
    }
    saved(facts, &mut weighing);
    if failing.is_none()
        && let Some((function, event)) = readings::driver_crash(facts)
        && !function.contains("[nvidia_uvm]")
    {
        let statement = format!("the kernel crashed or spins in {function}, not in nvidia_uvm");
        weighing.objects(Strong, statement, &event.origin);
    }
    weighing
}

/// The last resume in the log, or what the report says.
fn resume(facts: &Facts) -> Option<(&'static str, crate::evidence::Strength, Origin)> {
    if let Some(event) = last_resume(facts) {
        return Some(("the machine came back from suspend", Strong, event.origin.clone()));
    }
    if let Some(event) = facts.log.with("PM_TRANSITION").next() {
        return Some(("the machine went to sleep", Moderate, event.origin.clone()));
    }
    let told = facts.host.suspend_told.first()?;
    Some(("the report has it after a suspend", Moderate, told.origin.clone()))
}

fn last_resume(facts: &Facts) -> Option<&LogEvent> {
    let exits = facts.log.events.iter().rev().filter(|event| event.signature == "PM_TRANSITION");
    exits.into_iter().find(|event| event.get("what").is_some_and(|what| what.ends_with("exit")))
}

/// A log from boot on without any suspend: then it is something else.
fn never_slept(facts: &Facts, weighing: &mut Weighing) {
    const EARLY_S: f64 = 60.0;
    match facts.log.read.as_seen() {
        Some(seen) if seen.value.is_some_and(|first| first < EARLY_S) => {
            weighing.rules_out("the log from boot on has no suspend", &seen.origin);
        }
        Some(_) => {}
        None => {
            weighing.needs(Need::KernelLog);
        }
    }
}

fn answer(facts: &Facts, failing: Option<&Trial>, cured: bool, weighing: &mut Weighing) {
    if let Some(trial) = failing {
        weighing.supports(Moderate, "cuInit answers 999", &trial.origin);
    } else if let Some((other, trial)) = readings::init_failure(facts) {
        weighing.objects(Moderate, format!("cuInit answers {other}, not 999"), &trial.origin);
    } else if !cured {
        weighing.needs(Need::CudaInit);
    }
    if let Some(origin) = readings::uvm_registered(facts) {
        weighing.supports(Weak, "nvidia_uvm is loaded", &origin);
    }
}

/// An Xid of an application right after the resume.
fn after_resume(facts: &Facts, weighing: &mut Weighing) {
    let Some(resumed) = last_resume(facts) else { return };
    let place = facts.log.events.iter().position(|event| std::ptr::eq(event, resumed));
    let later = facts.log.events.iter().skip(place.unwrap_or(0));
    let soon = |event: &&LogEvent| match (event.time_s, resumed.time_s) {
        (Some(at), Some(from)) => (0.0..SOON_S).contains(&(at - from)),
        _ => true,
    };
    let xid = later.filter(|event| event.signature == "XID").find(soon);
    if let Some(event) = xid {
        let number = event.get("xid").unwrap_or("?");
        let statement = format!("Xid {number} stands right behind the resume");
        weighing.supports(Strong, statement, &event.origin);
    }
}

/// A success after the module was loaded anew.
fn cure(facts: &Facts) -> Option<&Trial> {
    facts.cuda.trials.iter().find(|trial| {
        let under = trial.under.as_deref().unwrap_or_default().to_lowercase();
        let again = ["reload", "rmmod", "modprobe -r"].iter().any(|word| under.contains(word));
        trial.ok() && again && (under.contains("uvm") || under.contains("module"))
    })
}

/// With the driver's memory saved over suspend it should not be.
fn saved(facts: &Facts, weighing: &mut Weighing) {
    if let Some(seen) = facts.module.params.get("PreserveVideoMemoryAllocations") {
        if seen.value == "1" {
            let statement = "NVreg_PreserveVideoMemoryAllocations is set";
            weighing.objects(Moderate, statement, &seen.origin);
        } else {
            let statement = "NVreg_PreserveVideoMemoryAllocations is not set";
            weighing.supports(Weak, statement, &seen.origin);
        }
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let place = machine::kernel_place(facts);
    let remedy = Remedy::new(Impact::ReloadsModule, "every CUDA program, in all containers")
        .step_to(
            place,
            "fuser -v /dev/nvidia-uvm",
            "CUDA programs that were left running keep the module; stop them and their containers",
        )
        .step_to(place, "modprobe -r nvidia_uvm && modprobe nvidia_uvm", "until the next suspend");
    let remedy = match machine::distribution(facts) {
        Distribution::Nixos => remedy.step_to(
            place,
            "hardware.nvidia.powerManagement.enable = true; in the configuration, then nixos-rebuild switch",
            "saves the GPU's memory over suspend",
        ),
        _ => remedy
            .step_to(
                place,
                "echo 'options nvidia NVreg_PreserveVideoMemoryAllocations=1 NVreg_TemporaryFilePath=/var/tmp' > /etc/modprobe.d/nvidia-suspend.conf",
                "saves the GPU's memory over suspend, from the next boot on",
            )
            .step_to(
                place,
                "systemctl enable nvidia-suspend nvidia-resume nvidia-hibernate",
                "the services that tell the driver",
            ),
    };
    remedy
        .undo("rm /etc/modprobe.d/nvidia-suspend.conf; systemctl disable the three services")
        .verify("systemctl suspend, wake it up, and gpudx is healthy")
        .will_not_help("another CUDA toolkit or framework: the module beneath them is stale")
        .will_not_help("nvidia-smi --gpu-reset: the GPU is well, the module is not")
}
