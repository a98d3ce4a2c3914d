//! `fabric.nvlink-down`

use std::collections::BTreeMap;

use facts::model::fabric::ManagerLine;
use facts::model::p2p::PeerSwitch;
use facts::{Facts, Layer};

use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::gpu_state;
use crate::need::Need;
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::{SymptomId, links_down};
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "fabric.nvlink-down",
    layer: Layer::Fabric,
    claim: "an NVLink is down or faulted",
    explanation: "A link that does not train, or fails under load, shows as fewer active links \
        than the board has, as Xid 74 (up to Hopper) or 144 to 150 (fifth NVLink), or as an SXid of \
        a switch. Whatever uses the link then fails or waits: NCCL freezes, queries of link states \
        take seconds or minutes, sometimes the whole machine stands. On workstations it is mostly a \
        bridge that is not fully seated; on SXM boards a GPU, a switch or the base board. A GPU \
        whose links are all inactive has no bridge, which is no fault.",
    explains: &[
        SymptomId::P2pBroken,
        SymptomId::P2pAbsent,
        SymptomId::GpuFaulted,
        SymptomId::NvmlHangs,
        SymptomId::CudaContextFails,
        SymptomId::CudaInitFails,
    ],
    specializes: &["gpu.xid"],
    look_alikes: &[
        LookAlike {
            id: "p2p.acs-iommu",
            tell: "the GPUs have no NVLink; ReqRedir+ on the ports above them",
        },
        LookAlike {
            id: "fabric.manager-missing",
            tell: "every link is inactive, and cuInit answers 802",
        },
        LookAlike { id: "fabric.multicast", tell: "plain traffic works, and only NVLS fails" },
        LookAlike {
            id: "pci.fell-off-bus",
            tell: "Xid 79 comes first: the GPU is gone, and its links with it",
        },
    ],
    references: &[
        "https://docs.nvidia.com/deploy/xid-errors/",
        "https://github.com/NVIDIA/nccl/issues/340",
        "https://github.com/NVIDIA/nccl/issues/557",
        "https://github.com/Azure/azhpc-diagnostics/issues/73",
    ],
    weigh,
    remedy,
};

/// The Xids of NVLink (xid table).
fn is_nvlink(xid: u32) -> bool {
    matches!(xid, 74 | 144..=150 | 155)
}

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    log(facts, &mut weighing);
    states(facts, &mut weighing);
    statements(facts, &mut weighing);
    if weighing.support.is_empty() {
        if facts.p2p.broken().is_some()
            && crate::peers::gpu_links(facts).any(|link| link.value.2.starts_with("NV"))
        {
            weighing.needs(Need::NvLinks);
        }
        return weighing;
    }
    if let Some((79, event)) = facts.log.xids().next() {
        weighing.objects(Strong, "Xid 79 came first: a GPU fell off the bus", &event.origin);
    }
    weighing
}

/// Xids and SXids. One that another one caused is no witness of its own.
fn log(facts: &Facts, weighing: &mut Weighing) {
    if let Some((xid, event)) = facts.log.xids().find(|(xid, _)| is_nvlink(*xid)) {
        weighing.supports(
            Strong,
            format!("the kernel log has Xid {xid}, an error of NVLink"),
            &event.origin,
        );
        let first = facts.log.xids().next().is_some_and(|(first, _)| first == xid);
        if first {
            weighing.supports(
                Moderate,
                format!("Xid {xid} is the first of its kind"),
                &event.origin,
            );
        }
    }
    let caused = facts.log.xids().find_map(|(_, event)| {
        let (_, cause) = event.text.split_once("caused by previous Xid ")?;
        let number = cause.split(|ch: char| !ch.is_ascii_digit()).next()?.parse().ok()?;
        is_nvlink(number).then_some((number, event))
    });
    if let Some((xid, event)) = caused {
        weighing.supports(
            Strong,
            format!("a channel was ended because of Xid {xid}"),
            &event.origin,
        );
    }
    if let Some(event) = facts.log.first(&["NVLINK_TRAIN"]) {
        weighing.supports(Strong, "a link failed to train", &event.origin);
    }
    let fatal = gpu_state::fatal_sxid(facts);
    if let Some(event) = fatal.or_else(|| facts.log.first(&["NVSWITCH_SXID"])) {
        let sxid = event.get("sxid").unwrap_or("?");
        let strength = if fatal.is_some() { Strong } else { Moderate };
        weighing.supports(strength, format!("a switch reports SXid {sxid}"), &event.origin);
        if fatal.is_some() {
            weighing.supports(Weak, "the driver calls it fatal", &event.origin);
        }
    }
}

