//! `library.interposer`

use facts::model::ProbeRun;
use facts::model::experiment::{Change, Effect};
use facts::model::framework::FrameworkMessage;
use facts::model::process::Lever;
use facts::model::task::Hang;
use facts::{Facts, Layer, Origin};

use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::need::Need;
use crate::readings;
use crate::remedy::{Impact, Place, Remedy};
use crate::stuck;
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "library.interposer",
    layer: Layer::Library,
    claim: "a preloaded library stands between the program and the driver and breaks its calls",
    explanation: "LD_PRELOAD, /etc/ld.so.preload or a scheduler's device plug-in (HAMi's \
        libvgpu.so, Gemini's libgemhook, nvshare) puts a library before libcuda that answers its \
        calls first: to share a GPU, to count memory, to trace. When that library waits for a lock \
        of its own or does not know a call, CUDA hangs or fails though driver and GPU are sound. \
        The kernel then shows no call of the driver in flight, and without the library it works.",
    explains: &[
        SymptomId::CudaInitHangs,
        SymptomId::CudaInitFails,
        SymptomId::CudaInitCrashes,
        SymptomId::CudaInitSlow,
        SymptomId::CudaContextFails,
        SymptomId::NvmlHangs,
        SymptomId::NvmlFails,
        SymptomId::P2pBroken,
        SymptomId::FrameworkNoGpu,
        SymptomId::FrameworkNoCode,
    ],
    specializes: &["p2p.acs-iommu"],
    look_alikes: &[
        LookAlike {
            id: "uvm.hmm",
            tell: "the stuck task is in a call of nvidia_uvm, with or without what is preloaded",
        },
        LookAlike {
            id: "module.deadlock",
            tell: "the task is in state D in the kernel, and cannot be killed",
        },
        LookAlike {
            id: "p2p.acs-iommu",
            tell: "NCCL hangs in every program, and NCCL_P2P_DISABLE=1 cures it",
        },
    ],
    references: &[
        "https://github.com/Project-HAMi/HAMi/issues/2641",
        "https://github.com/Project-HAMi/HAMi-core",
        "https://man7.org/linux/man-pages/man8/ld.so.8.html",
    ],
    weigh,
    remedy,
};

/// Variables by which libraries come into a process that does not ask for them.
const VARIABLES: [&str; 3] = ["LD_PRELOAD", "LD_AUDIT", "CUDA_INJECTION64_PATH"];

/// Libraries that many preload and that have nothing to do with the driver.
const HARMLESS: [&str; 8] =
    ["tcmalloc", "jemalloc", "mimalloc", "libstdc++", "libgomp", "libiomp", "libasan", "libgcc"];

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    let Some(found) = Interposer::of(facts) else {
        none(facts, &mut weighing);
        return weighing;
    };
    if let Some(origin) = readings::cuda_works(facts).filter(|_| facts.p2p.broken().is_none()) {
        weighing.rules_out(format!("CUDA works with {} preloaded", found.name), origin);
        return weighing;
    }
    let strength = if found.known { Moderate } else { Weak };
    weighing.supports(strength, format!("{} is preloaded", found.name), &found.origin);
    in_user_space(facts, &found, &mut weighing);
    told_busy(facts, &found, &mut weighing);
    complaints(facts, &mut weighing);
    without(facts, found.known, &mut weighing);
    weighing
}

/// What is preloaded.
struct Interposer {
    name: String,
    /// It is one of those that answer for the driver.
    known: bool,
    harmless: bool,
    origin: Origin,
}

impl Interposer {
    /// The most suspicious one.
    fn of(facts: &Facts) -> Option<Interposer> {
        let listed = facts.library.interposers.iter().map(|(path, origin)| (path.as_str(), origin));
        let variables = VARIABLES.iter().filter_map(|name| facts.process.env.get(*name));
        let set = variables.flat_map(|seen| {
            let parts = seen.value.split([':', ' ']).filter(|part| !part.is_empty());
            parts.map(move |part| (part, &seen.origin))
        });
        let all = listed.chain(set).map(|(path, origin)| Interposer {
            name: path.rsplit('/').next().unwrap_or(path).trim_end_matches('.').to_owned(),
            known: facts::parse::maps::is_interposer(path),
            harmless: HARMLESS.iter().any(|name| path.contains(name)),
            origin: origin.clone(),
        });
        all.min_by_key(|found| (!found.known, found.harmless))
    }
}

/// Nothing is preloaded, as far as was looked.
fn none(facts: &Facts, weighing: &mut Weighing) {
    if let Some(origin) = facts.process.env("LD_PRELOAD").absent()
        && facts.cuda.hangs().next().is_some()
    {
        weighing.rules_out("LD_PRELOAD is not set, and nothing else is preloaded", origin);
    }
}

/// A call of CUDA that does not return while the kernel shows no call of the driver in flight.
fn in_user_space(facts: &Facts, found: &Interposer, weighing: &mut Weighing) {
    let hung = |run: &&ProbeRun| run.hung() && run.in_flight.is_some();
    let Some(run) = facts.unchanged_runs().find(hung) else { return };
    let Some(place) = &run.stuck else {
        weighing.needs(Need::StuckStack);
        return;
    };
    if let Some(call) = place.call.as_deref().filter(|call| in_driver(call)) {
        weighing.objects(Strong, format!("the stuck task is in the driver: {call}"), &run.origin);
    } else if place.state == "D" || place.stack.iter().any(|frame| of_driver(frame)) {
        weighing.objects(Strong, "the stuck task waits in the kernel", &run.origin);
    } else if run.hang() == Some(Hang::SpinsInKernel) {
        weighing.objects(Moderate, "the stuck task spins in the kernel", &run.origin);
    } else if stuck::cuinit_on_socket(facts).is_some() && facts.share.mps_pipe.is_seen() {
        let statement = "cuInit waits on a socket, as a client of MPS does for its daemon";
        weighing.objects(Strong, statement, &run.origin);
    } else if !found.harmless && could_look(run) {
        let call = place.call.as_deref().unwrap_or("no system call");
        let statement = format!("it hangs outside the driver: the stuck task is in {call}");
        weighing.supports(Strong, statement, &run.origin);
        if !found.known {
            let statement = "a library that nobody knows stands before the driver's calls";
            weighing.supports(Moderate, statement, &found.origin);
        }
    }
}

