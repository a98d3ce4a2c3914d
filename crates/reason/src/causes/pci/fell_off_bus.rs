//! `pci.fell-off-bus`

use facts::model::nvml::NvmlResult;
use facts::{Facts, Layer};

use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::gpu_state;
use crate::machine;
use crate::need::Need;
use crate::readings::{self, code};
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;
use crate::xid_burst::{self, BurstXid, OFF_THE_BUS};

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "pci.fell-off-bus",
    layer: Layer::Pci,
    claim: "the GPU no longer answers on PCI",
    explanation: "The GPU was there and its registers now read as all ones: the driver logs Xid 79, \
        'GPU has fallen off the bus', or finds it gone when it starts. As the first Xid of its burst \
        this is a matter of power, seat, riser, temperature or the slot: an ageing power supply that \
        gives way at the peaks of a load is the classic. As a later Xid it is the consequence of the \
        first, and after a line about D3cold it is the consequence of a GPU that was put to sleep \
        and could not be woken. Software cannot bring such a GPU back without a power cycle.",
    explains: &[
        SymptomId::GpuFaulted,
        SymptomId::GpuMissing,
        SymptomId::NvmlFails,
        SymptomId::NvmlHangs,
        SymptomId::DriverAbsent,
        SymptomId::CudaInitFails,
        SymptomId::CudaInitHangs,
        SymptomId::CudaContextFails,
        SymptomId::FrameworkNoGpu,
    ],
    specializes: &["pci.no-gpu", "module.rm-init-failed", "gpu.needs-reset", "gpu.xid"],
    look_alikes: &[
        LookAlike { id: "pci.power-state", tell: "a line about D3cold stands before Xid 79" },
        LookAlike { id: "firmware.gsp-timeout", tell: "Xid 119 or 120 stands before Xid 79" },
        LookAlike { id: "gpu.xid", tell: "an Xid of another kind stands before Xid 79" },
        LookAlike {
            id: "pci.link-degraded",
            tell: "the link reports errors, and the GPU still answers",
        },
        LookAlike {
            id: "pci.no-gpu",
            tell: "the bus never showed the GPU since boot, and no line of the driver names it",
        },
    ],
    references: &[
        "https://docs.nvidia.com/deploy/xid-errors/",
        "https://github.com/pop-os/pop/issues/3363",
        "https://github.com/NVIDIA/open-gpu-kernel-modules/issues/507",
        "https://github.com/NVIDIA/NVSentinel/issues/155",
        "kernel-open/nvidia/nv.c (nv_check_gpu_state)",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    xids(facts, &mut weighing);
    lines(facts, &mut weighing);
    answers(facts, &mut weighing);
    if weighing.support.is_empty() {
        reached(facts, &mut weighing);
        return weighing;
    }
    link(facts, &mut weighing);
    still_there(facts, &mut weighing);
    if !facts.log.read.is_seen() {
        weighing.needs(Need::KernelLog);
    }
    weighing
}

/// Xid 79, and whether anything came before it.
fn xids(facts: &Facts, weighing: &mut Weighing) {
    for burst in xid_burst::bursts(facts) {
        let Some(fell) = burst.find(OFF_THE_BUS) else { continue };
        let origin = &fell.event.origin;
        if let Some(line) = super::not_woken_before(facts, fell.index) {
            weighing.confirms("Xid 79: the GPU has fallen off the bus", origin);
            let statement = "the kernel could not wake the GPU before it was gone";
            weighing.objects(Strong, statement, line);
            continue;
        }
        let before = |lead: &BurstXid<'_>| lead.number != OFF_THE_BUS && lead.index < fell.index;
        if let Some(lead) = burst.leading().filter(before) {
            weighing.supports(Moderate, "Xid 79: the GPU has fallen off the bus", origin);
            let statement = format!("{} came first on this GPU", xid_burst::named(lead.number));
            weighing.objects(Strong, statement, &lead.event.origin);
        } else if fell.is_quoted() {
            weighing.confirms("Xid 79, with no Xid of another kind before it", origin);
        } else {
            weighing.supports(Strong, "the input tells of Xid 79, off the bus", origin);
            weighing.supports(Weak, "and of no Xid of another kind before it", origin);
        }
    }
}

/// The driver's other lines, and the bus itself.
fn lines(facts: &Facts, weighing: &mut Weighing) {
    let rule = facts.power.rules.first();
    if let Some(event) = facts.log.first(&super::OFF_BUS_LINES) {
        let statement = super::off_bus_statement(event);
        weighing.supports(Strong, statement, &event.origin);
        if let Some(rule) = rule {
            let statement = "a rule puts the GPU to sleep while it is being switched on";
            weighing.objects(Strong, statement, &rule.origin);
        }
        let index = facts.log.events.iter().position(|known| std::ptr::eq(known, event));
        if let Some(line) = index.and_then(|index| super::not_woken_before(facts, index)) {
            let statement = "the kernel could not wake the GPU before it was gone";
            weighing.objects(Strong, statement, line);
        }
    }
    if let Some(lost) = facts.pci.lost.first() {
        weighing.supports(Moderate, "its configuration space reads as all ones", &lost.origin);
        if let Some(off) = facts.power.switched_off.first() {
            weighing.objects(Strong, "the GPU is switched off", &off.origin);
        }
    }
    if let Some(event) = gpu_state::asserted(facts, "NV_ERR_GPU_IS_LOST") {
        let statement = "the driver logged the status NV_ERR_GPU_IS_LOST";
        weighing.supports(Moderate, statement, &event.origin);
    }
    if let Some(origin) = readings::logged(facts, &["RPC_GPU_LOST"]) {
        let statement = "the driver cannot send to the GSP: the GPU is lost";
        weighing.supports(Moderate, statement, origin);
    }
    let ones = |event: &&facts::model::log::LogEvent| event.get("val") == Some("0xffffffff");
    if let Some(event) = facts.log.with("BAD_REG_READ").find(ones) {
        weighing.supports(Moderate, "its registers read as 0xffffffff", &event.origin);
    }
}

