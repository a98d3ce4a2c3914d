//! `pci.no-gpu`

use facts::model::host::ContainerKind;
use facts::{Facts, Layer, Observed};

use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::machine;
use crate::need::Need;
use crate::readings;
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "pci.no-gpu",
    layer: Layer::Pci,
    claim: "no NVIDIA display or 3D controller is on the PCI bus",
    explanation: "A driver, a library or a request for GPUs is here, but no device for them: the \
        kernel lists no PCI function of vendor 10de and class 03. In a guest nothing was passed \
        through, or the instance type has no GPU; on bare metal the card is not seated, has no \
        power, is switched off in the firmware setup, or fell off before the kernel listed the bus. \
        Under WSL and on Tegra the GPU is never on the PCI bus, and this cause does not apply.",
    explains: &[
        SymptomId::GpuMissing,
        SymptomId::DriverAbsent,
        SymptomId::NvmlFails,
        SymptomId::CudaInitFails,
        SymptomId::FrameworkNoGpu,
    ],
    specializes: &[],
    look_alikes: &[
        LookAlike {
            id: "pci.fell-off-bus",
            tell: "the kernel log has Xid 79: the GPU was there and went",
        },
        LookAlike {
            id: "platform.vfio-bound",
            tell: "the GPU is on the bus and bound to vfio-pci",
        },
        LookAlike {
            id: "sandbox.gpu-not-requested",
            tell: "the bus has the GPU, and only the container lacks its nodes",
        },
        LookAlike { id: "module.not-loaded", tell: "the bus has the GPU, and no driver owns it" },
    ],
    references: &[
        "https://docs.kernel.org/PCI/sysfs-pci.html",
        "https://pci-ids.ucw.cz/read/PC/10de",
        "kernel-open/nvidia/nv-pci.c",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    if machine::has_other_driver(facts) {
        return Weighing::not_applicable();
    }
    let mut weighing = Weighing::new();
    present(facts, &mut weighing);
    if !weighing.against.is_empty() {
        return weighing;
    }
    bus(facts, &mut weighing);
    log(facts, &mut weighing);
    if let Some(card_info) = facts.module.card_info.as_seen().filter(|seen| seen.value.is_empty()) {
        weighing.supports(Moderate, "the driver lists no GPU", &card_info.origin);
    }
    weighing
}

/// Everything that shows a GPU.
fn present(facts: &Facts, weighing: &mut Weighing) {
    let count = facts.pci.gpus().count();
    if let (Some(origin), 1..) = (facts.pci.devices.origin(), count) {
        let verb = if count == 1 { "GPU is" } else { "GPUs are" };
        weighing.rules_out(format!("{count} NVIDIA {verb} on the bus"), origin);
    } else if let Some(gpu) = facts.nvml.gpus.first() {
        weighing.rules_out("NVML lists a GPU", &gpu.origin);
    } else if let Some(gpu) = facts.module.gpus.first() {
        weighing.rules_out("/proc/driver/nvidia/gpus has a GPU", &gpu.origin);
    } else if let Some(origin) = readings::cuda_works(facts) {
        weighing.rules_out("cuInit answers 0", origin);
    } else if let Some(seen) =
        facts.module.card_info.as_seen().filter(|seen| !seen.value.is_empty())
    {
        weighing.rules_out("the driver lists a GPU", &seen.origin);
    } else if let Some(origin) =
        readings::logged(facts, &["PROBE_NOT_CALLED", "ALREADY_BOUND", "VFIO_BOUND"])
    {
        weighing.rules_out("the kernel log names a GPU that another driver owns", origin);
    } else if let Some(origin) = readings::logged(facts, &["PCI_FOUND"]) {
        weighing.rules_out("the kernel found a GPU on the bus", origin);
    }
}

