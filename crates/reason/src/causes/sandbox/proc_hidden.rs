//! `sandbox.proc-hidden`

use facts::{Errno, Facts, Layer, Origin};

use crate::cause::{Cause, LookAlike};
use crate::engine;
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::need::Need;
use crate::readings::{self, code};
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "sandbox.proc-hidden",
    layer: Layer::Sandbox,
    claim: "the program runs without a /proc of its own",
    explanation: "libcuda reads /proc/self and the driver's files in /proc before it opens a node. \
        In a chroot, a build jail or a namespace without /proc it gives up with 304, \
        \"OS call failed\", while nvidia-smi, which needs no /proc, lists every GPU. So it does in \
        a PID namespace that still has the /proc of the one above. A masked \
        /proc/driver/nvidia alone, or a missing /sys, does no harm (measured on 580).",
    explains: &[
        SymptomId::CudaInitFails,
        SymptomId::FrameworkNoGpu,
        SymptomId::DriverAbsent,
        SymptomId::GpuMissing,
    ],
    specializes: &["sandbox.seccomp"],
    look_alikes: &[
        LookAlike { id: "sandbox.seccomp", tell: "304 as well, /proc is there, and Seccomp is 2" },
        LookAlike {
            id: "sandbox.landlock",
            tell: "304 as well, /proc is there, and a thread may not write its own name",
        },
        LookAlike {
            id: "process.open-files-low",
            tell: "304 as well, and the open-file limit is very small",
        },
        LookAlike {
            id: "module.not-loaded",
            tell: "/proc is there and has no /proc/driver/nvidia",
        },
    ],
    references: &[
        "https://man7.org/linux/man-pages/man5/proc.5.html",
        "https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    let os_failed = readings::init_failed_with(facts, code::OPERATING_SYSTEM);
    let mounted = &facts.sandbox.engine.proc_mounted;
    if let Some(origin) = &facts.sandbox.engine.proc_of_other {
        of_other(facts, origin, &mut weighing);
        return weighing;
    }
    if let Some(origin) = engine::told(mounted, true) {
        weighing.rules_out("/proc is mounted", origin);
        return weighing;
    }
    if let Some(origin) = readings::cuda_works(facts) {
        weighing.rules_out("cuInit answers 0", origin);
        return weighing;
    }
    let Some(origin) = engine::told(mounted, false) else {
        files(facts, &mut weighing);
        if os_failed.is_some() {
            weighing.needs(Need::ProcMounted);
        }
        return weighing;
    };
    weighing.supports(Strong, "/proc or /sys is not there", origin);
    if let Some(trial) = os_failed {
        weighing.confirms("cuInit answers 304 where /proc or /sys is not there", &trial.origin);
    } else if let Some((number, trial)) = readings::init_failure(facts) {
        let statement =
            format!("cuInit answers {number}, and without /proc or /sys it answers 304");
        weighing.objects(Moderate, statement, &trial.origin);
    } else {
        weighing.needs(Need::CudaInit);
    }
    if let Some(origin) = readings::nvml_works(facts) {
        weighing.supports(Moderate, "NVML answers, which needs no /proc", &origin);
    }
    weighing
}

/// Files of /proc and /sys that a trace looked for in vain. They are not there without a driver
/// either, so that one must be known to be loaded.
fn files(facts: &Facts, weighing: &mut Weighing) {
    let hidden = &facts.sandbox.engine.hidden_files;
    let (Some(first), Some(loaded)) = (hidden.first(), readings::module_loaded(facts)) else {
        return;
    };
    let names: Vec<&str> = hidden.iter().map(|seen| seen.value.as_str()).collect();
    let statement = format!("a trace does not find {}", names.join(", "));
    weighing.supports(Strong, statement, &first.origin);
    weighing.supports(Weak, "outside, the driver is loaded", &loaded);
}

/// /proc is there, of another PID namespace: to the driver library it is as good as none, since the
/// numbers of its threads are not in it.
fn of_other(facts: &Facts, origin: &Origin, weighing: &mut Weighing) {
    let statement =
        "/proc is of another PID namespace: the numbers that this process knows are not in it";
    if let Some(works) = readings::cuda_works(facts) {
        weighing.rules_out("cuInit answers 0", works);
        return;
    }
    if let Some((_, seen)) =
        facts.sandbox.micro.get("comm").filter(|(errno, _)| *errno == Some(Errno::ENOENT))
    {
        weighing.supports(Strong, "a thread does not find itself in /proc", seen);
    }
    if let Some(trial) = readings::init_failed_with(facts, code::OPERATING_SYSTEM) {
        weighing.confirms(statement, origin);
        weighing.supports(Moderate, "cuInit answers 304", &trial.origin);
    } else {
        weighing.supports(Moderate, statement, origin);
    }
}

fn remedy(_: &Facts) -> Remedy {
    Remedy::new(Impact::RestartsProcess, "the program in question")
        .step_to(Place::Container, "mount -t proc proc /proc", "as root in the chroot or namespace")
        .step_to(
            Place::Engine,
            "mount --bind /proc ROOT/proc",
            "from outside, for a chroot at ROOT",
        )
        .step_to(
            Place::Engine,
            "bwrap --proc /proc --dev-bind /dev /dev …",
            "the sandbox's own option; systemd-nspawn and unshare --mount-proc have theirs",
        )
        .undo("umount /proc in there")
        .verify("ls /proc/self lists files, and cuInit answers 0")
        .will_not_help(
            "seccomp=unconfined or more capabilities: nothing is refused, it is not there",
        )
        .will_not_help("reinstalling the driver: outside of this root it works")
}
