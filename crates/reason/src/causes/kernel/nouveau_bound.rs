//! `kernel.nouveau-bound`

use facts::model::log::LogEvent;
use facts::{Facts, Layer, Origin};

use super::driver_absent;
use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::machine::{self, Distribution};
use crate::need::Need;
use crate::readings;
use crate::remedy::{Impact, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "kernel.nouveau-bound",
    layer: Layer::Kernel,
    claim: "nouveau or another kernel driver owns the GPU",
    explanation: "A PCI device has one driver. If nouveau (or nova_core, nvidiafb) takes the GPU \
        first, most often from the initial RAM disk, the nvidia module finds no device that is \
        free: it says that its probe routine was not called and does not load. The sentence names \
        nouveau as an example whichever driver holds the device, so that only the driver link in \
        sysfs, or lspci's 'Kernel driver in use', tells which it is.",
    explains: &[
        SymptomId::DriverAbsent,
        SymptomId::NvmlFails,
        SymptomId::CudaInitFails,
        SymptomId::GpuMissing,
        SymptomId::GpuFaulted,
        SymptomId::ContainerRefused,
        SymptomId::FrameworkNoGpu,
    ],
    specializes: &["module.not-loaded", "module.rm-init-failed"],
    look_alikes: &[
        LookAlike {
            id: "platform.vfio-bound",
            tell: "the driver in use is vfio-pci or pci-stub: the GPU is kept for a guest",
        },
        LookAlike { id: "pci.no-gpu", tell: "the bus has no GPU that another driver could own" },
        LookAlike {
            id: "module.not-loaded",
            tell: "no driver at all is in use for the GPU, and modprobe nvidia succeeds",
        },
        LookAlike {
            id: "kernel.signature-rejected",
            tell: "loading fails with a word on keys and not with 'No such device'",
        },
    ],
    references: &[
        "https://github.com/mattshma/bigdata/issues/133",
        "https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/",
        "kernel-open/nvidia/nv.c",
    ],
    weigh,
    remedy,
};

/// Kernel drivers of NVIDIA's GPUs that are not NVIDIA's.
const OTHERS: [&str; 6] = ["nouveau", "nova_core", "novacore", "nvidiafb", "rivafb", "rivatv"];

/// nova_core registers itself as `NovaCore`.
fn is_other(driver: &str) -> bool {
    OTHERS.contains(&driver.replace('-', "_").to_lowercase().as_str())
}

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    if machine::has_other_driver(facts) {
        return Weighing::not_applicable();
    }
    if let Some(origin) = readings::cuda_works(facts) {
        weighing.rules_out("cuInit answers 0", origin);
        return weighing;
    }
    bound(facts, &mut weighing);
    log(facts, &mut weighing);
    loaded(facts, &mut weighing);
    if let Some(origin) = readings::nvml_works(facts) {
        weighing.objects(Strong, "NVML answers, so the nvidia module has a GPU", &origin);
    } else if let Some((failure, origin)) = driver_absent(facts)
        && !weighing.support.is_empty()
    {
        weighing.supports(Weak, failure, &origin);
    }
    let known = facts.pci.gpus().any(|gpu| gpu.driver.is_seen());
    if !known && (!weighing.support.is_empty() || driver_absent(facts).is_some()) {
        weighing.needs(Need::PciDevices);
    }
    weighing
}

/// Who owns each GPU on the bus.
fn bound(facts: &Facts, weighing: &mut Weighing) {
    let gpus: Vec<_> = facts.pci.gpus().collect();
    let owners: Vec<(&str, &Origin)> = gpus
        .iter()
        .filter_map(|gpu| gpu.driver.as_seen())
        .map(|seen| (seen.value.as_str(), &seen.origin))
        .collect();
    let other = owners.iter().find(|(owner, _)| is_other(owner));
    let kept = owners.iter().find(|(owner, _)| matches!(*owner, "vfio-pci" | "pci-stub"));
    match (other, kept) {
        (Some((owner, origin)), _) => {
            let all = owners.len() == gpus.len() && owners.iter().all(|(owner, _)| is_other(owner));
            if all {
                weighing.confirms(format!("{owner} is the GPU's driver in use"), origin);
            } else {
                weighing.supports(Strong, format!("{owner} owns one of the GPUs"), origin);
            }
        }
        (None, Some((owner, origin))) => {
            weighing.rules_out(format!("{owner} holds the GPU for a guest"), origin);
        }
        (None, None) if !gpus.is_empty() && owners.len() == gpus.len() => {
            if let Some((owner, origin)) = owners.first() {
                weighing.rules_out(format!("{owner} is the GPU's driver in use"), origin);
            }
        }
        (None, None) => {
            // "Seen by lspci -k without a driver" is an absence on every device.
            if !gpus.is_empty()
                && gpus.iter().all(|gpu| gpu.driver.absent().is_some())
                && let Some(origin) = gpus.first().and_then(|gpu| gpu.driver.absent())
            {
                weighing.rules_out("no driver at all owns the GPU", origin);
            }
        }
    }
}

