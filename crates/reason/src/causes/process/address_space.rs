//! `process.address-space`

use facts::model::cuda::Stage;
use facts::model::process::{Lever, Refusal};
use facts::{Facts, Layer, Seen};

use super::limits::{lowest, size, tried};
use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::need::Need;
use crate::readings::{self, code};
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "process.address-space",
    layer: Layer::Process,
    claim: "a limit of the address space stops the driver's reservations",
    explanation: "cuInit reserves address space without using memory: many gigabytes for unified \
        addressing, on some machines as much as all GPUs and the host have together. A limit of \
        virtual memory (ulimit -v, RLIMIT_AS, h_vmem of a batch system) refuses that, and cuInit \
        answers 2, out of memory, though GPU and host have plenty free. Libraries of frameworks \
        may fail to be mapped for the same reason. NVML reserves little and works.",
    explains: &[
        SymptomId::CudaInitFails,
        SymptomId::CudaContextFails,
        SymptomId::CudaInitCrashes,
        SymptomId::DriverAbsent,
        SymptomId::FrameworkNoGpu,
    ],
    specializes: &["library.missing"],
    look_alikes: &[
        LookAlike {
            id: "process.threads",
            tell: "cuInit answers 304, and threads cannot be created",
        },
        LookAlike {
            id: "library.missing",
            tell: "the loader does not find the library, and does not say that it cannot map it",
        },
        LookAlike {
            id: "share.compute-mode",
            tell: "cuInit works, and creating a context fails because another process holds the GPU",
        },
    ],
    references: &[
        "https://man7.org/linux/man-pages/man2/getrlimit.2.html",
        "https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html",
        "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#unified-virtual-address-space",
    ],
    weigh,
    remedy,
};

const NAME: &str = "Max address space";

/// At 3.8 GiB cuInit failed, at 38 GiB it worked, on a machine with two H200 (driver 580,
/// measured). More GPUs reserve more.
const FAILS_WITH: u64 = 8 << 30;

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    let Some(failed) = failure(facts) else { return weighing };
    let limit = lowest(facts, NAME);
    let refused = facts.process.refused(Refusal::AddressSpace);
    match &limit {
        Some(seen) => {
            let statement = format!("the address space is limited to {}", size(seen.value));
            if seen.value <= FAILS_WITH {
                weighing.confirms(statement, &seen.origin);
            } else {
                weighing.supports(Strong, statement, &seen.origin);
            }
        }
        None if facts.process.lowest_limit(NAME).is_some() => {
            if let Some(seen) = facts.process.lowest_limit(NAME) {
                weighing.rules_out("the address space is not limited", &seen.origin);
            }
            return weighing;
        }
        None => {
            weighing.needs(Need::Limits);
        }
    }
    if let Some(refused) = refused {
        weighing.supports(Moderate, "memory could not be mapped", refused);
    }
    let strength = if limit.is_some() || refused.is_some() { Moderate } else { Weak };
    weighing.supports(strength, failed.value, &failed.origin);
    if limit.is_some()
        && let Some(origin) = readings::nvml_works(facts)
    {
        weighing.supports(Weak, "NVML, which reserves little, answers", &origin);
    }
    tried(
        facts,
        |lever| lever == Lever::AddressSpace,
        "it works without the limit of the address space",
        "lifting the limit of the address space does not help",
        &mut weighing,
    );
    weighing
}

/// cuInit answers 2 (or what follows it does, when only a message is known), or the library cannot
/// be mapped.
fn failure(facts: &Facts) -> Option<Seen<String>> {
    let mut memory = facts
        .cuda
        .plain()
        .filter(|trial| trial.failure_code() == Some(code::OUT_OF_MEMORY))
        .peekable();
    let any = memory.peek().copied();
    if let Some(trial) = memory.find(|trial| trial.stage <= Stage::Count) {
        return Some(Seen::new("cuInit answers 2, out of memory".to_owned(), trial.origin.clone()));
    }
    if let Some(seen) = facts.library.cuda_load_error.as_seen()
        && seen.value.contains("failed to map segment")
    {
        return Some(Seen::new(format!("the loader says: {}", seen.value), seen.origin.clone()));
    }
    // A message without its call may come from any allocation; only a limit that was seen makes
    // it one of these.
    lowest(facts, NAME)?;
    let trial = any?;
    Some(Seen::new(format!("{} answers 2, out of memory", trial.what), trial.origin.clone()))
}

fn remedy(_: &Facts) -> Remedy {
    Remedy::new(Impact::RestartsProcess, "the program in question")
        .step_to(
            Place::Program,
            "ulimit -v unlimited",
            "in the shell or script that starts it; a hard limit needs root",
        )
        .step_to(
            Place::Here,
            "grep -rn -E '\\bas\\b' /etc/security/limits.conf /etc/security/limits.d/",
            "takes the limit off logins, when it is set there",
        )
        .step_to(
            Place::Program,
            "submit without h_vmem or VSizeFactor, and limit resident memory instead",
            "on batch systems, which set the limit for each job",
        )
        .undo("ulimit -v with the former value")
        .verify("grep 'address space' /proc/PID/limits shows unlimited, and cuInit answers 0")
        .will_not_help("freeing GPU memory or a smaller batch: cuInit takes no GPU memory")
        .will_not_help("more RAM or swap: the limit is on addresses, not on memory")
}