/// The bus itself. gVisor shows a /sys of its own, in which there is never a device.
fn bus(facts: &Facts, weighing: &mut Weighing) {
    let emulated = facts.host.container.value() == Some(&ContainerKind::Gvisor);
    match &facts.pci.devices {
        Observed::Absent(origin) if emulated => {
            weighing.supports(Weak, "the sandbox's own /sys shows no GPU", origin);
            weighing.needs(Need::PciDevices);
        }
        Observed::Absent(origin) => {
            weighing.confirms("the whole bus was listed, and no NVIDIA GPU is on it", origin);
        }
        Observed::Seen(seen) if seen.value.iter().all(|device| device.class.is_some()) => {
            let statement = "NVIDIA's devices on the bus are no display or 3D controllers";
            weighing.supports(Strong, statement, &seen.origin);
        }
        Observed::Seen(_) | Observed::Denied(..) | Observed::Unknown(_) => {
            if let Some(origin) = facts.pci.told_absent.first() {
                weighing.supports(Moderate, "lspci is told to show no NVIDIA GPU", origin);
            }
            weighing.needs(Need::PciDevices);
        }
    }
}

/// Lines of the driver about one GPU, whose fault they tell.
const NAMES_A_GPU: [&str; 10] = [
    "FALLEN_BUS",
    "FALLEN_BUS_INIT",
    "RMINIT_FAILED",
    "LEGACY_GPU",
    "LEGACY_IGNORED",
    "UNSUPPORTED_GPU",
    "OPEN_NO_GSP",
    "NEED_OPEN_MODULES",
    "BAR_INVALID",
    "PROBE_FAILED",
];

fn log(facts: &Facts, weighing: &mut Weighing) {
    if let Some(origin) = readings::logged(facts, &["NO_PCI_DEVICES"]) {
        weighing.supports(Strong, "the driver logged that it found no NVIDIA PCI device", origin);
    }
    if let Some(origin) =
        readings::logged(facts, &["NO_GPU_FOUND", "PROBE_NONE", "NO_ADAPTER_PROBED"])
    {
        weighing.supports(Moderate, "the driver logged that it found no GPU", origin);
    }
    if let Some(origin) = readings::logged(facts, &NAMES_A_GPU) {
        weighing.objects(Strong, "the kernel log names a GPU, so one was on the bus", origin);
    } else if let Some((xid, event)) = facts.log.xids().next() {
        weighing.objects(
            Strong,
            format!("Xid {xid} names a GPU, so one was on the bus"),
            &event.origin,
        );
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let hypervisor = facts.host.hypervisor.value().map(String::as_str);
    let remedy = match hypervisor {
        Some(name) if name != "none" => in_a_guest(facts),
        _ => on_metal(facts),
    };
    remedy
        .verify("lspci -nn -d 10de: lists a 3D or VGA controller, and gpudx is healthy")
        .will_not_help("another driver, toolkit or framework: there is nothing for them to drive")
        .will_not_help("making device nodes by hand: no device stands behind them")
}

fn in_a_guest(facts: &Facts) -> Remedy {
    let attach = if facts.host.proxmox.is_seen() {
        "qm set VMID -hostpci0 0000:BB:00.0,pcie=1"
    } else {
        "pass the GPU through to this guest; in a cloud, choose an instance type with a GPU"
    };
    Remedy::new(Impact::Reboots, "this guest, for one restart")
        .step_to(Place::Hypervisor, attach, "a guest sees only what it was given")
        .step_to(
            Place::Hypervisor,
            "stop and start the guest",
            "a reboot from inside adds no device",
        )
        .undo("take the device out of the guest's configuration")
}

fn on_metal(facts: &Facts) -> Remedy {
    let place = machine::kernel_place(facts);
    Remedy::new(Impact::Hardware, "everything on the machine while it is off")
        .step_to(
            place,
            "echo 1 > /sys/bus/pci/rescan; lspci -nn -d 10de:",
            "finds a card that was late or removed",
        )
        .step_to(
            Place::Machine,
            "switch off; check seat, riser and power cables; enable the slot in the firmware setup",
            "a card that stays invisible to lspci is invisible to every driver",
        )
        .undo("nothing to undo")
}
