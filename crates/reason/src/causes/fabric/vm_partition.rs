//! `fabric.vm-partition`

use facts::{Facts, Layer, Observed};

use super::{completed, no_switch_on_bus, switch_board, unfinished};
use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::need::Need;
use crate::peers;
use crate::readings::{self, code};
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;
use facts::model::p2p::PeerSwitch;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "fabric.vm-partition",
    layer: Layer::Fabric,
    claim: "a guest shares NVSwitches, and its partition is not activated",
    explanation: "When a machine's SXM GPUs are dealt to several guests, the switches can belong \
        to none of them alone: a fabric manager on the host, or in a service guest, must be in \
        shared mode and activate a partition for each guest before it starts. Without that the \
        guest's GPUs are never registered: nvidia-smi lists them, the fabric state stays 'In \
        Progress', cuInit answers 802 or NCCL finds no way between the GPUs. A fabric manager \
        inside such a guest has no switch to manage and ends.",
    explains: &[
        SymptomId::CudaInitFails,
        SymptomId::CudaInitHangs,
        SymptomId::FrameworkNoGpu,
        SymptomId::P2pBroken,
        SymptomId::P2pAbsent,
        SymptomId::CudaContextFails,
    ],
    specializes: &["fabric.manager-missing"],
    look_alikes: &[
        LookAlike { id: "fabric.manager-missing", tell: "switches are on this machine's own bus" },
        LookAlike {
            id: "fabric.manager-misconfigured",
            tell: "no hypervisor; the switches are the machine's own",
        },
        LookAlike {
            id: "platform.cc-not-ready",
            tell: "confidential computing is on, and its ready state is off",
        },
    ],
    references: &[
        "https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/#shared-nvswitch-virtualization-model",
        "https://github.com/NVIDIA/nccl-tests/issues/260",
        "https://github.com/NVIDIA/kubevirt-gpu-device-plugin/issues/133",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let (Some(guest), Some(board)) = (peers::guest(facts), switch_board(facts)) else {
        return Weighing::not_applicable();
    };
    let answer = readings::init_failed_with(facts, code::SYSTEM_NOT_READY);
    let waits = unfinished(facts);
    let status = refused_status(facts);
    let broken = facts.p2p.broken();
    if answer.is_none() && waits.is_none() && status.is_none() && broken.is_none() {
        return Weighing::not_applicable();
    }
    let mut weighing = Weighing::new();
    weighing.supports(Moderate, "this is a guest of a hypervisor", &guest);
    let statement = format!("{} is a board for NVSwitch machines", board.value);
    weighing.supports(Weak, statement, &board.origin);
    if let Some(trial) = answer {
        weighing.supports(Moderate, "cuInit answers 802, system not ready", &trial.origin);
    }
    if let Some(state) = waits {
        let statement = format!("the GPUs' fabric state is '{}'", state.value);
        weighing.supports(Moderate, statement, &state.origin);
    }
    if let Some((said, origin)) = status {
        weighing.supports(Strong, format!("the GPUs' fabric status is '{said}'"), &origin);
    }
    if let Some(run) = broken {
        weighing.supports(Weak, format!("{} fails", run.value.what), &run.origin);
    }
    switches(facts, &mut weighing);
    if let Some(origin) = completed(facts) {
        weighing.rules_out_by_all("the GPUs' fabric state is 'Completed'", origin);
    } else if facts.nvml.gpus.iter().all(|gpu| gpu.value.fabric_state.is_none()) {
        weighing.needs(Need::FabricState);
    }
    weighing
}

/// What a GPU answers whose partition nobody has activated.
fn refused_status(facts: &Facts) -> Option<(String, facts::Origin)> {
    facts.nvml.gpus.iter().find_map(|gpu| {
        let status = gpu.value.fabric_status.as_deref()?;
        let refused = matches!(status, "Insufficient Permissions" | "Insufficient Resources");
        refused.then(|| (status.to_owned(), gpu.origin.clone()))
    })
}

/// Where the switches are.
fn switches(facts: &Facts, weighing: &mut Weighing) {
    if let Some(said) = facts.fabric.switches_elsewhere.first() {
        weighing.supports(Strong, "the switches belong to the host or another guest", &said.origin);
    }
    let own = facts.pci.nvswitches().next().is_some();
    if let (true, Observed::Seen(seen)) = (own, &facts.pci.devices) {
        weighing.objects(Strong, "switches are on this guest's own bus", &seen.origin);
    } else if let Some(origin) = no_switch_on_bus(facts) {
        weighing.supports(Moderate, "no switch is on this guest's bus", origin);
    } else if facts.fabric.switches_elsewhere.is_empty() {
        weighing.needs(Need::PciDevices);
    }
    if let Some(run) = facts.p2p.broken_under(&[PeerSwitch::P2pOff]) {
        weighing.supports(Weak, "it fails with peer copies switched off as well", &run.origin);
    }
}

fn remedy(_facts: &Facts) -> Remedy {
    Remedy::new(Impact::RestartsService, "the guests that use these GPUs, which start anew")
        .step_to(
            Place::Hypervisor,
            "leave the NVSwitches on the host, bound to the nvidia driver; pass only GPUs through",
            "a switch can be in one guest alone",
        )
        .step_to(
            Place::Hypervisor,
            "set FABRIC_MODE=1 in /usr/share/nvidia/nvswitch/fabricmanager.cfg; systemctl restart nvidia-fabricmanager",
            "shared mode; 2 is for vGPU",
        )
        .step_to(
            Place::Hypervisor,
            "fmpm -l; fmpm -a PARTITION before the guest starts, fmpm -d PARTITION after it ended",
            "the partition whose GPUs are this guest's",
        )
        .undo("FABRIC_MODE=0 and a restart, when all GPUs go to one system again")
        .verify("in the guest nvidia-smi -q | grep -A2 Fabric prints Completed and Success")
        .will_not_help("a fabric manager inside the guest: it has no switch to manage")
        .will_not_help("NCCL_P2P_DISABLE=1: the GPUs are not registered, whatever NCCL does")
}
