//! `firmware.gsp-version-skew`

use facts::{Facts, Layer};

use super::files_are_the_kernels;
use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::machine::{self, Distribution};
use crate::need::Need;
use crate::readings;
use crate::remedy::{Impact, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "firmware.gsp-version-skew",
    layer: Layer::Firmware,
    claim: "the GSP firmware is of another release than the kernel module",
    explanation: "The module and the firmware of the GSP speak a private language that changes with \
        every release, so the module compares the version inside the file with its own, to the \
        last digit, and refuses any other. A folder of the right name with the wrong file in it (a \
        copy, a link, a package of one release beside a module of another, a stale initial RAM \
        disk) gives 'version mismatch: got version … expected version …' and a failed \
        RmInitAdapter.",
    explains: &[
        SymptomId::GpuFaulted,
        SymptomId::GpuMissing,
        SymptomId::CudaInitFails,
        SymptomId::NvmlFails,
        SymptomId::FrameworkNoGpu,
    ],
    specializes: &["module.rm-init-failed", "firmware.gsp-missing"],
    look_alikes: &[
        LookAlike { id: "firmware.gsp-missing", tell: "the loader finds no file at all: error -2" },
        LookAlike {
            id: "firmware.gsp-lacks-chip",
            tell: "the version fits, and the file has no section for the chip",
        },
        LookAlike {
            id: "module.version-skew",
            tell: "the GPUs are up, and the libraries are of another release than the module",
        },
    ],
    references: &[
        "https://download.nvidia.com/XFree86/Linux-x86_64/580.95.05/README/gsp.html",
        "src/nvidia/src/kernel/gpu/gsp/kernel_gsp.c",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    log(facts, &mut weighing);
    running(facts, &mut weighing);
    on_disk(facts, &mut weighing);
    if weighing.support.is_empty() {
        return weighing;
    }
    if let Some(origin) = readings::cuda_works(facts) {
        weighing.rules_out("cuInit answers 0", origin);
    }
    for event in facts.log.with("RMINIT_FAILED").take(1) {
        weighing.supports(Weak, "RmInitAdapter failed", &event.origin);
    }
    weighing
}

/// The module's own word.
fn log(facts: &Facts, weighing: &mut Weighing) {
    if let Some(event) = facts.log.with("GSP_VER_MISMATCH").next() {
        let (got, want) = (event.get("got").unwrap_or("?"), event.get("want").unwrap_or("?"));
        let statement = format!("the firmware file is of {got}, and the module wants {want}");
        weighing.confirms(statement, &event.origin);
    }
    if let Some(event) = facts.log.with("GSP_VER_UNKNOWN").next() {
        let statement = "the firmware file has no version that the module can read";
        weighing.supports(Strong, statement, &event.origin);
    }
}

/// What runs, against the module. A report may show both of different times.
fn running(facts: &Facts, weighing: &mut Weighing) {
    let Some(module) = facts.module.version().filter(|seen| seen.value.is_exact()) else {
        if !weighing.support.is_empty() {
            weighing.needs(Need::ModuleVersion);
        }
        return;
    };
    let running = facts.firmware.running.iter().find(|seen| seen.value.is_exact());
    let Some(firmware) = running else { return };
    if firmware.value.same_release(&module.value) {
        let statement = format!("GSP firmware {} is the module's own release", firmware.value);
        weighing.rules_out(statement, &firmware.origin);
    } else {
        let statement =
            format!("GSP firmware {} runs under module {}", firmware.value, module.value);
        weighing.supports(Strong, statement, &firmware.origin);
    }
}

/// Files in the folder of the module's version with another version inside.
fn on_disk(facts: &Facts, weighing: &mut Weighing) {
    if !files_are_the_kernels(facts) {
        return;
    }
    let Some(module) = readings::driver_version(facts).filter(|seen| seen.value.is_exact()) else {
        return;
    };
    let folder = format!("/{}/", module.value);
    for file in facts.firmware.files.value().into_iter().flatten() {
        let Some(inside) = file.version.as_ref().filter(|inside| inside.is_exact()) else {
            continue;
        };
        if file.path.contains(&folder) && !inside.same_release(&module.value) {
            let statement = format!("{} holds firmware of {inside}", file.path);
            let down = facts.log.with("RMINIT_FAILED").next().is_some();
            let strength = if down { Strong } else { Moderate };
            weighing.supports(strength, statement, &file.origin);
        }
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let place = machine::kernel_place(facts);
    let wanted = facts.log.with("GSP_VER_MISMATCH").find_map(|event| event.get("want"));
    let version = wanted
        .map(str::to_owned)
        .or_else(|| readings::driver_version(facts).map(|seen| seen.value.to_string()));
    let version = version.unwrap_or_else(|| "VERSION".to_owned());
    let initramfs = machine::distribution(facts).rebuild_initramfs();
    Remedy::new(Impact::ReloadsModule, "every program that uses a GPU, in all containers")
        .step_to(
            place,
            format!("gpudx firmware /lib/firmware/nvidia/{version}/gsp_*.bin"),
            "shows the version inside each file",
        )
        .step_to(place, install(facts, &version), "brings module and firmware of one release")
        .step_to(place, initramfs, "where the initial RAM disk holds a copy of the firmware")
        .step_to(
            place,
            "modprobe -r nvidia_drm nvidia_modeset nvidia_uvm nvidia && modprobe -a nvidia nvidia_uvm",
            "stop nvidia-persistenced and every GPU program first; a reboot does the same",
        )
        .undo("install the earlier packages again")
        .verify("nvidia-smi -q | grep 'GSP Firmware' prints the module's version")
        .will_not_help("renaming the folder: the version stands inside the file")
        .will_not_help("another CUDA toolkit or framework: the GPU does not start beneath them")
}

fn install(facts: &Facts, version: &str) -> String {
    let branch = version.split('.').next().unwrap_or(version);
    match machine::distribution(facts) {
        Distribution::Debian | Distribution::Proxmox => {
            "apt install --reinstall firmware-nvidia-gsp nvidia-kernel-dkms".to_owned()
        }
        Distribution::Ubuntu => {
            format!("apt install --reinstall nvidia-firmware-{branch}-{version} nvidia-driver-{branch}")
        }
        Distribution::Fedora | Distribution::Rhel => {
            "dnf reinstall nvidia-kmod-common (RPM Fusion: xorg-x11-drv-nvidia)".to_owned()
        }
        Distribution::Arch => "pacman -Syu nvidia-utils and the module's package".to_owned(),
        Distribution::Nixos => {
            "hardware.firmware = [ config.hardware.nvidia.package.firmware ]; then nixos-rebuild boot"
                .to_owned()
        }
        Distribution::Suse | Distribution::Other => {
            format!("reinstall driver {version} with its firmware")
        }
    }
}