/// Whether the links of each GPU are numbered without a gap, as in a list from which no line was
/// taken.
fn without_gap(facts: &Facts) -> bool {
    let mut next: BTreeMap<Option<u32>, u32> = BTreeMap::new();
    facts.fabric.links.iter().all(|link| {
        let next = next.entry(link.value.gpu).or_default();
        let follows = link.value.link == *next;
        *next += 1;
        follows
    })
}

/// The links as they are listed.
fn states(facts: &Facts, weighing: &mut Weighing) {
    if let Some((down, all, origin)) = links_down(facts) {
        weighing.confirms(format!("{down} of {all} NVLinks are down, and others are up"), &origin);
    } else if let Some(first) = facts.fabric.links.first()
        && facts.fabric.links.iter().all(|link| link.value.active)
    {
        let statement = format!("all {} NVLinks are active", facts.fabric.links.len());
        if weighing.support.is_empty() && without_gap(facts) {
            weighing.rules_out(statement, &first.origin);
        } else if weighing.support.is_empty() {
            weighing.rules_out_by_all(statement, &first.origin);
        } else {
            weighing.objects(Weak, statement, &first.origin);
        }
    }
    let fault = facts.fabric.manager_lines.iter().find_map(|line| match &line.value {
        ManagerLine::LinkFault(said) => Some((said, &line.origin)),
        _ => None,
    });
    if let Some((said, origin)) = fault {
        weighing.supports(Strong, format!("the fabric manager says: {said}"), origin);
    }
}

fn statements(facts: &Facts, weighing: &mut Weighing) {
    let told = facts.fabric.link_statements.first();
    if let Some(said) = told {
        weighing.supports(Strong, "links are said to be lacking, or slow to answer", &said.origin);
    }
    if let Some(run) = facts.p2p.completed_under(&[PeerSwitch::BridgeChanged]) {
        let broken = facts.p2p.broken().is_some() || told.is_some();
        let statement = "it works once the NVLink bridge is out, or fully in";
        if broken {
            weighing.supports(Strong, statement, &run.origin);
        } else {
            weighing.supports(Moderate, statement, &run.origin);
        }
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let bridge = facts.p2p.completed_under(&[PeerSwitch::BridgeChanged]).is_some()
        || crate::peers::products(facts)
            .iter()
            .any(|seen| crate::peers::is_consumer(&seen.value.0));
    let remedy = Remedy::new(Impact::Hardware, "the machine, while the hardware is looked at");
    let remedy = if bridge {
        remedy.step_to(
            Place::Machine,
            "power off, take the bridge out, look for what keeps it from going in fully (coolers, its own case), seat it anew",
            "or leave it out: GPUs then talk over PCIe",
        )
    } else {
        remedy
            .step_to(
                Place::Here,
                "nvidia-smi nvlink -e; nvidia-smi nvlink --status",
                "which links of which GPU, and with which errors",
            )
            .step_to(
                Place::Here,
                "stop all GPU programs; nvidia-smi -r (all GPUs that are linked together)",
                "links train anew; restart nvidia-fabricmanager after it",
            )
            .step_to(
                Place::Machine,
                "when it comes back on the same link: have the GPU or the base board replaced",
                "with nvidia-bug-report.log.gz for the vendor",
            )
    };
    remedy
        .undo("nothing to undo")
        .verify("nvidia-smi nvlink --status shows every link with its speed; all_reduce_perf ends")
        .will_not_help("another NCCL or framework: the link is down for everyone")
        .will_not_help("IOMMU or ACS settings: NVLink does not pass through them")
}
