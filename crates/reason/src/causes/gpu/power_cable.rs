//! `gpu.power-cable`

use facts::{Facts, Layer};

use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong};
use crate::readings::{self};
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;
use crate::xid_burst;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "gpu.power-cable",
    layer: Layer::Gpu,
    claim: "the GPU lacks its auxiliary power",
    explanation: "The card feels that its power connector is empty or not fully in, and the driver \
        refuses to start it. It is on the bus all the same, since the slot alone powers that much. \
        Splitters, a half-seated 12V-2x6 plug and server backplanes without the cable for the GPU \
        are the usual reasons.",
    explains: &[
        SymptomId::GpuFaulted,
        SymptomId::GpuMissing,
        SymptomId::NvmlFails,
        SymptomId::DriverAbsent,
        SymptomId::CudaInitFails,
        SymptomId::CudaContextFails,
        SymptomId::FrameworkNoGpu,
    ],
    specializes: &["module.rm-init-failed", "gpu.xid", "gpu.needs-reset", "gpu.vbios"],
    look_alikes: &[
        LookAlike {
            id: "pci.fell-off-bus",
            tell: "the GPU starts and goes under load: the supply gives way, and the cable is in",
        },
        LookAlike {
            id: "gpu.vbios",
            tell: "the card's own firmware does not finish its boot, and no line speaks of power",
        },
    ],
    references: &[
        "https://docs.nvidia.com/deploy/xid-errors/",
        "https://docs.nvidia.com/deploy/nvml-api/",
        "src/nvidia/arch/nvalloc/unix/src/osinit.c",
    ],
    weigh,
    remedy,
};

/// NVML_ERROR_INSUFFICIENT_POWER.
const NVML_INSUFFICIENT_POWER: i64 = 8;

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    if let Some(origin) = readings::logged(facts, &["POWER_CABLE"]) {
        weighing.confirms("the driver says that the power cables are not connected", origin);
    }
    for burst in xid_burst::bursts(facts) {
        if let Some(xid) = burst.leading().filter(|lead| lead.number == 54) {
            weighing.supports(Strong, xid_burst::named(54), &xid.event.origin);
            weighing.supports(Moderate, "no other Xid came before it", &xid.event.origin);
        }
    }
    if let Some(origin) = readings::nvml_failed_with(facts, NVML_INSUFFICIENT_POWER) {
        weighing.supports(Strong, "NVML answers 8, insufficient external power", &origin);
    }
    let query = facts.nvml.queries.iter().find(|query| {
        query.result == facts::model::nvml::NvmlResult::Code(NVML_INSUFFICIENT_POWER)
    });
    if let Some(query) = query {
        weighing.supports(Moderate, "a GPU answers 8, insufficient external power", &query.origin);
    }
    let triple = facts.log.with("RMINIT_FAILED").find(|event| event.get("status") == Some("0x1c"));
    if let Some(event) = triple {
        let statement = "RmInitAdapter fails with NV_ERR_INSUFFICIENT_POWER";
        weighing.supports(Strong, statement, &event.origin);
    }
    if let Some(origin) = readings::cuda_works(facts).filter(|_| weighing.support.is_empty()) {
        weighing.rules_out("cuInit answers 0", origin);
    }
    weighing
}

fn remedy(_: &Facts) -> Remedy {
    Remedy::new(Impact::Hardware, "everything on the machine while it is off")
        .step_to(
            Place::Machine,
            "switch off, unplug, and push every auxiliary power plug of the card in until it clicks",
            "one sense pin without contact is enough",
        )
        .step_to(
            Place::Machine,
            "one cable of the supply for each plug: no splitters, no adapters from other makers",
            "the card reads from the plug how much power it may draw",
        )
        .step_to(
            Place::Machine,
            "in a server, the GPU power cable that belongs to that slot and card",
            "boards of servers have cables of their own for each kind of card",
        )
        .undo("nothing to undo")
        .verify("dmesg has no line about power cables, and nvidia-smi lists the GPU")
        .will_not_help("another driver: the card itself reports the missing power")
        .will_not_help("lowering the power limit: the driver never comes so far")
}
