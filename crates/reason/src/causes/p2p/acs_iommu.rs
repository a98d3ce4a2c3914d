//! `p2p.acs-iommu`

use facts::model::p2p::{IommuMode, PeerResult, PeerSwitch};
use facts::{Facts, Layer};

use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::machine;
use crate::need::Need;
use crate::peers;
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "p2p.acs-iommu",
    layer: Layer::P2p,
    claim: "ACS redirect or a translating IOMMU breaks peer traffic that the driver calls fine",
    explanation: "Peer copies over PCIe go from one GPU's port to the other's. When access control \
        (ACS) redirects requests, they are sent up to the root complex, and an IOMMU that \
        translates finds no mapping for the other GPU's memory there: writes vanish or the copy \
        never ends. The driver does not look at either and goes on to advertise peer access, so \
        NCCL hangs in its first collective while every single GPU is fine. Linux switches ACS on \
        whenever it uses an IOMMU.",
    explains: &[
        SymptomId::P2pBroken,
        SymptomId::P2pAbsent,
        SymptomId::CudaContextFails,
        SymptomId::NvmlHangs,
    ],
    specializes: &[],
    look_alikes: &[
        LookAlike {
            id: "p2p.driver-overclaims",
            tell: "a GeForce board whose copies fail with the IOMMU off as well",
        },
        LookAlike {
            id: "p2p.unsupported-gpu",
            tell: "the driver's own matrix says CNS, GNS or NS, so that nothing tries a peer copy",
        },
        LookAlike {
            id: "fabric.nvlink-down",
            tell: "the GPUs are linked by NVLink, and a link is down",
        },
        LookAlike {
            id: "process.shm-small",
            tell: "NCCL names /dev/shm, and it hangs with peer copies off as well",
        },
    ],
    references: &[
        "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html",
        "https://github.com/NVIDIA/nccl/issues/2079",
        "https://github.com/NVIDIA/nccl/issues/257",
        "https://github.com/vllm-project/vllm/issues/51513",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    if !complained(facts) {
        return Weighing::not_applicable();
    }
    experiments(facts, &mut weighing);
    machine_state(facts, &mut weighing);
    against(facts, &mut weighing);
    weighing
}

/// Something is wrong with traffic between GPUs.
fn complained(facts: &Facts) -> bool {
    let switches = [PeerSwitch::P2pOff, PeerSwitch::AcsOff];
    facts.p2p.broken().is_some() || facts.p2p.completed_under(&switches).is_some()
}

/// What was tried, and what it says.
fn experiments(facts: &Facts, weighing: &mut Weighing) {
    let broken = facts.p2p.broken().is_some();
    if let Some(run) = facts.p2p.completed_under(&[PeerSwitch::AcsOff]) {
        weighing.confirms("it works once ACS does not redirect", &run.origin);
    }
    let iommu = [PeerSwitch::IommuOff, PeerSwitch::IommuPassthrough];
    if let Some(run) = facts.p2p.completed_under(&iommu) {
        let statement = "it works once the IOMMU does not translate";
        if broken {
            weighing.confirms(statement, &run.origin);
        } else {
            weighing.supports(Strong, statement, &run.origin);
        }
    }
    if let Some(run) = facts.p2p.completed_under(&[PeerSwitch::P2pOff]) {
        weighing.supports(Moderate, "it works with peer copies switched off", &run.origin);
    }
    if let Some(run) = facts.p2p.runs.iter().find(|run| run.value.result == PeerResult::WrongData) {
        weighing.supports(Moderate, "a peer copy arrives wrong", &run.origin);
    }
}