/// What the nvidia module said when it found no free device, and what nouveau says of its own.
fn log(facts: &Facts, weighing: &mut Weighing) {
    if let Some(event) = facts.log.with("ALREADY_BOUND").next() {
        let owner = event.get("drv").unwrap_or("another driver").to_owned();
        let statement = format!("the nvidia module says that the GPU is already bound to {owner}");
        if is_other(&owner) {
            weighing.confirms(statement, &event.origin);
        } else {
            weighing.rules_out(statement, &event.origin);
        }
    }
    if let Some(origin) = readings::logged(facts, &["PROBE_NOT_CALLED"]) {
        let statement =
            "the nvidia module's probe routine was not called: another driver has the GPU";
        weighing.supports(Strong, statement, origin);
    }
    if let Some(origin) = readings::logged(facts, &["NO_ADAPTER_PROBED", "PROBE_NONE"])
        && !weighing.support.is_empty()
    {
        weighing.supports(Weak, "the nvidia module found no device that was free", origin);
    }
    if let Some(event) = facts.log.first(&["NOUVEAU_LOADED", "NOVA_LOADED"]) {
        let statement = "nouveau speaks for the GPU in the kernel log";
        weighing.supports(Moderate, statement, &event.origin);
    }
    // It prints the size of the video memory once it has started the card.
    let started = |event: &&LogEvent| event.get("msg").is_some_and(|said| said.contains("VRAM:"));
    if let Some(event) = facts.log.with("NOUVEAU_LOADED").find(started) {
        weighing.supports(Moderate, "nouveau has started the GPU", &event.origin);
    }
    if let Some(origin) = readings::logged(facts, &["VFIO_BOUND"]) {
        weighing.objects(Moderate, "vfio-pci speaks for a device in the kernel log", origin);
    }
}

fn loaded(facts: &Facts, weighing: &mut Weighing) {
    for name in ["nouveau", "nova_core"] {
        if let Some(seen) = facts.module.loaded.get(name).and_then(|module| module.as_seen()) {
            let idle = seen.value.use_count == Some(0);
            if driver_absent(facts).is_some() || !weighing.support.is_empty() {
                let strength = if idle { Weak } else { Moderate };
                weighing.supports(strength, format!("{name} is loaded"), &seen.origin);
            }
        }
    }
    let listed = facts.module.loaded("nouveau");
    if let Some(origin) = listed.absent().filter(|_| !weighing.support.is_empty()) {
        weighing.objects(Moderate, "nouveau is not among the loaded modules", origin);
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let place = machine::kernel_place(facts);
    let initramfs = machine::distribution(facts).rebuild_initramfs();
    let blacklist = match machine::distribution(facts) {
        Distribution::Nixos => {
            "boot.blacklistedKernelModules = [ \"nouveau\" ]; in the configuration"
        }
        _ => {
            "printf 'blacklist nouveau\\noptions nouveau modeset=0\\n' > /etc/modprobe.d/blacklist-nouveau.conf"
        }
    };
    Remedy::new(Impact::Reboots, "everything on the machine; the console's mode may change")
        .step_to(place, "lspci -nnk -d 10de: | grep -A3 -E 'VGA|3D'", "shows who owns each GPU")
        .step_to(place, blacklist, "keeps nouveau out from now on")
        .step_to(place, initramfs, "nouveau is mostly loaded from there")
        .step_to(place, "reboot", "a driver that shows a console cannot be taken off safely")
        .undo("rm /etc/modprobe.d/blacklist-nouveau.conf, write the initial RAM disk anew, reboot")
        .verify("lspci -k names nvidia as the driver in use, and gpudx is healthy")
        .will_not_help("reinstalling the driver without the reboot: nouveau keeps the device")
        .will_not_help("modprobe -r nouveau under a running desktop: the module is in use")
}
