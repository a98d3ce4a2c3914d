//! `uvm.fatal-latched`

use facts::model::log::LogEvent;
use facts::model::node::NodeOpen;
use facts::{Errno, Facts, Layer};

use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::machine;
use crate::need::Need;
use crate::readings::{self, code};
use crate::remedy::{Impact, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "uvm.fatal-latched",
    layer: Layer::Uvm,
    claim: "nvidia_uvm met a fatal error and refuses every call until it is loaded anew",
    explanation: "When nvidia_uvm meets an error that it cannot recover from (a GPU lost from the \
        bus, a reset, an uncorrectable fault during its own work), it notes the error for the whole \
        module. From then on every open of /dev/nvidia-uvm fails with that error, for all GPUs and \
        all users, and cuInit answers 999, while nvidia-smi may go on to list the GPUs that are \
        well. Only loading the module anew clears it. The error itself is the consequence of \
        something earlier, which the log has before it.",
    explains: &[
        SymptomId::CudaInitFails,
        SymptomId::CudaInitHangs,
        SymptomId::CudaContextFails,
        SymptomId::GpuFaulted,
        SymptomId::FrameworkNoGpu,
    ],
    specializes: &["uvm.not-loaded"],
    look_alikes: &[
        LookAlike {
            id: "uvm.not-loaded",
            tell: "/proc/devices has no nvidia-uvm, and no fatal error is in the log",
        },
        LookAlike {
            id: "uvm.stale-after-suspend",
            tell: "a resume stands before the first failure, and no fatal error is in the log",
        },
        LookAlike {
            id: "pci.fell-off-bus",
            tell: "the GPU is gone for nvidia-smi as well: then the fatal error only follows",
        },
        LookAlike {
            id: "gpu.needs-reset",
            tell: "nvidia-smi shows a recovery action, and the other GPUs work",
        },
    ],
    references: &[
        "https://github.com/NVIDIA/open-gpu-kernel-modules/issues/1342",
        "https://github.com/NVIDIA/open-gpu-kernel-modules/pull/993",
        "kernel-open/nvidia-uvm/uvm_global.c",
    ],
    weigh,
    remedy,
};

/// The node whose open answers with the error.
const NODE: &str = "/dev/nvidia-uvm";

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    let events = &facts.log.events;
    let latched = events
        .iter()
        .position(|event| matches!(event.signature, "UVM_GLOBAL_ERROR" | "UVM_FATAL_REPORTED"));
    if let Some(origin) = readings::cuda_works(facts) {
        if latched.is_some() {
            weighing.rules_out("cuInit answers 0", origin);
        }
        return weighing;
    }
    let Some((place, event)) = latched.and_then(|at| Some((at, events.get(at)?))) else {
        without_log(facts, &mut weighing);
        return weighing;
    };
    let status = event.get("st").unwrap_or("an error");
    let statement = format!("nvidia_uvm logged a global fatal error: {status}");
    weighing.confirms(statement, &event.origin);
    reloaded(facts, place, &mut weighing);
    earlier(facts, place, &mut weighing);
    if let Some(trial) = readings::init_failed_with(facts, code::UNKNOWN) {
        weighing.supports(Moderate, "cuInit answers 999", &trial.origin);
    }
    weighing
}

/// A module that was loaded after the error has forgotten it.
fn reloaded(facts: &Facts, place: usize, weighing: &mut Weighing) {
    let later = facts.log.events.iter().skip(place);
    let loaded = later.into_iter().find(|event| event.signature == "UVM_LOADED");
    if let Some(event) = loaded {
        weighing.rules_out("nvidia_uvm was loaded anew after that", &event.origin);
    }
}

/// The first fault is the cause, and the latch its consequence.
fn earlier(facts: &Facts, place: usize, weighing: &mut Weighing) {
    let gone = |event: &&LogEvent| {
        let fallen = matches!(event.signature, "FALLEN_BUS" | "FALLEN_BUS_INIT");
        fallen || event.get("xid") == Some("79")
    };
    if let Some(event) = facts.log.events.iter().take(place).find(gone) {
        let statement = "the GPU had fallen off the bus before: that came first";
        weighing.objects(Strong, statement, &event.origin);
    }
}

/// Without the log: the node opens for nobody, though the module is there.
fn without_log(facts: &Facts, weighing: &mut Weighing) {
    let Some((NodeOpen::Failed(errno), opened)) = facts.node.opens.get(NODE) else { return };
    let registered = readings::uvm_registered(facts);
    // Where nvidia_uvm is not loaded the open gives ENXIO, so that EIO shows that it is.
    if registered.is_none() && *errno != Errno::EIO {
        return;
    }
    let by_driver = !matches!(
        *errno,
        Errno::EPERM | Errno::EACCES | Errno::ENOENT | Errno::ENXIO | Errno::EMFILE
    );
    if !by_driver {
        return;
    }
    let statement = format!("opening {NODE} gives {errno}, which nvidia_uvm itself answers");
    weighing.supports(Moderate, statement, opened);
    if let Some(origin) = registered {
        weighing.supports(Weak, "nvidia_uvm is loaded", &origin);
    }
    if let Some(trial) = readings::init_failed_with(facts, code::UNKNOWN) {
        weighing.supports(Moderate, "cuInit answers 999", &trial.origin);
    }
    weighing.needs(Need::KernelLog);
}

fn remedy(facts: &Facts) -> Remedy {
    let place = machine::kernel_place(facts);
    Remedy::new(Impact::ReloadsModule, "every CUDA program, in all containers")
        .step_to(
            place,
            "dmesg | grep -iE 'nvrm|nvidia|xid' | head -60",
            "keep what stands before the fatal error: it is the cause",
        )
        .step_to(place, "fuser -v /dev/nvidia-uvm", "stop what still has the node open")
        .step_to(place, "modprobe -r nvidia_uvm && modprobe nvidia_uvm", "clears the error")
        .step_to(
            place,
            "reboot, if the module cannot be unloaded or the error comes back at once",
            "a lost GPU needs it, or a power cycle",
        )
        .undo("nothing to undo")
        .verify("cuInit answers 0, and gpudx is healthy")
        .will_not_help("restarting the program or its container: the error is the module's")
        .will_not_help("chmod or new device nodes: the open reaches the module")
}
