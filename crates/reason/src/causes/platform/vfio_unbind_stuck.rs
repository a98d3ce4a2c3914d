//! `platform.vfio-unbind-stuck`

use facts::{Facts, Layer};

use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::machine;
use crate::need::Need;
use crate::readings;
use crate::remedy::{Impact, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "platform.vfio-unbind-stuck",
    layer: Layer::Platform,
    claim: "taking the GPU from its driver waits for a process that still holds it",
    explanation: "Before a GPU can go to a guest, or be removed, the nvidia driver must let go of it, \
        and it waits until the last open file on it is closed. The writer to 'unbind' or 'remove' \
        sleeps in the kernel until then and cannot be killed. nvidia-smi shows only programs that \
        compute or draw; nvidia-persistenced, a display, a monitoring agent, a device plugin or a \
        container hold the GPU as well and are not in its list.",
    explains: &[
        SymptomId::GpuFaulted,
        SymptomId::NvmlHangs,
        SymptomId::NvmlFails,
        SymptomId::CudaInitHangs,
        SymptomId::CudaInitFails,
        SymptomId::GpuMissing,
    ],
    specializes: &["module.deadlock"],
    look_alikes: &[
        LookAlike {
            id: "module.deadlock",
            tell: "no process holds the GPU, and the tasks wait for a lock of the driver's",
        },
        LookAlike { id: "platform.vfio-bound", tell: "vfio-pci owns the GPU already" },
    ],
    references: &[
        "https://github.com/kubevirt/kubevirt/issues/8549",
        "https://github.com/bryansteiner/gpu-passthrough-tutorial/issues/39",
        "kernel-open/nvidia/nv-pci.c (nv_pci_remove_helper)",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    if let Some(origin) = readings::logged(facts, &["REMOVE_IN_USE"]) {
        weighing.confirms("the driver is told to remove a GPU that is still in use", origin);
    }
    if let Some(origin) = readings::logged(facts, &["UNBIND_LOCKED_OPEN"]) {
        weighing.supports(
            Strong,
            "an open is refused because the GPU is locked for unbinding",
            origin,
        );
    }
    if let Some((_, origin)) = facts.log.frames.iter().find(|(frame, _)| removes(frame)) {
        weighing.supports(Strong, "a task sleeps in the driver's removal of a GPU", origin);
    }
    if let Some(told) = facts.platform.unbind_told.first() {
        weighing.supports(Moderate, "unbinding does not end", &told.origin);
    }
    if weighing.support.is_empty() {
        return weighing;
    }
    if let Some(event) = facts.log.first(&["HUNG_TASK"]) {
        weighing.supports(
            Weak,
            "the kernel's watchdog reports a task that does not move",
            &event.origin,
        );
    }
    if let Some(persistence) =
        facts.nvml.gpus.iter().find(|gpu| gpu.value.persistence == Some(true))
    {
        weighing.supports(
            Weak,
            "persistence mode is on: a daemon holds the GPU",
            &persistence.origin,
        );
    }
    weighing.needs(Need::NodeHolders);
    weighing
}

fn removes(frame: &str) -> bool {
    ["nv_pci_remove", "nvidia_remove"].iter().any(|name| frame.contains(name))
}

fn remedy(facts: &Facts) -> Remedy {
    let place = machine::kernel_place(facts);
    Remedy::new(Impact::RestartsService, "everything that uses the GPU on this host")
        .step_to(place, "fuser -v /dev/nvidia*; lsof /dev/nvidia* 2>/dev/null", "names every holder, also those that nvidia-smi does not list")
        .step_to(
            place,
            "systemctl stop nvidia-persistenced nvidia-dcgm display-manager",
            "the usual holders; the unbinding goes on by itself once the last one is gone",
        )
        .step_to(
            place,
            "stop containers with GPUs: device plugin, DCGM exporter, monitoring agents",
            "on Kubernetes the operator's pods on that node",
        )
        .step_to(place, "modprobe -r nvidia_drm nvidia_modeset nvidia_uvm, before the next unbinding", "the display's modules hold the GPU too")
        .undo("start the services and containers again")
        .verify("the write to unbind returns, and readlink /sys/bus/pci/devices/BDF/driver ends in vfio-pci")
        .will_not_help("kill -9 on the task that unbinds: it sleeps in the kernel until the last file is closed")
        .will_not_help("an empty process list in nvidia-smi: it does not show who merely holds the node")
}
