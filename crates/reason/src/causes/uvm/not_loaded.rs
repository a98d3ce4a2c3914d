//! `uvm.not-loaded`

use facts::model::node::NodeOpen;
use facts::{Errno, Facts, Layer, Origin};

use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::machine::{self, Distribution};
use crate::need::Need;
use crate::readings::{self, code};
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "uvm.not-loaded",
    layer: Layer::Uvm,
    claim: "nvidia_uvm is not loaded",
    explanation: "CUDA needs a second kernel module, nvidia_uvm, which nothing loads by itself: \
        libcuda asks for it, but only root may load modules, so an ordinary user depends on the \
        setuid helper nvidia-modprobe or on an entry in modules-load.d. Without it the open of \
        /dev/nvidia-uvm fails and cuInit answers 999. NVML does not need the module, so nvidia-smi \
        looks healthy. Any program that root runs may load it on the way, which makes the fault \
        go away until the next boot.",
    explains: &[SymptomId::CudaInitFails, SymptomId::FrameworkNoGpu],
    specializes: &[],
    look_alikes: &[
        LookAlike {
            id: "node.missing",
            tell: "/proc/devices has nvidia-uvm, and only /dev/nvidia-uvm is absent",
        },
        LookAlike {
            id: "node.wrong-number",
            tell: "/proc/devices has nvidia-uvm under another major than the node's",
        },
        LookAlike {
            id: "sandbox.cgroup-denies",
            tell: "opening /dev/nvidia-uvm gives EPERM and not ENXIO, ENODEV or ENOENT",
        },
        LookAlike { id: "uvm.hmm", tell: "nvidia_uvm is loaded, and cuInit answers 3 or hangs" },
        LookAlike {
            id: "uvm.stale-after-suspend",
            tell: "nvidia_uvm is loaded, and the kernel log shows a resume before the first 999",
        },
        LookAlike {
            id: "uvm.fatal-latched",
            tell: "nvidia_uvm is loaded, and the kernel log has its global fatal error",
        },
    ],
    references: &[
        "https://github.com/NVIDIA/open-gpu-kernel-modules/issues/689",
        "https://github.com/NVIDIA/nvidia-modprobe",
        "kernel-open/nvidia-uvm/uvm.c",
    ],
    weigh,
    remedy,
};

/// The node whose open leads to this module.
const NODE: &str = "/dev/nvidia-uvm";

/// The codes that cuInit answers when the module is missing; 999 was measured for every errno of
/// the open (cuinit_fault_matrix), 304 is reported.
const CODES: [i64; 2] = [code::UNKNOWN, code::OPERATING_SYSTEM];

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    if let Some(origin) = readings::uvm_registered(facts) {
        weighing.rules_out("nvidia_uvm is loaded", &origin);
        return weighing;
    }
    if driver_itself_absent(facts) {
        return Weighing::not_applicable();
    }
    if let Some(origin) = readings::cuda_works(facts) {
        weighing.rules_out("cuInit answers 0", origin);
        return weighing;
    }
    let missing = registration(facts, &mut weighing);
    let failing = answer(facts, &mut weighing, missing);
    node(facts, &mut weighing);
    log(facts, &mut weighing);
    if (missing != Missing::No || failing)
        && let Some(origin) = readings::nvml_works(facts)
    {
        weighing.supports(Weak, "NVML, which does without it, answers", &origin);
    }
    weighing
}

/// Without the nvidia module this one cannot be loaded either, and its absence says nothing.
fn driver_itself_absent(facts: &Facts) -> bool {
    let absent =
        facts.module.nvrm.absent().is_some() || facts.module.loaded("nvidia").absent().is_some();
    absent && readings::module_loaded(facts).is_none()
}

/// How sure it is that the kernel has not got the module.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    /// No list lacks it.
    No,
    /// One list lacks it, out of which a person may have dropped a line.
    Probably,
    /// The machine's own list lacks it, or two do.
    Surely,
}

/// What the kernel's own lists say.
fn registration(facts: &Facts, weighing: &mut Weighing) -> Missing {
    let major = facts.module.major("nvidia-uvm");
    let loaded = facts.module.loaded("nvidia_uvm");
    if let Some(origin) = major.absent() {
        weighing.supports(Strong, "/proc/devices has no nvidia-uvm", origin);
    }
    if let Some(origin) = loaded.absent() {
        weighing.supports(Strong, "nvidia_uvm is not among the loaded modules", origin);
    }
    let lacking: Vec<&Origin> = major.absent().into_iter().chain(loaded.absent()).collect();
    match lacking.as_slice() {
        [] => {
            weighing.needs(Need::CharMajors);
            Missing::No
        }
        [one] if one.is_pasted_silence() => Missing::Probably,
        _ => Missing::Surely,
    }
}

