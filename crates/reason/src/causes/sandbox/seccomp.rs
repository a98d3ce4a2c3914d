//! `sandbox.seccomp`

use facts::{Errno, Facts, Layer, Observed, Origin};

use super::container;
use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::need::Need;
use crate::readings::{self, code};
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "sandbox.seccomp",
    layer: Layer::Sandbox,
    claim: "a seccomp filter blocks a system call that the driver needs",
    explanation: "A filter answers EPERM or ENOSYS to a call before the kernel sees it. The nodes \
        are there and open, but ioctl, or a rarely used call such as those of the NUMA family, is \
        refused. cuInit makes 100 or 304 of it. NVML makes 18 of a refused ioctl and speaks of a \
        version mismatch that does not exist. Or the filter asks a supervisor in user space, and one \
        that never answers leaves the call waiting in the kernel. A filter as such proves nothing: Docker's default \
        one is on in every container and lets the driver through.",
    explains: &[
        SymptomId::CudaInitFails,
        SymptomId::CudaInitHangs,
        SymptomId::CudaContextFails,
        SymptomId::NvmlFails,
        SymptomId::NvmlHangs,
        SymptomId::FrameworkNoGpu,
    ],
    specializes: &[],
    look_alikes: &[
        LookAlike {
            id: "module.version-skew",
            tell: "NVML answers 18 as well, but the versions of library and module really differ",
        },
        LookAlike {
            id: "sandbox.cgroup-denies",
            tell: "open of a node answers EPERM, and every other call passes",
        },
        LookAlike {
            id: "sandbox.proc-hidden",
            tell: "cuInit answers 304 and /proc is not mounted",
        },
        LookAlike {
            id: "process.open-files-low",
            tell: "cuInit answers 304 or 100 and the open-file limit is small",
        },
    ],
    references: &[
        "https://github.com/abetlen/llama-cpp-python/issues/645",
        "https://docs.docker.com/engine/security/seccomp/",
        "https://man7.org/linux/man-pages/man2/seccomp.2.html",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    if let Observed::Seen(seen) = &facts.sandbox.seccomp
        && seen.value == 0
    {
        weighing.rules_out("no filter of system calls is on: Seccomp: 0", &seen.origin);
    }
    cure(facts, &mut weighing);
    held(facts, &mut weighing);
    refusals(facts, &mut weighing);
    false_mismatch(facts, &mut weighing);
    if weighing.support.is_empty() {
        without_sign(facts, &mut weighing);
        return weighing;
    }
    for number in [code::OPERATING_SYSTEM, code::NO_DEVICE] {
        if let Some(trial) = readings::init_failed_with(facts, number) {
            let statement = format!("cuInit answers {number}, which it makes of a refused call");
            weighing.supports(Moderate, statement, &trial.origin);
        }
    }
    if let Observed::Seen(seen) = &facts.sandbox.seccomp
        && seen.value == FILTER
    {
        weighing.supports(Weak, "a seccomp filter is on: Seccomp: 2", &seen.origin);
    } else {
        weighing.needs(Need::Seccomp);
    }
    weighing
}

/// `Seccomp:` of /proc/self/status when a filter is on.
const FILTER: u8 = 2;

/// The cure is the proof: the same program works without the filter.
fn cure(facts: &Facts, weighing: &mut Weighing) {
    let failed = facts.cuda.plain().any(|trial| !trial.ok()) || !refused_micro(facts).is_empty();
    let cured = facts.cuda.trials.iter().find(|trial| {
        let unfiltered = trial.under.as_deref().is_some_and(|under| under.contains("seccomp"));
        trial.ok() && unfiltered
    });
    if let (true, Some(trial)) = (failed, cured) {
        weighing.confirms("CUDA starts with seccomp=unconfined", &trial.origin);
    }
}

/// The kernel's function in which a call waits for the supervisor of a filter (kernel/seccomp.c).
const ASKS_SUPERVISOR: &str = "seccomp_do_user_notification";

/// A call that hangs because the filter's supervisor does not answer.
fn held(facts: &Facts, weighing: &mut Weighing) {
    let held = facts.probes.iter().filter(|run| run.hung()).find_map(|run| {
        let stuck = run.stuck.as_ref()?;
        let mut places = stuck.stack.iter().chain(&stuck.wchan);
        let waits = places.any(|place| place.starts_with(ASKS_SUPERVISOR));
        waits.then_some((run, stuck))
    });
    if let Some((run, stuck)) = held {
        let call = stuck.call.as_deref().unwrap_or("a call");
        let statement =
            format!("{call} waits in {ASKS_SUPERVISOR}: the filter's supervisor does not answer");
        weighing.confirms(statement, &run.origin);
    }
}

/// Calls that a filter refused: their names and where that was seen. The driver never answers EPERM
/// or ENOSYS to the query of its version, nor the kernel to an ioctl on /dev/null.
pub(in crate::causes) fn refused_calls(facts: &Facts) -> Vec<(String, Origin)> {
    let mut found = refused_ioctls(facts);
    found.extend(refused_micro(facts));
    found
}

