//! `p2p.unsupported-gpu`

use facts::model::p2p::{PeerResult, PeerSwitch};
use facts::{Facts, Layer};

use super::without_peer_copies;
use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::need::Need;
use crate::peers;
use crate::remedy::{Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "p2p.unsupported-gpu",
    layer: Layer::P2p,
    claim: "the driver does not offer peer access between these GPUs, or on this chipset",
    explanation: "Whether GPUs may reach each other's memory is the driver's policy: GeForce boards \
        since Ada get none over PCIe and those before only over an NVLink bridge, guests get none \
        unless the hypervisor vouches for it, and some chipsets are not trusted. The matrix of \
        nvidia-smi topo -p2p gives the reason: CNS the chipset, GNS the GPU, TNS the topology, NS \
        not supported, DR disabled by a registry key. Programs then go through host memory, which \
        is slower and works.",
    explains: &[SymptomId::P2pAbsent, SymptomId::P2pBroken],
    specializes: &[],
    look_alikes: &[
        LookAlike {
            id: "p2p.guest-topology",
            tell: "the matrix says OK, and a guest shows PHB for every pair",
        },
        LookAlike {
            id: "p2p.acs-iommu",
            tell: "the driver offers peer access, and the copies do not arrive",
        },
        LookAlike {
            id: "p2p.driver-overclaims",
            tell: "the driver says OK for a board that cannot do it",
        },
    ],
    references: &[
        "https://github.com/NVIDIA/nccl/issues/175",
        "https://github.com/NVIDIA/open-gpu-kernel-modules (src/nvidia/src/kernel/gpu/bus/p2p_api.c)",
        "https://www.qemu.org/docs/master/system/devices/vfio.html (x-nv-gpudirect-clique)",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    match peers::refused(facts) {
        // Without peer access programs go another way; a hang has its cause there.
        Some(refused) if hangs(facts) => {
            weighing.supports(Weak, refused.value, &refused.origin);
            return weighing;
        }
        Some(refused) if !facts.nvml.peer_status.is_empty() => {
            weighing.confirms(refused.value, &refused.origin);
        }
        Some(refused) => {
            weighing.supports(Strong, refused.value, &refused.origin);
            weighing.needs(Need::PeerStatus);
        }
        None => return no_refusal(facts),
    }
    let products = peers::products(facts);
    if let Some(board) = products.iter().find(|seen| peers::is_consumer(&seen.value.0)) {
        let statement = format!("{} is a consumer board", board.value.0);
        weighing.supports(Moderate, statement, &board.origin);
    }
    if let Some(origin) = peers::guest(facts) {
        weighing.supports(Weak, "this is a guest of a hypervisor", &origin);
    }
    if let Some(other) = facts.p2p.other_gpus_work.first() {
        weighing.supports(
            Moderate,
            "another class of GPU gets it in the same place",
            &other.origin,
        );
    }
    weighing
}

fn hangs(facts: &Facts) -> bool {
    facts.p2p.plain_runs().any(|run| run.value.result == PeerResult::Hung)
}

/// Without the driver's word the cause is a suspicion that its matrix would decide.
fn no_refusal(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    let Some(complaint) = facts.p2p.broken().or(facts.p2p.completed_under(&[PeerSwitch::P2pOff]))
    else {
        return Weighing::not_applicable();
    };
    if let Some(offered) = peers::advertised(facts) {
        weighing.rules_out(offered.value, &offered.origin);
    } else if complaint.value.under.is_empty() {
        weighing.needs(Need::PeerStatus);
    }
    weighing
}

fn remedy(facts: &Facts) -> Remedy {
    let mut remedy = without_peer_copies();
    if peers::guest(facts).is_some() {
        remedy = remedy.step_to(
            Place::Hypervisor,
            "put the GPUs of one root port into one clique: -device vfio-pci,…,x-nv-gpudirect-clique=0",
            "for data-centre and workstation boards; the driver refuses GeForce in guests all the same",
        );
    }
    remedy
        .undo("unset NCCL_P2P_DISABLE; remove the clique")
        .verify("the program runs; nvidia-smi topo -p2p r still says why there is no peer access")
        .will_not_help("another NCCL: the driver's own matrix says no")
        .will_not_help("NCCL_P2P_LEVEL=SYS: it cannot allow what the driver refuses")
}
