//! `platform.vfio-bound`

use facts::{Facts, Layer};

use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::gpu_state;
use crate::machine::{self, Distribution};
use crate::need::Need;
use crate::readings;
use crate::remedy::{Impact, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "platform.vfio-bound",
    layer: Layer::Platform,
    claim: "the GPU is bound to vfio-pci, to be given to a guest",
    explanation: "A GPU has one driver at a time. While vfio-pci owns it for a virtual machine, the \
        nvidia driver on this host loads, finds no GPU to drive and says so, and nvidia-smi finds no \
        device. This may be just what somebody wanted: then CUDA belongs into the guest, and nothing \
        is to be put right here.",
    explains: &[
        SymptomId::GpuMissing,
        SymptomId::GpuFaulted,
        SymptomId::DriverAbsent,
        SymptomId::NvmlFails,
        SymptomId::CudaInitFails,
        SymptomId::FrameworkNoGpu,
    ],
    specializes: &["module.not-loaded", "module.rm-init-failed"],
    look_alikes: &[
        LookAlike {
            id: "kernel.nouveau-bound",
            tell: "the driver link ends in nouveau or another graphics driver",
        },
        LookAlike { id: "module.not-loaded", tell: "no driver at all owns the GPU" },
        LookAlike { id: "pci.no-gpu", tell: "the GPU is not on the bus" },
        LookAlike {
            id: "platform.vfio-unbind-stuck",
            tell: "the GPU is still the nvidia driver's, and taking it away does not end",
        },
    ],
    references: &[
        "https://github.com/jurkovic-nikola/OpenLinkHub/pull/174",
        "https://docs.kernel.org/driver-api/vfio.html",
        "kernel-open/nvidia/nv-pci.c",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    let bound = facts.log.with("ALREADY_BOUND").find(|event| event.get("drv") == Some("vfio-pci"));
    if let Some(event) = bound {
        let gpu = event.get("bdf").unwrap_or("a GPU");
        weighing
            .confirms(format!("the nvidia driver found {gpu} bound to vfio-pci"), &event.origin);
    }
    bus(facts, &mut weighing);
    if let Some(told) = facts.platform.vfio_told.first() {
        weighing.supports(Strong, "the input says that the GPU is bound to vfio-pci", &told.origin);
    }
    if weighing.support.is_empty() {
        not_bound(facts, &mut weighing);
        return weighing;
    }
    if let Some(origin) =
        readings::logged(facts, &["PROBE_NOT_CALLED", "PROBE_NONE", "NO_GPU_FOUND"])
    {
        weighing.supports(Moderate, "the nvidia driver found no GPU that it may drive", origin);
    }
    if facts.pci.gpus().all(|gpu| gpu.driver.is_unknown()) {
        weighing.needs(Need::PciDevices);
    }
    weighing
}

/// Who owns the GPUs on the bus. When some are the nvidia driver's, only a missing one is
/// explained by those that are not.
fn bus(facts: &Facts, weighing: &mut Weighing) {
    let given: Vec<_> = facts.pci.gpus().filter_map(gpu_state::passthrough_driver).collect();
    let all = facts.pci.gpus().count();
    let Some(first) = given.first() else { return };
    let owner = &first.value;
    if given.len() == all {
        let statement = match all {
            1 => format!("the GPU on the bus is bound to {owner}"),
            _ => format!("all {all} GPUs on the bus are bound to {owner}"),
        };
        weighing.confirms(statement, &first.origin);
        return;
    }
    let statement = format!("{} of {all} GPUs on the bus are bound to {owner}", given.len());
    weighing.supports(Moderate, statement, &first.origin);
    let left = all - given.len();
    if let Some(count) = facts.nvml.count.as_seen()
        && usize::try_from(count.value) == Ok(left)
    {
        let statement = format!("NVML counts the other {left}");
        weighing.supports(Strong, statement, &count.origin);
    }
    if let Some(origin) = readings::init_failure(facts).map(|(_, trial)| &trial.origin) {
        weighing.objects(Moderate, "the other GPUs are left to CUDA, and it fails", origin);
    }
}

fn not_bound(facts: &Facts, weighing: &mut Weighing) {
    let mut owners = facts.pci.gpus().map(|gpu| gpu.driver.as_seen());
    let first = facts.pci.gpus().find_map(|gpu| gpu.driver.as_seen());
    let nvidia =
        |owner: Option<&facts::Seen<String>>| owner.is_some_and(|seen| seen.value == "nvidia");
    if let (Some(first), true) = (first, owners.all(nvidia)) {
        weighing.rules_out("the nvidia driver owns every GPU on the bus", &first.origin);
    } else if facts.pci.gpus().next().is_none()
        && let Some(gpu) = facts.nvml.gpus.first().filter(|_| facts.nvml.count.is_seen())
    {
        weighing.objects(Weak, "NVML lists a GPU", &gpu.origin);
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let place = machine::kernel_place(facts);
    let given = facts.pci.gpus().find(|gpu| gpu_state::passthrough_driver(gpu).is_some());
    let address = given
        .and_then(|gpu| gpu.address)
        .or_else(|| facts.log.with("ALREADY_BOUND").next()?.device)
        .map_or("0000:BB:00.0".to_owned(), |address| address.to_string());
    let rebuild = match machine::distribution(facts) {
        Distribution::Other => "update-initramfs -u, or dracut --force",
        known => known.rebuild_initramfs(),
    };
    Remedy::new(Impact::RestartsService, "the guest that has the GPU; nothing, when none runs")
        .step_to(
            place,
            "decide: if a guest is meant to have the GPU, leave it there and run CUDA in the guest",
            "the binding is usually somebody's wish",
        )
        .step_to(
            place,
            format!("driverctl unset-override {address}"),
            "where driverctl or libvirt set it; the guest must be off",
        )
        .step_to(
            place,
            format!("echo {address} > /sys/bus/pci/drivers/vfio-pci/unbind; echo > /sys/bus/pci/devices/{address}/driver_override; modprobe nvidia; echo {address} > /sys/bus/pci/drivers_probe"),
            "gives it to the nvidia driver until the next boot",
        )
        .step_to(
            place,
            format!("take the GPU's ids out of vfio-pci.ids= on the kernel command line and out of 'options vfio-pci' in /etc/modprobe.d, then {rebuild}"),
            "so that it stays there",
        )
        .undo(format!("driverctl set-override {address} vfio-pci"))
        .verify(format!("readlink /sys/bus/pci/devices/{address}/driver ends in nvidia, and nvidia-smi lists the GPU"))
        .will_not_help("blacklisting nouveau or installing the driver again: another driver owns the device")
        .will_not_help("nvidia-smi or modprobe nvidia again and again: they load a driver that has nothing to drive")
}