/// The refused ones among the small calls that any process may make.
fn refused_micro(facts: &Facts) -> Vec<(String, Origin)> {
    let micro = facts.sandbox.micro.iter();
    let refused = micro.filter_map(|(name, (errno, origin))| {
        let errno = errno.filter(|errno| is_refusal(*errno))?;
        Some((format!("{name} ({errno})"), origin.clone()))
    });
    refused.collect()
}

fn is_refusal(errno: Errno) -> bool {
    matches!(errno, Errno::EPERM | Errno::ENOSYS)
}

fn refused_ioctls(facts: &Facts) -> Vec<(String, Origin)> {
    let to_driver =
        facts.probes.iter().filter(|run| run.probe == "module").flat_map(|run| &run.calls);
    let queries =
        to_driver.filter(|call| matches!(call.call.as_str(), "version" | "card-info" | "reach"));
    let by_driver = queries.filter_map(|call| {
        let errno = Errno(i32::try_from(call.code).ok()?);
        let what = call.on.as_deref().filter(|_| call.call == "reach").map(short_request);
        let what = what.map(|what| format!(" {what}")).unwrap_or_default();
        is_refusal(errno).then(|| (format!("ioctl{what} ({errno})"), call.origin.clone()))
    });
    by_driver.take(1).collect()
}

/// `/dev/nvidia-uvm UVM_REGISTER_GPU` without the node.
fn short_request(on: &str) -> &str {
    on.split_once(' ').map_or(on, |(_, request)| request)
}

fn refusals(facts: &Facts, weighing: &mut Weighing) {
    let filtered = facts.sandbox.seccomp.value() == Some(&FILTER);
    for (call, origin) in refused_ioctls(facts) {
        let statement = format!("{call} on an open node: refused before the driver is asked");
        if filtered {
            weighing.confirms(statement, &origin);
        } else {
            weighing.supports(Strong, statement, &origin);
        }
    }
    let micro = refused_micro(facts);
    let Some((_, origin)) = micro.first() else {
        return;
    };
    let names: Vec<&str> = micro.iter().map(|(call, _)| call.as_str()).collect();
    let statement = format!("calls that any process may make are refused: {}", names.join(", "));
    weighing.supports(Strong, statement, origin);
    if let Some(kind) = container(facts) {
        let statement = "the process is in a container, whose engine sets a filter";
        weighing.supports(Weak, statement, &kind.origin);
    }
}

/// NVML's 18 although both versions are known and equal.
fn false_mismatch(facts: &Facts, weighing: &mut Weighing) {
    let Some(origin) = readings::nvml_failed_with(facts, code::NVML_VERSION_MISMATCH) else {
        return;
    };
    let library = facts.library.nvml.value().and_then(|library| library.version.clone());
    let (Some(library), Some(module)) = (library, facts.module.version()) else {
        return;
    };
    if library.same_release(&module.value) {
        let statement =
            format!("NVML answers 18, yet libnvidia-ml {library} = module {}", module.value);
        weighing.supports(Strong, statement, &origin);
    }
}

/// No sign of a filter at work: whether one is there matters only for the codes it leads to.
fn without_sign(facts: &Facts, weighing: &mut Weighing) {
    let by_cuda = readings::init_failure(facts)
        .is_some_and(|(number, _)| matches!(number, code::OPERATING_SYSTEM | code::NO_DEVICE));
    let by_nvml = readings::nvml_failed_with(facts, code::NVML_VERSION_MISMATCH).is_some();
    if !by_cuda && !by_nvml {
        return;
    }
    let let_through = facts.sandbox.micro.values().filter(|(errno, _)| errno.is_none()).count();
    let asked = facts.module.version_query.as_seen();
    if let (Some(query), true) = (asked, let_through > 0) {
        let statement = "an ioctl on nvidiactl and the micro-probes pass";
        weighing.objects(Strong, statement, &query.origin);
    }
    if facts.sandbox.seccomp.value() != Some(&0) && let_through == 0 {
        weighing.needs(Need::Seccomp);
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let remedy = if container(facts).is_some() {
        super::recreate()
            .step_to(
                Place::Engine,
                "docker run --security-opt seccomp=unconfined --gpus all …",
                "to prove it; it also takes away the filter's protection",
            )
            .step_to(
                Place::Engine,
                "docker run --security-opt seccomp=PROFILE.json --gpus all …",
                "to keep it: the engine's default profile with the refused call added",
            )
            .step_to(
                Place::Host,
                "upgrade libseccomp and the container engine",
                "an old libseccomp answers EPERM to calls it does not know",
            )
    } else {
        Remedy::new(Impact::RestartsService, "the unit in question").step_to(
            Place::Here,
            "systemctl edit UNIT, and under [Service]: SystemCallFilter=",
            "an empty value resets the unit's filter; @raw-io and @resources hold most of what the driver needs",
        )
    };
    remedy
        .undo("start it again with the former profile")
        .verify("grep Seccomp /proc/self/status inside, and cuInit answers 0")
        .will_not_help("making driver and library versions equal: they are, NVML's 18 only says that its ioctl failed")
        .will_not_help("--privileged device options or chmod: the nodes open")
}
