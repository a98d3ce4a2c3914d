//! `process.memlock`

use facts::model::process::{Lever, Refusal};
use facts::{Facts, Layer};

use super::limits::{ample, by_engine, lowest, size, tried};
use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::need::Need;
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "process.memlock",
    layer: Layer::Process,
    claim: "the limit of locked memory is too small for RDMA",
    explanation: "A network card that reads and writes memory by itself needs the pages to stay \
        where they are, so that registering a buffer locks it. The limit of locked memory is \
        8 MiB or even 64 KiB by default, and ibv_reg_mr then answers \"Cannot allocate memory\" \
        though there is plenty. NCCL, UCX and MPI report just that. The new value of limits.conf \
        reaches only what logs in afresh: a daemon, a batch system or a container keeps its own. \
        CUDA by itself does not need the limit.",
    explains: &[SymptomId::P2pBroken, SymptomId::P2pAbsent],
    specializes: &["p2p.acs-iommu"],
    look_alikes: &[
        LookAlike {
            id: "process.shm-small",
            tell: "the message is \"No space left on device\" and speaks of a shared memory segment",
        },
        LookAlike {
            id: "p2p.acs-iommu",
            tell: "registering works, and copies hang or arrive wrong",
        },
    ],
    references: &[
        "https://github.com/NVIDIA/nccl-tests/issues/206",
        "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html",
        "https://man7.org/linux/man-pages/man2/getrlimit.2.html",
    ],
    weigh,
    remedy,
};

const NAME: &str = "Max locked memory";

/// NCCL registers some megabytes for each channel and peer; a job of one machine takes hundreds.
const SMALL: u64 = 1 << 30;

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    let Some(refused) = facts.process.refused(Refusal::LockedMemory) else {
        return weighing;
    };
    if let Some(seen) = ample(facts, NAME, SMALL) {
        let limit = seen.value.map_or("not limited".to_owned(), size);
        weighing.rules_out(format!("locked memory is {limit}"), &seen.origin);
        weighing.supports(
            Moderate,
            "memory could not be registered with the network card",
            refused,
        );
        return weighing;
    }
    weighing.supports(Strong, "memory could not be registered with the network card", refused);
    match lowest(facts, NAME) {
        Some(seen) => {
            let statement = format!("no more than {} may be locked", size(seen.value));
            weighing.confirms(statement, &seen.origin);
        }
        None => {
            weighing.needs(Need::Limits);
        }
    }
    // A warning or an advice names the limit as the reason.
    if refused.excerpt.contains("MEMLOCK") || refused.excerpt.contains("locked memory") {
        weighing.supports(Moderate, "the message itself names the limit", refused);
    }
    if by_engine(facts) {
        weighing.supports(Weak, "a container has the engine's limit", refused);
    }
    tried(
        facts,
        |lever| lever == Lever::LockedMemory,
        "it works with locked memory unlimited",
        "unlimited locked memory does not help",
        &mut weighing,
    );
    weighing
}

fn remedy(facts: &Facts) -> Remedy {
    let engine = by_engine(facts);
    let impact = if engine { Impact::RecreatesContainer } else { Impact::RestartsProcess };
    let remedy = Remedy::new(impact, "the job in question");
    let remedy = if engine {
        remedy.step_to(
            Place::Engine,
            "docker run --ulimit memlock=-1 --cap-add IPC_LOCK …",
            "in Kubernetes securityContext.capabilities.add: [IPC_LOCK], and the runtime's own limit",
        )
    } else {
        remedy
            .step_to(Place::Program, "ulimit -l unlimited", "in the script that the job runs; a hard limit needs root")
            .step_to(
                Place::Here,
                "printf '* soft memlock unlimited\\n* hard memlock unlimited\\n' > /etc/security/limits.d/rdma.conf",
                "for new logins, on every node",
            )
            .step_to(
                Place::Here,
                "systemctl edit slurmd (or the daemon that starts jobs), with [Service] and LimitMEMLOCK=infinity, then restart it",
                "a daemon hands its own limit to its jobs; with Slurm also PropagateResourceLimitsExcept=MEMLOCK",
            )
    };
    remedy
        .undo("rm /etc/security/limits.d/rdma.conf; systemctl revert slurmd")
        .verify("ulimit -l inside the job prints unlimited, and the job runs over the network card")
        .will_not_help(
            "editing limits.conf alone: a running daemon keeps the limit it was started with",
        )
        .will_not_help("another NCCL or driver: a test of the card alone locks less and passes")
}
