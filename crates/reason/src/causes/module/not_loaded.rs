//! `module.not-loaded`

use facts::model::host::ContainerKind;
use facts::model::module::ModuleFile;
use facts::{Facts, Layer, Observed, Origin};

use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{self, Moderate, Strong, Weak};
use crate::machine::{self, Distribution};
use crate::need::Need;
use crate::readings::{self, code};
use crate::remedy::{Impact, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "module.not-loaded",
    layer: Layer::Module,
    claim: "the nvidia kernel module is there for this kernel and not loaded",
    explanation: "The user-space libraries are only half of the driver; the other half is the \
        nvidia kernel module, which udev loads when it meets the GPU. If nothing loaded it (a \
        blacklist, a failed boot service, an installation without a reboot, a module taken out by \
        hand), /proc/driver/nvidia does not exist, NVML answers 9 and cuInit 100. A container \
        cannot load it: the module is the host's. A missing /dev/nvidiactl gives the same codes \
        with a loaded module, so the codes alone decide nothing.",
    explains: &[
        SymptomId::DriverAbsent,
        SymptomId::NvmlFails,
        SymptomId::CudaInitFails,
        SymptomId::GpuMissing,
        SymptomId::FrameworkNoGpu,
        SymptomId::ContainerRefused,
    ],
    specializes: &[],
    look_alikes: &[
        LookAlike {
            id: "node.missing",
            tell: "the module is loaded, and only its device nodes are absent",
        },
        LookAlike {
            id: "kernel.module-not-built",
            tell: "there is no nvidia module for the running kernel, only for another one or none",
        },
        LookAlike {
            id: "kernel.signature-rejected",
            tell: "loading it says 'Key was rejected by service'",
        },
        LookAlike {
            id: "kernel.nouveau-bound",
            tell: "the GPU's driver link in sysfs names nouveau",
        },
        LookAlike {
            id: "platform.vfio-bound",
            tell: "the GPU's driver link in sysfs names vfio-pci",
        },
        LookAlike { id: "pci.no-gpu", tell: "the bus has no NVIDIA GPU, so loading gives ENODEV" },
        LookAlike {
            id: "kernel.module-build-failed",
            tell: "a build for this kernel was tried, and its make.log ends in an error",
        },
    ],
    references: &[
        "https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/",
        "https://github.com/NVIDIA/nvidia-modprobe",
        "kernel-open/nvidia/nv.c",
    ],
    weigh,
    remedy,
};

/// What the kernel logs when it was asked to load the module and refused.
const REFUSALS: [&str; 9] = [
    "DISAGREES",
    "SIG_REJECT",
    "SIG_PKCS7",
    "LOCKDOWN",
    "VERMAGIC",
    "UNKNOWN_SYMBOL",
    "EXEC_FORMAT",
    "NO_GPU_FOUND",
    "NONE_INIT",
];

fn weigh(facts: &Facts) -> Weighing {
    if machine::has_other_driver(facts) {
        return Weighing::not_applicable();
    }
    let mut weighing = Weighing::new();
    if let Some(origin) = readings::module_loaded(facts) {
        weighing.rules_out("the nvidia module is loaded", &origin);
        return weighing;
    }
    if let Some(origin) = readings::cuda_works(facts) {
        weighing.rules_out("cuInit answers 0", origin);
        return weighing;
    }
    if let Some(origin) = readings::nvml_failed_with(facts, code::NVML_VERSION_MISMATCH) {
        weighing.rules_out("NVML answers 18, so it reached a module", &origin);
        return weighing;
    }
    let absent = absence(facts, &mut weighing);
    let failing = answers(facts, &mut weighing);
    let loadable = on_disk(facts, &mut weighing, absent);
    refusals(facts, &mut weighing);
    devices(facts, &mut weighing);
    // Proof needs a GPU that the module could drive: without one it could not stay loaded.
    let excluded = weighing.against.iter().any(|piece| piece.strength == Strength::Decisive);
    let drivable = facts.pci.gpus().next().is_some() && !excluded;
    if let (true, true, true, Some((path, origin))) = (drivable, absent, failing, loadable) {
        let statement = format!("{path} fits the running kernel and is not loaded");
        weighing.confirms(statement, &origin);
    }
    blacklist(facts, &mut weighing);
    weighing
}