/// NVML_ERROR_GPU_IS_LOST, for one GPU or as a program tells it.
fn answers(facts: &Facts, weighing: &mut Weighing) {
    let lost = facts
        .nvml
        .queries
        .iter()
        .find(|query| query.result == NvmlResult::Code(code::NVML_GPU_IS_LOST));
    let told = readings::nvml_failed_with(facts, code::NVML_GPU_IS_LOST);
    if let Some(origin) = lost.map(|query| query.origin.clone()).or(told) {
        weighing.supports(Strong, "NVML answers 15: the GPU is lost", &origin);
    }
    let unreached = facts.nvml.queries.iter().find(|query| {
        query.query.starts_with("nvmlDeviceGetHandle") && query.result == NvmlResult::Code(999)
    });
    if let Some(query) = unreached {
        weighing.supports(Moderate, "NVML knows of a GPU and cannot reach it", &query.origin);
    }
}

/// What happened to the link at that time.
fn link(facts: &Facts, weighing: &mut Weighing) {
    if let Some(origin) = readings::logged(facts, &["PCIE_SURPRISE", "PCI_LINKDOWN", "DPC"]) {
        weighing.supports(Moderate, "a PCIe port reports that its link went down", origin);
    }
    if let Some(errors) = gpu_state::link_errors(facts) {
        weighing.supports(Weak, errors.value, &errors.origin);
    }
    if let Some(origin) = readings::logged(facts, &["RM_SANITY_ATTACHED", "CRASH_DUMP"]) {
        weighing.supports(Weak, "the driver then waited for the GPU in vain", origin);
    }
}

/// The same GPU answers now, as after a power cycle.
fn still_there(facts: &Facts, weighing: &mut Weighing) {
    let Some(works) = readings::cuda_works(facts) else { return };
    let fell: Vec<_> = facts
        .log
        .xids()
        .filter(|(xid, _)| *xid == OFF_THE_BUS)
        .map(|(_, event)| event.device)
        .collect();
    let back = facts
        .nvml
        .gpus
        .iter()
        .any(|gpu| gpu.value.address.is_some() && fell.contains(&gpu.value.address));
    let all = facts.nvml.count.value().copied() == u32::try_from(facts.pci.gpus().count()).ok();
    if back || all {
        weighing.objects(Strong, "CUDA works, and NVML lists that GPU again", works);
    }
}

/// Every GPU of the bus answers.
fn reached(facts: &Facts, weighing: &mut Weighing) {
    let on_bus = facts.pci.gpus().count();
    if let (Some(count), 1..) = (facts.nvml.count.as_seen(), on_bus)
        && usize::try_from(count.value).is_ok_and(|counted| counted >= on_bus)
    {
        let statement = format!("NVML reaches all {on_bus} GPUs that are on the bus");
        weighing.rules_out(statement, &count.origin);
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let place = machine::kernel_place(facts);
    let address = fallen(facts).map_or("0000:BB:00.0".to_owned(), |address| address.to_string());
    Remedy::new(Impact::PowerCycle, "everything on the machine while it is off")
        .step_to(
            place,
            "shut down, take the mains away for half a minute, start again",
            "a warm reboot leaves the slot powered and often the GPU lost",
        )
        .step_to(
            place,
            "nvidia-smi -lgc 300,1500",
            "a test: with clocks held down a weak power supply or cable no longer gives way",
        )
        .step_to(
            place,
            format!("lspci -vvs {address} | grep -E 'LnkSta|DevSta'; dmesg | grep -iE 'aer|pcie'"),
            "errors of the link before the loss point to seat, riser or slot",
        )
        .step_to(
            Place::Machine,
            "power supply and each auxiliary cable, seat, riser, firmware of the board, temperature; then the card in another machine",
            "when held-down clocks cure it, power is the first suspect",
        )
        .undo("nvidia-smi -rgc takes the clock limit away again")
        .verify("no Xid 79 under the load that used to bring it, and NVML counts every GPU")
        .will_not_help("another driver, flavour, distribution or desktop: the device itself does not answer")
        .will_not_help("removing and rescanning the PCI device while it reads as all ones")
}

fn fallen(facts: &Facts) -> Option<facts::model::pci::PciAddress> {
    let by_xid = facts.log.xids().find(|(xid, _)| *xid == OFF_THE_BUS);
    by_xid
        .and_then(|(_, event)| event.device)
        .or_else(|| facts.log.first(&super::OFF_BUS_LINES)?.device)
        .or_else(|| facts.pci.lost.first()?.value)
}
