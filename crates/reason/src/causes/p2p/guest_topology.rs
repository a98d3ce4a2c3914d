//! `p2p.guest-topology`

use facts::model::p2p::PeerSwitch;
use facts::{Facts, Layer};

use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::need::Need;
use crate::peers;
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "p2p.guest-topology",
    layer: Layer::P2p,
    claim: "the guest hides the PCIe topology that NCCL needs",
    explanation: "A hypervisor that passes GPUs through puts each on a root port of its own: the \
        guest sees no switch, no second socket, and often no NUMA node. nvidia-smi topo -m then \
        shows PHB for every pair, and NCCL, which goes by distance, switches GPUDirect RDMA off, \
        builds its rings blindly and may use peer copies across sockets. Nothing is broken: the \
        same machine without the hypervisor, or with a container in its place, shows PIX, NODE \
        and SYS.",
    explains: &[SymptomId::P2pAbsent, SymptomId::P2pBroken],
    specializes: &[],
    look_alikes: &[
        LookAlike { id: "p2p.unsupported-gpu", tell: "nvidia-smi topo -p2p r says CNS or NS" },
        LookAlike {
            id: "p2p.acs-iommu",
            tell: "on the host itself: ReqRedir+ on ports above the GPUs",
        },
        LookAlike {
            id: "fabric.vm-partition",
            tell: "SXM GPUs whose NVLinks stay down in the guest",
        },
    ],
    references: &[
        "https://github.com/NVIDIA/nccl/issues/1674",
        "https://github.com/NVIDIA/nccl/issues/1843",
        "https://github.com/NVIDIA/nccl/issues/1464",
        "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    let told = facts.p2p.completed_under(&[PeerSwitch::TopologyFile]);
    if let Some(run) = told {
        weighing.confirms("it works with a topology file for NCCL", &run.origin);
    }
    let guest = peers::guest(facts);
    match (peers::flat_matrix(facts), &guest) {
        (Some(origin), Some(guest)) => {
            weighing.supports(Strong, "every pair of GPUs is PHB", origin);
            weighing.supports(Moderate, "this is a guest of a hypervisor", guest);
        }
        (Some(origin), None) if facts.host.hypervisor.value().is_some() => {
            // Without a hypervisor the matrix shows what is there.
            if peers::refused(facts).is_none() && !complained(facts) {
                return Weighing::not_applicable();
            }
            weighing.rules_out("no hypervisor is here: the matrix shows the board itself", origin);
        }
        (Some(_), None) if complained(facts) => {
            weighing.needs(Need::Hypervisor);
        }
        (None, Some(_)) if complained(facts) => seen_tree(facts, &mut weighing),
        _ if told.is_none() => return Weighing::not_applicable(),
        _ => {}
    }
    complaints(facts, &mut weighing);
    weighing
}

fn complained(facts: &Facts) -> bool {
    !facts.p2p.given_up.is_empty() || !facts.p2p.slow.is_empty() || facts.p2p.broken().is_some()
}

/// A guest whose matrix is not flat sees the tree.
fn seen_tree(facts: &Facts, weighing: &mut Weighing) {
    match peers::gpu_links(facts).find(|link| link.value.2 != "PHB") {
        Some(link) => {
            let statement = format!("the guest sees {} between GPUs", link.value.2);
            weighing.rules_out(statement, &link.origin);
        }
        None => {
            weighing.needs(Need::Topology);
        }
    }
}

fn complaints(facts: &Facts, weighing: &mut Weighing) {
    if weighing.support.is_empty() {
        return;
    }
    if let Some(said) = facts.p2p.given_up.first() {
        weighing.supports(
            Moderate,
            "NCCL gives up the direct way because of the distance",
            &said.origin,
        );
    }
    if let Some(said) = facts.p2p.slow.first() {
        weighing.supports(Weak, "traffic between GPUs is said to be slow", &said.origin);
    }
    if let Some(refused) = peers::refused(facts) {
        weighing.objects(Moderate, refused.value, &refused.origin);
    }
}

fn remedy(_facts: &Facts) -> Remedy {
    Remedy::new(Impact::RestartsProcess, "the program in question")
        .step_to(
            Place::Hypervisor,
            "note the real tree: nvidia-smi topo -m, or lspci -tv, on the host",
            "which GPUs and NICs share a switch and a socket",
        )
        .step_to(
            Place::Guest,
            "write it as an XML file with the guest's own bus ids and export NCCL_TOPO_FILE=/etc/nccl/topo.xml",
            "a dump from the host has the host's bus ids and is of no use as it is",
        )
        .step_to(
            Place::Hypervisor,
            "or build the tree into the guest: pcie-expander buses (pxb-pcie) with NUMA nodes, one for each socket",
            "or run the work in a container on the host, which sees the real tree",
        )
        .undo("unset NCCL_TOPO_FILE")
        .verify("NCCL_DEBUG=INFO shows GPU Direct RDMA enabled and rings along the real switches")
        .will_not_help("nvidia_peermem: loaded or not, NCCL decides by distance")
        .will_not_help("another driver in the guest: it sees what the hypervisor shows")
}
