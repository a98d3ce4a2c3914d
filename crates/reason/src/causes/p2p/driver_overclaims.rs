//! `p2p.driver-overclaims`

use facts::model::p2p::{IommuMode, PeerResult, PeerSwitch};
use facts::version::DriverVersion;
use facts::{Facts, Layer, Seen};

use super::without_peer_copies;
use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::machine;
use crate::need::Need;
use crate::remedy::{Impact, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;
use crate::{peers, readings};

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "p2p.driver-overclaims",
    layer: Layer::P2p,
    claim: "the driver advertises peer access that does not work on this GPU",
    explanation: "GeForce boards since Ada have no working peer access over PCIe, yet some drivers \
        (early 525, some of 545 to 565) answer that peers can be accessed, and patched drivers do \
        so on purpose. NCCL believes it: the first collective hangs, or copies arrive wrong, and \
        the wedged GPUs can take nvidia-smi with them until a reboot. Older GPUs in the same slots \
        work, since the driver refuses peer access for them and NCCL goes through host memory.",
    explains: &[SymptomId::P2pBroken, SymptomId::NvmlHangs, SymptomId::CudaContextFails],
    specializes: &[],
    look_alikes: &[
        LookAlike {
            id: "p2p.acs-iommu",
            tell: "a port above the GPU has ReqRedir+, or it works with the IOMMU off",
        },
        LookAlike {
            id: "p2p.unsupported-gpu",
            tell: "the driver's matrix says CNS or NS: it claims nothing",
        },
    ],
    references: &[
        "https://github.com/NVIDIA/nccl-tests/issues/117",
        "https://github.com/dmlc/xgboost/issues/11242",
        "https://github.com/tinygrad/open-gpu-kernel-modules",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let complaint = facts.p2p.broken().or(facts.p2p.completed_under(&[PeerSwitch::P2pOff]));
    let (Some(complaint), Some(board)) = (complaint, board(facts)) else {
        return Weighing::not_applicable();
    };
    let mut weighing = Weighing::new();
    weighing.supports(
        Moderate,
        format!("{} has no working peer access over PCIe", board.value),
        &board.origin,
    );
    weighing.supports(
        Weak,
        format!("{} does not do what it should", complaint.value.what),
        &complaint.origin,
    );
    support(facts, &mut weighing);
    against(facts, &mut weighing);
    weighing
}

/// A consumer board of a generation whose stock driver refuses peer access.
fn board(facts: &Facts) -> Option<Seen<String>> {
    peers::products(facts).into_iter().find_map(|seen| {
        let (name, product) = seen.value;
        let architecture = product?.architecture;
        let recent = architecture.starts_with("Ada") || architecture.starts_with("Blackwell");
        (recent && peers::is_consumer(&name)).then(|| Seen::new(name, seen.origin))
    })
}

fn support(facts: &Facts, weighing: &mut Weighing) {
    match peers::advertised(facts) {
        Some(seen) => {
            weighing.supports(Moderate, seen.value, &seen.origin);
        }
        None => {
            weighing.needs(Need::PeerStatus);
        }
    }
    if let Some(run) = facts.p2p.runs.iter().find(|run| run.value.result == PeerResult::WrongData) {
        weighing.supports(Strong, "a peer copy arrives wrong", &run.origin);
    } else {
        weighing.needs(Need::PeerCopy);
    }
    if let Some(run) = facts.p2p.completed_under(&[PeerSwitch::P2pOff]) {
        weighing.supports(Moderate, "it works with peer copies switched off", &run.origin);
    }
    if let Some(run) = facts.p2p.completed_under(&[PeerSwitch::OtherDriver]) {
        weighing.supports(Strong, "it works with another driver version", &run.origin);
    }
    if let Some(other) = facts.p2p.other_gpus_work.first() {
        weighing.supports(Strong, "other GPUs work in the same machine", &other.origin);
    }
    if let Some(driver) = readings::driver_version(facts).filter(|seen| is_known(&seen.value)) {
        weighing.supports(
            Moderate,
            format!("driver {} is one of those that claim it", driver.value),
            &driver.origin,
        );
    }
}

/// Branches of which it was reported, up to the release in which it was gone.
fn is_known(version: &DriverVersion) -> bool {
    match version.branch() {
        520 | 545 | 560 => true,
        525 => DriverVersion::parse("525.105.17").is_some_and(|fixed| *version < fixed),
        _ => false,
    }
}

fn against(facts: &Facts, weighing: &mut Weighing) {
    if let Some(refused) = peers::refused(facts) {
        weighing.rules_out(format!("{}: it claims nothing", refused.value), &refused.origin);
    }
    let cures = [PeerSwitch::AcsOff, PeerSwitch::IommuOff, PeerSwitch::IommuPassthrough];
    if let Some(run) = facts.p2p.completed_under(&cures) {
        weighing.rules_out("the same driver works without ACS or IOMMU", &run.origin);
    }
    if let Some(port) = peers::redirecting_port(facts) {
        weighing.objects(Moderate, "a port redirects peer requests", &port.origin);
    }
    if let Some((IommuMode::Translated, said, origin)) = peers::iommu(facts) {
        weighing.objects(Weak, said, &origin);
    }
    if let Some(run) = facts.p2p.broken_under(&[PeerSwitch::P2pOff])
        && facts.p2p.completed_under(&[PeerSwitch::P2pOff]).is_none()
    {
        weighing.objects(Moderate, "it fails with peer copies switched off as well", &run.origin);
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let place = machine::kernel_place(facts);
    let mut remedy = without_peer_copies();
    remedy.impact = Impact::Reboots;
    remedy
        .step_to(
            place,
            "reboot, when an earlier run has hung",
            "wedged GPUs stay so, and make every later try look like a failure",
        )
        .step_to(
            place,
            "install the newest driver of a supported branch",
            "it claims nothing it cannot do",
        )
        .undo("unset NCCL_P2P_DISABLE; install the former driver again")
        .verify("after a reboot all_reduce_perf -g 2 ends; nvidia-smi topo -p2p r says NS or CNS")
        .will_not_help("ACS or IOMMU settings: the same slots work with other GPUs")
        .will_not_help("judging NCCL_P2P_DISABLE=1 on a machine that an earlier run has wedged")
}
