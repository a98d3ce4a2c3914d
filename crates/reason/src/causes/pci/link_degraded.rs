//! `pci.link-degraded`

use facts::{Facts, Layer};

use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::gpu_state;
use crate::machine;
use crate::need::Need;
use crate::readings;
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;
use crate::xid_burst;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "pci.link-degraded",
    layer: Layer::Pci,
    claim: "the PCIe link runs below what both ends can do, or reports errors",
    explanation: "A link that makes errors sends again what was lost, and when that does not help it \
        goes down to fewer lanes or a lower generation, so that copies take many times as long. The \
        kernel reports such errors as AER lines, the driver counts replays, and a fatal one takes the \
        GPU from the bus. An idle GPU lowers its link to the first generation to save power and \
        raises it again under load, so that only a GPU at work can be judged. A slot that has fewer \
        lanes than the card is no fault either.",
    explains: &[SymptomId::GpuFaulted, SymptomId::CudaContextFails, SymptomId::P2pBroken],
    specializes: &["gpu.xid"],
    look_alikes: &[
        LookAlike { id: "pci.fell-off-bus", tell: "the GPU no longer answers at all (Xid 79)" },
        LookAlike {
            id: "p2p.acs-iommu",
            tell: "the links are whole, and only copies between GPUs are slow or wrong",
        },
        LookAlike { id: "gpu.xid", tell: "an Xid without any error of the link" },
    ],
    references: &[
        "https://docs.kernel.org/PCI/pcieaer-howto.html",
        "https://docs.nvidia.com/deploy/xid-errors/",
        "https://github.com/wilicc/gpu-burn/issues/1",
        "drivers/pci/pcie/aer.c",
    ],
    weigh,
    remedy,
};

/// Replays since the last reset that are no longer a handful.
const MANY_REPLAYS: u64 = 10_000;

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    if let Some(slow) = gpu_state::slow_link(facts) {
        weighing.supports(Strong, slow.value, &slow.origin);
        weighing.supports(Weak, "the GPU is at work, so this is not its idle state", &slow.origin);
    }
    if let Some(errors) = gpu_state::link_errors(facts) {
        let uncorrected =
            ["Uncorrect", "fatal", "can't recover"].iter().any(|word| errors.value.contains(word));
        weighing.supports(Strong, errors.value, &errors.origin);
        if uncorrected {
            weighing.supports(
                Weak,
                "an error that could not be repaired by sending again",
                &errors.origin,
            );
        }
    }
    xids(facts, &mut weighing);
    replays(facts, &mut weighing);
    if weighing.support.is_empty() {
        whole(facts, &mut weighing);
        return weighing;
    }
    narrow(facts, &mut weighing);
    gone(facts, &mut weighing);
    if facts.nvml.gpus.iter().all(|gpu| gpu.value.health.link.width.is_none()) {
        weighing.needs(Need::LinkAtWork);
    }
    weighing
}

/// Xids that corrupted transfers (32, 80) or the link itself (167, 176) bring.
fn xids(facts: &Facts, weighing: &mut Weighing) {
    for burst in xid_burst::bursts(facts) {
        let Some(lead) = burst.leading() else { continue };
        let strength = match lead.number {
            167 | 176 => Strong,
            32 | 80 => Moderate,
            _ => continue,
        };
        weighing.supports(strength, xid_burst::named(lead.number), &lead.event.origin);
        if lead.number == 176 || lead.number == 167 {
            weighing.supports(Moderate, "the driver itself blames the link", &lead.event.origin);
        }
    }
}

fn replays(facts: &Facts, weighing: &mut Weighing) {
    let many = facts.nvml.gpus.iter().find_map(|gpu| {
        let replays = gpu.value.health.link.replays.filter(|replays| *replays >= MANY_REPLAYS)?;
        Some((replays, &gpu.origin))
    });
    if let Some((replays, origin)) = many {
        weighing.supports(
            Strong,
            format!("the driver counts {replays} replays on the link"),
            origin,
        );
    }
}

/// Fewer lanes than the device has: a hint beside errors, and by itself the mark of a small slot.
fn narrow(facts: &Facts, weighing: &mut Weighing) {
    for gpu in facts.pci.gpus() {
        if let Some(link) = gpu.link.as_seen()
            && link.value.current_width < link.value.max_width
        {
            let (now, most) = (link.value.current_width, link.value.max_width);
            weighing.supports(Weak, format!("the link has x{now} of x{most} lanes"), &link.origin);
        }
    }
}

/// A GPU that is gone is past this.
fn gone(facts: &Facts, weighing: &mut Weighing) {
    let fell = facts.log.xids().find(|(xid, _)| *xid == xid_burst::OFF_THE_BUS);
    if let Some((_, event)) = fell {
        weighing.objects(Moderate, "the GPU has fallen off the bus since", &event.origin);
    }
}

/// Full width and speed under load.
fn whole(facts: &Facts, weighing: &mut Weighing) {
    let mut first = None;
    for gpu in &facts.nvml.gpus {
        let link = &gpu.value.health.link;
        let (Some(width), Some(most)) = (link.width, link.width_max) else { return };
        let generation = link.generation.is_some() && link.generation == link.generation_max;
        if width < most || !generation {
            return;
        }
        first = first.or(Some(&gpu.origin));
    }
    if let Some(origin) =
        first.filter(|_| readings::logged(facts, &["AER_BUS", "AER_REPORT"]).is_none())
    {
        weighing.rules_out("the links run at full width and generation", origin);
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let place = machine::kernel_place(facts);
    let address = gpu_state::cards(facts).first().map_or("BB:00.0".to_owned(), ToString::to_string);
    Remedy::new(Impact::Hardware, "everything on the machine while it is off")
        .step_to(
            place,
            "nvidia-smi --query-gpu=pstate,utilization.gpu,pcie.link.gen.current,pcie.link.gen.max,pcie.link.width.current,pcie.link.width.max --format=csv, while a program works on the GPU",
            "an idle link is low by design",
        )
        .step_to(
            place,
            format!("lspci -vvs {address} | grep -E 'LnkCap:|LnkSta:|DevSta:', and the same for the port above it"),
            "tells which of the two ends is the limit",
        )
        .step_to(
            Place::Machine,
            "reseat the card and its riser or retimer, clean the contacts, try another slot; set the slot's generation by hand in the firmware setup",
            "errors of the physical layer are a matter of the signal's path",
        )
        .step_to(
            place,
            "add pcie_aspm=off to the kernel command line, as a test",
            "some boards lose packets when the link changes its power state",
        )
        .undo("take pcie_aspm=off out again; set the slot's generation back to automatic")
        .verify("under load the link is at its most, and no new AER lines come")
        .will_not_help("pci=noaer: it hides the lines and leaves the errors")
        .will_not_help("another driver: the errors are counted by the hardware")
}
