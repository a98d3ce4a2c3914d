//! `fabric.multicast`

use facts::model::p2p::PeerSwitch;
use facts::{Facts, Layer};

use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::machine;
use crate::need::Need;
use crate::readings;
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "fabric.multicast",
    layer: Layer::Fabric,
    claim: "NVLink multicast (NVLS) fails, while plain traffic between the GPUs works",
    explanation: "From Hopper on, switches can add up and distribute data by themselves (NVLink \
        SHARP, NCCL's NVLS). A multicast group is made by the driver together with the fabric \
        manager; when their idea of the fabric is stale, after a GPU was reset or a link came back, \
        cuMulticastBindMem answers 401 and NCCL gives up the whole communicator. Tests of one GPU, \
        and those that do not use multicast, pass; NCCL_NVLS_ENABLE=0 masks it at the cost of \
        bandwidth.",
    explains: &[SymptomId::P2pBroken, SymptomId::CudaContextFails],
    specializes: &[],
    look_alikes: &[
        LookAlike {
            id: "fabric.nvlink-down",
            tell: "plain traffic fails as well: Xid 74 or 144 to 150, inactive links",
        },
        LookAlike { id: "fabric.manager-missing", tell: "cuInit itself answers 802" },
        LookAlike {
            id: "p2p.acs-iommu",
            tell: "no NVLink: PCIe boards, which never use multicast",
        },
    ],
    references: &[
        "https://github.com/NVIDIA/DCGM/issues/304",
        "https://github.com/NVIDIA/nccl/issues/1788",
        "https://github.com/NVIDIA/nccl/issues/1672",
        "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-nvls-enable",
    ],
    weigh,
    remedy,
};

/// CUDA_ERROR_ILLEGAL_STATE (cuda.h): the group cannot be bound in its present state.
const ILLEGAL_STATE: i64 = 401;

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    let failures = &facts.fabric.multicast_failures;
    let by_state = failures.iter().find(|failure| failure.value == Some(ILLEGAL_STATE));
    match (by_state, failures.first()) {
        (Some(failure), _) => {
            weighing.confirms("a call for NVLink multicast answers 401", &failure.origin);
        }
        (None, Some(failure)) => {
            let statement = match failure.value {
                Some(code) => format!("a call for NVLink multicast answers {code}"),
                None => "a call for NVLink multicast fails".to_owned(),
            };
            weighing.supports(Strong, statement, &failure.origin);
        }
        (None, None) => {}
    }
    if let Some(run) = facts.p2p.completed_under(&[PeerSwitch::MulticastOff]) {
        weighing.supports(Strong, "it works with NVLS switched off", &run.origin);
    }
    if weighing.support.is_empty() {
        return weighing;
    }
    if let Some(seen) = facts.fabric.multicast_available.as_seen() {
        if seen.value {
            weighing.supports(Weak, "NCCL finds multicast available", &seen.origin);
        } else {
            weighing.objects(Moderate, "NCCL does not find multicast available", &seen.origin);
        }
    }
    if let Some(run) = facts.p2p.broken_under(&[PeerSwitch::MulticastOff]) {
        weighing.objects(Strong, "it fails with NVLS switched off as well", &run.origin);
    }
    if let Some((number, trial)) = readings::init_failure(facts) {
        weighing.objects(Strong, format!("cuInit itself answers {number}"), &trial.origin);
    }
    if facts.fabric.links.is_empty() {
        weighing.needs(Need::NvLinks);
    }
    weighing
}

fn remedy(facts: &Facts) -> Remedy {
    let place = machine::kernel_place(facts);
    Remedy::new(Impact::RestartsService, "every GPU program on the node")
        .step_to(Place::Program, "export NCCL_NVLS_ENABLE=0", "a stop-gap; collectives become slower")
        .step_to(
            place,
            "stop all GPU programs; systemctl stop nvidia-fabricmanager; nvidia-smi -r; systemctl start nvidia-fabricmanager",
            "GPUs and switches begin anew with one idea of the fabric",
        )
        .step_to(place, "reboot, or a power cycle, when that is not enough", "")
        .step_to(place, "nvidia-smi nvlink -e", "errors that rise tell of a link behind it")
        .undo("unset NCCL_NVLS_ENABLE")
        .verify("all_reduce_perf -g N over all GPUs ends without NCCL_NVLS_ENABLE=0")
        .will_not_help("dcgmi diag: it passes, since it does not use multicast")
        .will_not_help("NCCL_P2P_DISABLE=1: it switches off the plain traffic, which works")
}