/// How ports and IOMMU stand.
fn machine_state(facts: &Facts, weighing: &mut Weighing) {
    match peers::redirecting_port(facts) {
        Some(port) if port.value.above_gpu == Some(true) => {
            let name = port.value.port.map_or_else(String::new, |port| format!(" {port}"));
            let statement = format!("the port{name} above a GPU redirects peer requests");
            weighing.supports(Strong, statement, &port.origin);
        }
        Some(port) => {
            weighing.supports(Strong, "a port redirects peer requests (ReqRedir+)", &port.origin);
        }
        None if facts.p2p.ports.is_empty() => {
            weighing.needs(Need::AccessControl);
        }
        None => {}
    }
    match peers::iommu(facts) {
        Some((IommuMode::Translated, said, origin)) => {
            weighing.supports(Moderate, said, &origin);
        }
        Some(_) => {}
        None => {
            weighing.needs(Need::IommuMode);
        }
    }
    if let Some(event) = facts.log.first(&["DMAR_FAULT", "AMDVI_FAULT"]) {
        let gpu = facts.pci.gpus().any(|gpu| gpu.address.is_some() && gpu.address == event.device);
        let strength = if gpu || event.text.contains("nvidia") { Strong } else { Weak };
        weighing.supports(strength, "the IOMMU refused a device's access", &event.origin);
    }
    match peers::advertised(facts) {
        Some(seen) => {
            weighing.supports(Weak, seen.value, &seen.origin);
        }
        None => {
            weighing.needs(Need::PeerCopy);
        }
    }
}

fn against(facts: &Facts, weighing: &mut Weighing) {
    if let Some(refused) = peers::refused(facts) {
        weighing.rules_out(format!("{}: no peer copy is tried", refused.value), &refused.origin);
    }
    let cured = weighing.support.iter().any(|piece| piece.strength == crate::Strength::Decisive);
    if let Some(other) = facts.p2p.other_gpus_work.first().filter(|_| !cured) {
        weighing.rules_out("other GPUs work in the same machine", &other.origin);
    }
    let passes = match peers::iommu(facts) {
        Some((IommuMode::Off | IommuMode::Passthrough, said, origin)) => Some((said, origin)),
        _ => None,
    };
    match (peers::ports_clear(facts), passes) {
        (Some(origin), Some((said, _))) => {
            weighing.rules_out(format!("no port above a GPU redirects, and {said}"), origin);
        }
        (Some(origin), None) => {
            weighing.objects(Moderate, "no port above a GPU redirects", origin);
        }
        (None, Some((said, origin))) => {
            weighing.objects(Moderate, said, &origin);
        }
        (None, None) => {}
    }
    if let Some(run) = facts.p2p.broken_under(&[PeerSwitch::P2pOff]) {
        weighing.objects(Strong, "it fails with peer copies switched off as well", &run.origin);
    }
    let cures = [PeerSwitch::AcsOff, PeerSwitch::IommuOff];
    if let Some(run) = facts.p2p.broken_under(&cures) {
        weighing.objects(Strong, "it fails without ACS or IOMMU as well", &run.origin);
    }
    let mut links = peers::gpu_links(facts);
    if let Some(first) = links.next()
        && first.value.2.starts_with("NV")
        && links.all(|link| link.value.2.starts_with("NV"))
    {
        weighing.objects(Strong, "the GPUs are linked by NVLink", &first.origin);
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let place = machine::kernel_place(facts);
    let rebuild = match machine::distribution(facts) {
        machine::Distribution::Fedora | machine::Distribution::Rhel => {
            "grubby --update-kernel=ALL --args='iommu=pt'"
        }
        machine::Distribution::Proxmox => {
            "add iommu=pt to /etc/kernel/cmdline (or GRUB_CMDLINE_LINUX) and run proxmox-boot-tool refresh"
        }
        _ => "add iommu=pt to GRUB_CMDLINE_LINUX in /etc/default/grub and run update-grub",
    };
    Remedy::new(Impact::Reboots, "everything, for the reboot; ACS off weakens isolation of guests")
        .step_to(
            place,
            "for bridge in $(lspci -d ::0604 | cut -d' ' -f1); do setpci -s $bridge ECAP_ACS+6.w=0000; done",
            "takes effect at once, until the next boot; ports without ACS say so and go on",
        )
        .step_to(place, rebuild, "identity mapping; or switch IOMMU or ACS off in the firmware setup")
        .step_to(place, "reboot", "for the kernel's command line")
        .step_to(
            Place::Program,
            "until then: NCCL_P2P_DISABLE=1, and --disable-custom-all-reduce for vLLM",
            "slower, and only for what reads them",
        )
        .undo("remove iommu=pt, set ACS as before, reboot")
        .verify("simpleP2P of the CUDA samples passes, and the collective ends without NCCL_P2P_DISABLE")
        .will_not_help("another NCCL or model: plain copies between the GPUs fail")
        .will_not_help(
            "NCCL_P2P_DISABLE=1 alone: other users of peer copies, such as vLLM's custom all-reduce, still hang",
        )
}