/// A person's word for the same: it hangs, and runs all the while.
fn told_busy(facts: &Facts, found: &Interposer, weighing: &mut Weighing) {
    let looked = facts.unchanged_runs().any(|run| run.stuck.is_some());
    if let Some(origin) = facts.cuda.busy_told.as_ref().filter(|_| !looked && found.known)
        && facts.cuda.hangs().next().is_some()
    {
        let statement = "the program hangs and is told to be busy, in no call of the driver's";
        weighing.supports(Moderate, statement, origin);
    }
}

/// The call was decoded, or it was seen that there is none: the thread runs, or waits for another.
fn could_look(run: &ProbeRun) -> bool {
    run.stuck.as_ref().is_some_and(|stuck| {
        stuck.call.is_some() || !stuck.not_readable.iter().any(|what| what.starts_with("syscall"))
    })
}

fn in_driver(call: &str) -> bool {
    call.contains("/dev/nvidia") || call.contains("/proc/driver/nvidia")
}

fn of_driver(frame: &str) -> bool {
    frame.contains("nvidia") || frame.starts_with("uvm_") || frame.starts_with("nv_")
}

/// The library's own errors, and the loader's about it.
fn complaints(facts: &Facts, weighing: &mut Weighing) {
    let unresolved = facts.framework.messages.iter().find_map(|(message, origin)| match message {
        FrameworkMessage::UndefinedSymbol { library, symbol }
            if facts::parse::maps::is_interposer(library) =>
        {
            Some((library, symbol, origin))
        }
        _ => None,
    });
    if let Some((library, symbol, origin)) = unresolved {
        let statement = format!("{library} wants {symbol}, which this libcuda does not have");
        weighing.supports(Strong, statement, origin);
    }
    if let Some(said) = facts.library.interposer_complaints.first() {
        weighing.supports(Moderate, format!("it says: {}", said.value), &said.origin);
    }
}

/// The fault goes without the library: that is the proof.
fn without(facts: &Facts, known: bool, weighing: &mut Weighing) {
    match facts.process.tried(|lever| lever == Lever::Interposer) {
        Some((attempt, origin)) if attempt.helped && attempt.controlled => {
            let statement = "cuInit works without what is preloaded, and with it fails again";
            weighing.confirms(statement, origin);
        }
        Some((attempt, origin)) if attempt.helped => {
            weighing
                .confirms("it works without that library, or with it told to do nothing", origin);
        }
        Some((_, origin)) => {
            weighing.rules_out("it is the same without that library", origin);
        }
        None => {
            otherwise_without(facts, weighing);
            weighing.needs(Need::WithoutPreload);
            // A shim of a scheduler where work between processes hangs: a suspicion.
            if known && let Some(run) = facts.p2p.broken() {
                weighing.supports(Weak, "what fails goes through that library", &run.origin);
            }
        }
    }
}

/// Without the library it fails in another way: it has its part in what is seen, and something
/// else is wrong as well.
fn otherwise_without(facts: &Facts, weighing: &mut Weighing) {
    let made = facts
        .experiments
        .iter()
        .find(|made| made.change == Change::WithoutHooks && made.effect == Effect::Differs);
    if let Some(made) = made {
        let statement = "without that library it fails in another way";
        weighing.supports(Moderate, statement, &made.origin);
    }
}

/// The program without those of the variables that are set.
fn without_variables(facts: &Facts) -> String {
    let is_set =
        |name: &&&str| facts.process.env.get(**name).is_some_and(|seen| !seen.value.is_empty());
    let mut set: Vec<&str> = VARIABLES.iter().filter(is_set).copied().collect();
    if set.is_empty() {
        set.push("LD_PRELOAD");
    }
    format!("env -u {} PROGRAM", set.join(" -u "))
}

fn remedy(facts: &Facts) -> Remedy {
    let hami = Interposer::of(facts).is_some_and(|found| found.name.contains("libvgpu"));
    let mut remedy = Remedy::new(Impact::RestartsProcess, "the program in question");
    if hami {
        remedy = remedy.step_to(
            Place::Engine,
            "set CUDA_DISABLE_CONTROL=true in the pod's environment",
            "HAMi's library then passes every call through; for pods that have whole GPUs",
        );
    }
    remedy
        .step_to(Place::Program, without_variables(facts), "shows whether it works without")
        .step_to(
            Place::Here,
            "cat /etc/ld.so.preload; grep -E '\\.so' /proc/PID/maps | awk '{print $6}' | sort -u",
            "what else is loaded before the driver; take the line out of /etc/ld.so.preload",
        )
        .undo("set LD_PRELOAD (or CUDA_DISABLE_CONTROL) to its former value")
        .verify("the program gets past the call in which it hung or failed")
        .will_not_help("reinstalling the driver or resetting the GPU: they are not even asked")
        .will_not_help("NCCL_P2P_DISABLE=1 or another NCCL: the same library stands before it")
}
