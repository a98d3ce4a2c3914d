//! `process.shm-small`

use facts::model::process::{Lever, Refusal};
use facts::{Facts, Layer, Seen};

use super::limits::{by_engine, size, tried};
use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::need::Need;
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "process.shm-small",
    layer: Layer::Process,
    claim: "/dev/shm is too small for what processes share through it",
    explanation: "NCCL passes data between processes of one machine through files in /dev/shm, some \
        ten megabytes for each pair, and PyTorch's data loaders pass whole batches. Docker and \
        Kubernetes give a container 64 MiB. When it is full, creating a segment fails with \"No \
        space left on device\", which is not the disk, or a process that writes into one dies of a \
        bus error. A newer NCCL that uses more of it makes the fault appear after an upgrade.",
    explains: &[SymptomId::P2pBroken],
    specializes: &["p2p.acs-iommu"],
    look_alikes: &[
        LookAlike {
            id: "process.memlock",
            tell: "the message is \"Cannot allocate memory\" and comes from registering with a network card",
        },
        LookAlike {
            id: "p2p.acs-iommu",
            tell: "NCCL starts and then hangs, and NCCL_P2P_DISABLE=1 cures it",
        },
    ],
    references: &[
        "https://github.com/NVIDIA/nccl/issues/342",
        "https://github.com/NVIDIA/nccl/issues/290",
        "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html",
    ],
    weigh,
    remedy,
};

/// Enough for NCCL on any one machine; data loaders may want more, and then it is full.
const ENOUGH: u64 = 4 << 30;
/// Less than one of NCCL's larger segments.
const FULL: u64 = 32 << 20;

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    let refused = facts.process.refused(Refusal::SharedMemory);
    let died = facts.process.refused(Refusal::BusError);
    if let Some(origin) = refused {
        weighing.supports(Strong, "a segment of shared memory could not be created", origin);
        // NCCL names the size where the file could be made and not be filled (src/misc/shmutils.cc).
        if origin.excerpt.contains("(size ") {
            weighing.supports(Moderate, "its file could be made, and not be filled", origin);
        }
    }
    if let Some(origin) = died {
        weighing.supports(Moderate, "a process died of a bus error", origin);
    }
    if weighing.support.is_empty() {
        return weighing;
    }
    space(facts, refused.is_some(), &mut weighing);
    if let Some(seen) = facts.sandbox.started_with.as_seen() {
        options(seen, &mut weighing);
    } else if by_engine(facts)
        && let Some(origin) = refused.or(died)
    {
        weighing.supports(Weak, "a container gets 64 MiB unless more is asked for", origin);
    }
    tried(
        facts,
        |lever| lever == Lever::SharedMemory,
        "it works with a larger /dev/shm",
        "a larger /dev/shm does not help",
        &mut weighing,
    );
    weighing
}

fn space(facts: &Facts, refused: bool, weighing: &mut Weighing) {
    let free = facts.process.shm_free_bytes.as_seen();
    let Some(seen) = facts.process.shm_bytes.as_seen() else {
        weighing.needs(Need::SharedMemorySize);
        return;
    };
    let statement = format!("/dev/shm has {}", size(seen.value));
    let full = free.filter(|free| free.value < FULL && seen.value > FULL);
    match (refused, full) {
        (true, _) if seen.value < ENOUGH => {
            weighing.confirms(statement, &seen.origin);
        }
        (true, Some(free)) => {
            let statement = format!("{statement}, of which {} are free", size(free.value));
            weighing.confirms(statement, &free.origin);
        }
        (false, _) if seen.value < ENOUGH => {
            weighing.supports(Strong, statement, &seen.origin);
        }
        (false, Some(free)) => {
            weighing.supports(Strong, format!("{statement}, and it is full"), &free.origin);
        }
        (_, None) => {
            weighing.rules_out(format!("{statement}, which is plenty"), &seen.origin);
        }
    }
}

/// The engine's command line: nothing that enlarges it, or something that does.
fn options(started: &Seen<String>, weighing: &mut Weighing) {
    // What a sentence says is not there is not there: `docker run … without --shm-size`.
    let denied = |word: &str| {
        let before = started.value.split(word).next().unwrap_or("").trim_end();
        let before = before.trim_end_matches(['`', '"', '\'', '*']).trim_end();
        ["without", "no", "not", "lacks", "missing"].iter().any(|denial| before.ends_with(denial))
    };
    let large = ["--shm-size", "--ipc=host", "--ipc host", "/dev/shm"]
        .iter()
        .any(|word| started.value.contains(word) && !denied(word));
    if large {
        weighing.objects(
            Moderate,
            "the container was started with a larger /dev/shm",
            &started.origin,
        );
    } else {
        let statement = "the container was started without --shm-size or --ipc=host: it has 64 MiB";
        weighing.supports(Moderate, statement, &started.origin);
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let engine = by_engine(facts);
    let impact = if engine { Impact::RecreatesContainer } else { Impact::None };
    let remedy = Remedy::new(impact, "the job in question");
    let remedy = if engine {
        remedy
            .step_to(
                Place::Engine,
                "docker run --shm-size=8g …",
                "or --ipc=host; shm_size: 8gb in a compose file",
            )
            .step_to(
                Place::Engine,
                "in a pod: an emptyDir volume with medium: Memory, mounted at /dev/shm",
                "Kubernetes has no option for it",
            )
    } else {
        remedy
            .step_to(
                Place::Here,
                "ls -l /dev/shm/nccl-* 2>/dev/null",
                "what a job that was killed left there may be removed",
            )
            .step_to(Place::Here, "mount -o remount,size=16G /dev/shm", "as root")
    };
    remedy
        .undo("start the container with the former options; mount -o remount,size=50% /dev/shm")
        .verify("df -h /dev/shm shows the new size, and the job runs")
        .will_not_help("freeing disk space: /dev/shm is memory")
        .will_not_help("an older NCCL: it only happens to use less of it")
}