/// What the kernel's own lists say. /proc/driver may be masked in a container, so there its
/// absence says less than a list without the module. Returns whether they lack the module.
fn absence(facts: &Facts, weighing: &mut Weighing) -> bool {
    let masked = matches!(facts.host.container.value(), Some(kind) if *kind != ContainerKind::None);
    if let Some(origin) = facts.module.nvrm.absent() {
        let strength = if masked { Moderate } else { Strong };
        weighing.supports(strength, "/proc/driver/nvidia is not there", origin);
    }
    if let Some(origin) = facts.module.loaded("nvidia").absent() {
        weighing.supports(Strong, "nvidia is not among the loaded modules", origin);
    }
    let majors = ["nvidia", "nvidia-frontend"].map(|name| facts.module.major(name));
    if let [Observed::Absent(origin), Observed::Absent(_)] = &majors {
        weighing.supports(Moderate, "/proc/devices has no major 195 of nvidia", origin);
    }
    if weighing.support.is_empty() {
        weighing.needs(Need::ModulesLoaded);
    }
    !weighing.support.is_empty()
}

/// NVML and CUDA without a module. Returns whether one of them fails in that way.
fn answers(facts: &Facts, weighing: &mut Weighing) -> bool {
    let before = weighing.support.len();
    if let Some(origin) = readings::nvml_failed_with(facts, code::NVML_DRIVER_NOT_LOADED) {
        weighing.supports(Moderate, "NVML answers 9, driver not loaded", &origin);
    } else if let Some((other, origin)) = readings::nvml_failure(facts)
        && other != code::NVML_LIBRARY_NOT_FOUND
    {
        weighing.objects(Strong, format!("NVML answers {other}, not 9"), &origin);
    }
    if let Some(trial) = readings::init_failed_with(facts, code::NO_DEVICE) {
        weighing.supports(Weak, "cuInit answers 100, no device", &trial.origin);
    } else if let Some((other, trial)) = readings::init_failure(facts) {
        weighing.objects(Strong, format!("cuInit answers {other}, not 100"), &trial.origin);
    }
    weighing.support.len() > before
}

/// Whether a module for the running kernel is on disk. A container's /lib/modules says nothing of
/// the host's. Returns the file and where it was seen.
fn on_disk(facts: &Facts, weighing: &mut Weighing, absent: bool) -> Option<(String, Origin)> {
    if machine::in_container(facts) {
        return None;
    }
    match &facts.module.on_disk {
        Observed::Seen(files) => {
            let release = facts.host.kernel.value()?.as_str();
            let own: Vec<&ModuleFile> =
                files.value.iter().filter(|file| file.name == "nvidia").collect();
            if let Some(file) = own.iter().find(|file| fits(file, release)) {
                return Some((file.path.clone(), file.origin.clone()));
            }
            let all = !facts.module.on_disk_in_part;
            if all && !own.is_empty() && own.iter().all(|file| file.kernel.is_some()) {
                let statement =
                    format!("no nvidia module is there for the running kernel {release}");
                weighing.rules_out_by_all(statement, &files.origin);
            }
            None
        }
        Observed::Absent(origin) => {
            weighing.rules_out("no nvidia module is on disk", origin);
            None
        }
        Observed::Denied(..) | Observed::Unknown(_) => {
            if absent {
                weighing.needs(Need::ModulesOnDisk);
            }
            None
        }
    }
}

fn fits(file: &ModuleFile, release: &str) -> bool {
    let folder = file.kernel.as_deref() == Some(release);
    folder && file.vermagic.as_deref().is_none_or(|built_for| built_for == release)
}

