//! `sandbox.landlock`

use facts::model::engine::Policy;
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
    id: "sandbox.landlock",
    layer: Layer::Sandbox,
    claim: "a policy forbids the driver to write its thread's name to /proc",
    explanation: "libcuda names its threads by writing /proc/PID/task/TID/comm at the \
        very start of cuInit. Since the 550 branch it takes a refusal for a broken system: 304 \
        (535 goes on; measured with both). A Landlock rule set that lets a program read /proc and write only its own \
        folders refuses just that, as an AppArmor profile may. Neither shows in /proc/self/status, \
        and nodes, ioctls and NVML all work.",
    explains: &[SymptomId::CudaInitFails, SymptomId::FrameworkNoGpu],
    specializes: &["sandbox.seccomp"],
    look_alikes: &[
        LookAlike {
            id: "sandbox.seccomp",
            tell: "Seccomp is 2, and the refused call is another one or answers EPERM",
        },
        LookAlike { id: "sandbox.proc-hidden", tell: "/proc is not mounted at all" },
        LookAlike {
            id: "process.open-files-low",
            tell: "the open-file limit is very small, and a thread may write its name",
        },
    ],
    references: &[
        "https://docs.kernel.org/userspace-api/landlock.html",
        "https://man7.org/linux/man-pages/man5/proc_pid_comm.5.html",
        "https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html",
    ],
    weigh,
    remedy,
};

/// The first branch that was seen to give up when it may not write its threads' names (550.163.01
/// and 555.58.02 under a Landlock rule set).
const GIVES_UP: u32 = 550;
/// The last branch that was seen to go on all the same (535.309.01).
const GOES_ON: u32 = 535;

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    let os_failed = readings::init_failed_with(facts, code::OPERATING_SYSTEM);
    if let Some(origin) = readings::cuda_works(facts) {
        weighing.rules_out("cuInit answers 0", origin);
        return weighing;
    }
    match facts.sandbox.micro.get("comm") {
        Some((None, origin)) => {
            weighing.rules_out("a thread may write its own name here", origin);
            return weighing;
        }
        Some((Some(errno), origin)) => refused(facts, *errno, origin, &mut weighing),
        None => {}
    }
    denied(facts, &mut weighing);
    if let Some(origin) = engine::cured_by(facts, &["landlock"]) {
        weighing.supports(Strong, "CUDA starts without the Landlock rule set", origin);
    }
    if weighing.support.is_empty() {
        if os_failed.is_some() {
            weighing.needs(Need::OwnName);
        }
        return weighing;
    }
    match (os_failed, readings::init_failure(facts)) {
        (Some(trial), _) => {
            let statement = "cuInit answers 304, which it makes of a refused write of its name";
            weighing.supports(Moderate, statement, &trial.origin);
        }
        (None, Some((number, trial))) => {
            let statement = format!("cuInit answers {number}, not 304");
            weighing.objects(Strong, statement, &trial.origin);
        }
        (None, None) => {
            weighing.needs(Need::CudaInit);
        }
    }
    branch(facts, &mut weighing);
    weighing
}

/// The write of a thread's own name was tried, by the probe or by the driver under a tracer.
fn refused(facts: &Facts, errno: Errno, origin: &Origin, weighing: &mut Weighing) {
    let statement = format!("a thread may not write its own name to /proc ({errno})");
    let answers = readings::init_failed_with(facts, code::OPERATING_SYSTEM).is_some();
    match errno {
        // Nothing but a policy refuses a thread its own name with EACCES.
        Errno::EACCES if answers => weighing.confirms(statement, origin),
        Errno::EACCES | Errno::EPERM | Errno::EROFS => weighing.supports(Strong, statement, origin),
        _ => weighing.supports(Weak, statement, origin),
    };
}

fn denied(facts: &Facts, weighing: &mut Weighing) {
    let denial = facts.sandbox.engine.denials.iter().find(|seen| {
        seen.value.of_thread_name()
            && seen.value.policy != Policy::Selinux
            && !seen.value.permissive
    });
    if let Some(seen) = denial {
        let by = if seen.value.policy == Policy::Apparmor { "AppArmor" } else { "Landlock" };
        let statement = format!("{by} denied the write of a thread's name");
        weighing.supports(Strong, statement, &seen.origin);
    }
}

fn branch(facts: &Facts, weighing: &mut Weighing) {
    let Some(driver) = readings::driver_version(facts) else { return };
    if driver.value.branch() <= GOES_ON {
        let statement = format!("driver {} goes on without its threads' names", driver.value);
        weighing.objects(Strong, statement, &driver.origin);
    } else if driver.value.branch() >= GIVES_UP {
        let statement = format!("driver {} gives up without its threads' names", driver.value);
        weighing.supports(Weak, statement, &driver.origin);
    }
}

fn remedy(_: &Facts) -> Remedy {
    Remedy::new(Impact::RestartsProcess, "the program in question")
        .step_to(
            Place::Program,
            "allow writes below /proc/self (or /proc) in the sandbox's rule set, beside read-write on /dev/nvidia*",
            "a Landlock rule is set by the program that starts the sandbox; its options say how",
        )
        .step_to(
            Place::Host,
            "owner @{PROC}/@{pid}/task/@{tid}/comm rw, in the AppArmor profile, then apparmor_parser -r PROFILE",
            "where AppArmor refuses",
        )
        .undo("take the rule out again and start the program anew")
        .verify("sh -c 'echo x > /proc/self/comm' says nothing in the sandbox, and cuInit answers 0")
        .will_not_help("root or capabilities: Landlock restricts root as well")
        .will_not_help("seccomp=unconfined: no system call is filtered, a path is")
}