/// What cuInit says. Together with the missing registration its 999 is proof. Returns whether the
/// code fits.
fn answer(facts: &Facts, weighing: &mut Weighing, missing: Missing) -> bool {
    if let Some(trial) = CODES.iter().find_map(|code| readings::init_failed_with(facts, *code)) {
        let number = trial.failure_code().unwrap_or_default();
        let statement = format!("cuInit answers {number}, as it does when {NODE} leads nowhere");
        if missing == Missing::Surely {
            weighing.confirms(statement, &trial.origin);
        } else if number == code::UNKNOWN {
            weighing.supports(Moderate, statement, &trial.origin);
        } else {
            weighing.supports(Weak, statement, &trial.origin);
        }
        return true;
    }
    if let Some((other, trial)) = readings::init_failure(facts) {
        let statement = format!("cuInit answers {other}, which does not come from {NODE}");
        weighing.objects(Strong, statement, &trial.origin);
    } else if let Some(trial) = readings::init_hang(facts) {
        weighing.objects(Strong, "cuInit does not fail but hang", &trial.origin);
    } else {
        weighing.needs(Need::CudaInit);
    }
    false
}

fn node(facts: &Facts, weighing: &mut Weighing) {
    match facts.node.opens.get(NODE) {
        Some((NodeOpen::Opened, origin)) => {
            weighing.rules_out(format!("{NODE} opens"), origin);
        }
        Some((NodeOpen::Failed(errno @ (Errno::ENXIO | Errno::ENODEV)), origin)) => {
            let statement = format!("opening {NODE} gives {errno}: no driver stands behind it");
            weighing.supports(Moderate, statement, origin);
        }
        Some((NodeOpen::Failed(errno @ (Errno::EPERM | Errno::EACCES)), origin)) => {
            let statement =
                format!("opening {NODE} gives {errno}: it is refused before any driver");
            weighing.objects(Moderate, statement, origin);
        }
        Some((NodeOpen::Failed(_) | NodeOpen::Hung | NodeOpen::NotTried(_), _)) | None => {}
    }
}

/// The kernel log's last word on the module.
fn log(facts: &Facts, weighing: &mut Weighing) {
    let last = facts.log.events.iter().rfind(|event| {
        matches!(event.signature, "UVM_LOADED" | "UVM_UNLOADED" | "UVM_INIT_FAILED")
    });
    let Some(event) = last else { return };
    match event.signature {
        "UVM_LOADED" => {
            weighing.objects(Moderate, "the kernel log says that it was loaded", &event.origin);
        }
        "UVM_UNLOADED" => {
            weighing.supports(Moderate, "the kernel log says that it was unloaded", &event.origin);
        }
        _ => {
            weighing.supports(Strong, "it failed to start, says the kernel log", &event.origin);
        }
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let place = machine::kernel_place(facts);
    let remedy = Remedy::new(Impact::None, "nothing")
        .step_to(place, "modprobe nvidia_uvm", "loads it now")
        .step_to(
            place,
            "nvidia-modprobe -u -c 0",
            "makes its device nodes; not needed under udev rules",
        );
    let remedy = match machine::distribution(facts) {
        Distribution::Nixos => remedy.step_to(
            place,
            "boot.kernelModules = [ \"nvidia_uvm\" ]; in the configuration, then nixos-rebuild switch",
            "loads it at every boot",
        ),
        _ => remedy.step_to(
            place,
            "echo nvidia_uvm > /etc/modules-load.d/nvidia-uvm.conf",
            "loads it at every boot",
        ),
    };
    in_a_container(facts, remedy)
        .undo("rm /etc/modules-load.d/nvidia-uvm.conf; modprobe -r nvidia_uvm")
        .verify("grep nvidia-uvm /proc/devices prints its major, and gpudx is healthy")
        .will_not_help("another CUDA toolkit or PyTorch build: cuInit fails beneath them")
        .will_not_help("chmod of /dev/nvidia-uvm: no driver stands behind the node")
}

/// The node in a container was made before the module had its number, if at all.
fn in_a_container(facts: &Facts, remedy: Remedy) -> Remedy {
    if !machine::in_container(facts) {
        return remedy;
    }
    remedy.step_to(
        Place::Engine,
        "start the container again",
        "the node inside must carry the number that the kernel gives now",
    )
}