/// Someone tried to load it, and the kernel said no: the fault is what it said.
fn refusals(facts: &Facts, weighing: &mut Weighing) {
    if let Some(event) = facts.log.first(&REFUSALS) {
        let text = facts::observed::clean_excerpt(&event.text);
        weighing.rules_out(format!("loading it was tried and refused: {text}"), &event.origin);
    }
}

/// The bus must have a GPU that no other driver owns.
fn devices(facts: &Facts, weighing: &mut Weighing) {
    let gpus: Vec<_> = facts.pci.gpus().collect();
    match &facts.pci.devices {
        Observed::Absent(origin) => {
            weighing.rules_out("no NVIDIA GPU is on the bus", origin);
        }
        Observed::Seen(seen) if !gpus.is_empty() => {
            let owners: Vec<&String> = gpus.iter().filter_map(|gpu| gpu.driver.value()).collect();
            let foreign = owners.iter().find(|owner| owner.as_str() != "nvidia");
            match foreign {
                Some(owner) if owners.len() == gpus.len() => {
                    weighing.rules_out(format!("{owner} owns the GPU"), &seen.origin);
                }
                Some(owner) => {
                    weighing.objects(Moderate, format!("{owner} owns a GPU"), &seen.origin);
                }
                None if !weighing.support.is_empty() => {
                    let free = gpus.iter().all(|gpu| gpu.driver.absent().is_some());
                    let owner = if free { ", and no driver owns it" } else { "" };
                    weighing.supports(Weak, format!("a GPU is on the bus{owner}"), &seen.origin);
                    if let (false, Some(module)) = (free, facts.module.loaded("nouveau").as_seen())
                    {
                        let statement = "nouveau is loaded, and may own the GPU";
                        weighing.objects(Strong, statement, &module.origin);
                    }
                }
                None => {}
            }
        }
        Observed::Seen(_) => {}
        Observed::Denied(..) | Observed::Unknown(_) => {
            weighing.needs(Need::PciDevices);
        }
    }
}

/// A word of the kernel's command line that keeps the module out.
fn blacklist(facts: &Facts, weighing: &mut Weighing) {
    if weighing.support.is_empty() {
        return;
    }
    let Some(words) = facts.host.cmdline.as_seen() else {
        return;
    };
    if let Some(word) = words.value.iter().find(|word| keeps_out(word)) {
        weighing.supports(Moderate, format!("the kernel's command line has {word}"), &words.origin);
    }
}

fn keeps_out(word: &str) -> bool {
    let Some((key, list)) = word.split_once('=') else {
        return false;
    };
    matches!(key, "modprobe.blacklist" | "module_blacklist" | "rd.driver.blacklist")
        && list.split(',').any(|name| name == "nvidia")
}

fn remedy(facts: &Facts) -> Remedy {
    let place = machine::kernel_place(facts);
    let keep = match machine::distribution(facts) {
        Distribution::Nixos => {
            "boot.kernelModules = [ \"nvidia\" \"nvidia_uvm\" ]; in the configuration, then nixos-rebuild switch"
        }
        _ => "printf 'nvidia\\nnvidia_uvm\\n' > /etc/modules-load.d/nvidia.conf",
    };
    Remedy::new(Impact::None, "nothing")
        .step_to(place, "modprobe -a nvidia nvidia_uvm", "loads it now; what it prints is the next clue")
        .step_to(place, "nvidia-modprobe -c 0 -u", "makes the device nodes; not needed under udev rules")
        .step_to(
            place,
            "grep -rE '(blacklist|install) +nvidia' /etc/modprobe.d /usr/lib/modprobe.d /run/modprobe.d",
            "a line here keeps it from loading by itself",
        )
        .step_to(place, keep, "loads it at every boot")
        .undo("rm /etc/modules-load.d/nvidia.conf; modprobe -r nvidia_uvm nvidia")
        .verify("cat /proc/driver/nvidia/version prints a version, and gpudx is healthy")
        .will_not_help("another CUDA toolkit or framework: there is no driver beneath them")
        .will_not_help("reinstalling the driver in a container: the kernel module is the host's")
}
