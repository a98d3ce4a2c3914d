//! `process.threads`

use facts::model::process::{Lever, Refusal};
use facts::{Errno, Facts, Layer, Observed, Seen};

use super::limits::{blind, by_engine, init_failed, lowest, tried};
use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::need::Need;
use crate::readings::{self, code};
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "process.threads",
    layer: Layer::Process,
    claim: "a limit of threads or processes stops the driver library",
    explanation: "libcuda starts threads of its own in cuInit. The limit of processes (ulimit -u) \
        counts all threads of the user on the machine, and a container's limit (pids.max) all of \
        the container; when one is reached, the thread is refused and cuInit answers 304. NVML \
        needs no thread and works. Root is not held by ulimit -u, but by pids.max, so that the \
        same program may work under sudo.",
    explains: &[
        SymptomId::CudaInitFails,
        SymptomId::CudaInitCrashes,
        SymptomId::CudaContextFails,
        SymptomId::FrameworkNoGpu,
    ],
    specializes: &[],
    look_alikes: &[
        LookAlike {
            id: "process.open-files-low",
            tell: "cuInit answers 304 or 100, and it is open files that are few",
        },
        LookAlike {
            id: "sandbox.seccomp",
            tell: "a call answers EPERM or ENOSYS, and not EAGAIN; Seccomp is 2",
        },
        LookAlike {
            id: "sandbox.proc-hidden",
            tell: "cuInit answers 304 and /proc is not mounted",
        },
    ],
    references: &[
        "https://man7.org/linux/man-pages/man2/getrlimit.2.html",
        "https://docs.kernel.org/admin-guide/cgroup-v2.html#pid",
        "https://man7.org/linux/man-pages/man3/pthread_create.3.html",
    ],
    weigh,
    remedy,
};

const NAME: &str = "Max processes";

/// A user has more threads than this by logging in and starting one Python program.
const FAILS_WITH: u64 = 8;

/// A usual desktop or container stays below this, so that the limit is seldom the reason above it.
const SMALL: u64 = 512;

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    let failed = init_failed(facts, &[code::OPERATING_SYSTEM]);
    let refused = facts.process.refused(Refusal::Thread);
    let Some((_, origin)) = failed else {
        refused_only(facts, &mut weighing);
        return weighing;
    };
    if let Some(refused) = refused {
        weighing.supports(Strong, "a thread or process was refused for want of resources", refused);
    }
    by_user(facts, refused.is_some(), &mut weighing);
    by_container(facts, &mut weighing);
    if !weighing.support.is_empty() {
        weighing.supports(Moderate, "cuInit answers 304", &origin);
        if let Some(origin) = readings::nvml_works(facts) {
            weighing.supports(Weak, "NVML, which starts no thread, answers", &origin);
        }
    }
    tried(
        facts,
        |lever| lever == Lever::Threads,
        "it works with more processes allowed",
        "more processes do not help",
        &mut weighing,
    );
    weighing
}

/// Threads are refused, and CUDA fails in some way that names no 304: it may be that as well.
fn refused_only(facts: &Facts, weighing: &mut Weighing) {
    if let Some((run, Errno::EAGAIN)) = blind(facts) {
        weighing.supports(Moderate, "no probe can be started here: EAGAIN", &run.origin);
        by_user(facts, true, weighing);
        by_container(facts, weighing);
        return;
    }
    let Some(refused) = facts.process.refused(Refusal::Thread) else { return };
    let statement = "a thread or process was refused for want of resources";
    weighing.supports(Moderate, statement, refused);
    weighing.needs(Need::Limits);
    if !facts.cuda.plain().any(|trial| !trial.ok()) {
        tried(
            facts,
            |lever| lever == Lever::Threads,
            "it works with more processes allowed",
            "more processes do not help",
            weighing,
        );
    }
}

/// RLIMIT_NPROC, which does not hold root.
fn by_user(facts: &Facts, refused: bool, weighing: &mut Weighing) {
    let root = facts.node.euid.as_seen().filter(|seen| seen.value == 0);
    match (lowest(facts, NAME), root) {
        (Some(seen), Some(root)) if seen.value <= SMALL && !refused => {
            let statement =
                format!("the limit of processes is {}, and root is not held by it", seen.value);
            weighing.objects(Weak, statement, &root.origin);
        }
        (Some(seen), None) if seen.value <= FAILS_WITH => {
            let statement = format!("the limit of processes and threads is {}", seen.value);
            weighing.confirms(statement, &seen.origin);
        }
        (Some(seen), None) if seen.value <= SMALL || refused => {
            let strength = if seen.value <= SMALL { Strong } else { Moderate };
            let statement = format!("the limit of processes and threads is {}", seen.value);
            weighing.supports(strength, statement, &seen.origin);
        }
        (Some(seen), _) if !refused && facts.process.pids_max.value() == Some(&None) => {
            let statement = format!("{} processes are allowed", seen.value);
            weighing.rules_out(statement, &seen.origin);
        }
        (Some(_), _) => {}
        (None, _) => {
            if facts.process.lowest_limit(NAME).is_none() {
                weighing.needs(Need::Limits);
            }
        }
    }
}

/// The cgroup's pids.max, which holds root as well.
fn by_container(facts: &Facts, weighing: &mut Weighing) {
    if let Observed::Seen(Seen { value: Some(limit), origin }) = &facts.process.pids_max
        && *limit <= SMALL
    {
        let statement = format!("the container may have {limit} threads in all");
        weighing.supports(Strong, statement, origin);
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let engine = by_engine(facts);
    let impact = if engine { Impact::RecreatesContainer } else { Impact::RestartsProcess };
    let remedy = Remedy::new(impact, "the program in question");
    let remedy = if engine {
        remedy.step_to(
            Place::Engine,
            "docker run --pids-limit=-1 --ulimit nproc=-1 …",
            "in Kubernetes the kubelet's podPidsLimit",
        )
    } else {
        remedy
            .step_to(
                Place::Here,
                "ps -L -u $USER | wc -l; ulimit -u",
                "how many threads there are, and how many may be",
            )
            .step_to(
                Place::Program,
                "ulimit -u unlimited",
                "in the shell or script that starts it; a hard limit needs root",
            )
            .step_to(
                Place::Here,
                "systemctl edit SERVICE, with [Service], TasksMax=infinity and LimitNPROC=infinity",
                "where a service starts it",
            )
    };
    remedy
        .undo("start it with the former limit")
        .verify("cuInit answers 0 from the same place")
        .will_not_help("OMP_NUM_THREADS=1 alone: libcuda's own threads remain")
        .will_not_help("reinstalling the driver: it works where threads may be started")
}
