//! `firmware.gsp-missing`

use facts::model::log::LogEvent;
use facts::{Facts, Layer, Observed, Origin};

use super::{
    base_name, chips, fails_elsewhere, file_name, files_are_the_kernels, files_for_module, running,
};
use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::machine::{self, Distribution};
use crate::need::Need;
use crate::readings;
use crate::remedy::{Impact, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "firmware.gsp-missing",
    layer: Layer::Firmware,
    claim: "the GSP firmware file for this driver version is not there",
    explanation: "From Turing on the driver hands most of its work to a processor on the GPU, the \
        GSP, whose program the kernel reads from /lib/firmware/nvidia/VERSION when the GPU is \
        first opened. The file must be of exactly the module's version, and several distributions \
        package it apart. Without it the kernel logs error -2, RmInitAdapter fails at step 0x61, \
        and every open of the GPU tries again: cuInit answers 100, nvidia-smi finds no device or \
        takes very long. A GPU that reports a GSP version has its firmware.",
    explains: &[
        SymptomId::GpuFaulted,
        SymptomId::GpuMissing,
        SymptomId::CudaInitFails,
        SymptomId::CudaInitHangs,
        SymptomId::NvmlFails,
        SymptomId::FrameworkNoGpu,
    ],
    specializes: &["module.rm-init-failed"],
    look_alikes: &[
        LookAlike {
            id: "firmware.gsp-lacks-chip",
            tell: "the file is there, and its sections do not name the chip's family",
        },
        LookAlike {
            id: "firmware.gsp-version-skew",
            tell: "the log says 'version mismatch: got version … expected version …'",
        },
        LookAlike {
            id: "gpu.vbios",
            tell: "the loader's error is -4 and not -2, and a FWSEC or GFW line stands near it",
        },
        LookAlike {
            id: "module.rm-init-failed",
            tell: "RmInitAdapter fails at another step than 0x61",
        },
    ],
    references: &[
        "https://github.com/NixOS/nixpkgs/issues/454772",
        "https://download.nvidia.com/XFree86/Linux-x86_64/580.95.05/README/gsp.html",
        "https://docs.kernel.org/driver-api/firmware/fw_search_path.html",
        "src/nvidia/arch/nvalloc/unix/src/osinit.c",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let chips = chips(facts);
    let without_gsp = !chips.is_empty() && chips.iter().all(|chip| chip.value.gsp_family.is_none());
    if without_gsp || fails_elsewhere(facts) {
        return Weighing::not_applicable();
    }
    let mut weighing = Weighing::new();
    if let Some((version, origin)) = running(facts) {
        weighing.rules_out(format!("GSP firmware {version} is running"), &origin);
        return weighing;
    }
    loader(facts, &mut weighing);
    driver_log(facts, &mut weighing);
    on_disk(facts, &mut weighing);
    answers(facts, &mut weighing);
    if facts.firmware.not_running.is_empty() {
        weighing.needs(Need::GspRunning);
    }
    if !facts.log.read.is_seen() && weighing.support.is_empty() {
        weighing.needs(Need::KernelLog);
    }
    weighing
}

/// What the kernel's firmware loader logged: -2 is "no such file", everything else is another
/// fault.
fn loader(facts: &Facts, weighing: &mut Weighing) {
    let loaded = readings::driver_version(facts).map(|seen| seen.value.to_string());
    let events = facts
        .log
        .events
        .iter()
        .filter(|event| matches!(event.signature, "FW_DIRECT_LOAD" | "FW_LOADING_FAILED"));
    let mut other_error = None;
    let mut no_such_file = false;
    for event in events {
        let Some((file, version)) = requested(event) else {
            continue;
        };
        let current = loaded.as_deref().is_none_or(|loaded| loaded == version);
        match event.get("err") {
            Some("-2") if current => {
                no_such_file = true;
                let statement = format!("the kernel finds no nvidia/{version}/{file} (error -2)");
                weighing.confirms(statement, &event.origin);
            }
            Some("-2") => {
                let statement = format!("no firmware was found for {version}, another release");
                weighing.supports(Weak, statement, &event.origin);
            }
            Some(error) if current => {
                other_error =
                    Some((format!("{file} could not be read: error {error}, not -2"), event));
            }
            Some(_) | None => {}
        }
    }
    if let (Some((statement, event)), false) = (other_error, no_such_file) {
        weighing.rules_out(statement, &event.origin);
    }
}

/// File and version of a request by this driver. nouveau's requests name a chip in the version's
/// place (`nvidia/ga102/gsp/…`).
fn requested(event: &LogEvent) -> Option<(&str, &str)> {
    let path = event.get("path")?;
    let mut parts = path.rsplit('/');
    let (file, version) = (parts.next()?, parts.next()?);
    let is_version = version.bytes().next().is_some_and(|byte| byte.is_ascii_digit());
    (file.starts_with("gsp") && is_version).then_some((file, version))
}

/// What the driver logged.
fn driver_log(facts: &Facts, weighing: &mut Weighing) {
    if let Some(origin) = readings::logged(facts, &["GSP_FW_MISSING"]) {
        weighing.supports(Strong, "the driver logged that it got no firmware image", origin);
    }
    for event in facts.log.with("RMINIT_FAILED") {
        match event.get("code") {
            Some("0x61") => {
                let statement = "RmInitAdapter failed at step 0x61, fetching the firmware";
                weighing.supports(Strong, statement, &event.origin);
            }
            Some(step) => {
                let statement = format!("RmInitAdapter failed at step {step}, not at 0x61");
                weighing.objects(Moderate, statement, &event.origin);
            }
            None => {}
        }
    }
    if let Some(origin) = readings::logged(facts, &["GSP_VER_MISMATCH"]) {
        weighing.rules_out("a firmware file was found and refused for its version", origin);
    }
}

/// What the firmware folder holds. A list may be a part, so a file that it lacks says less than
/// one that it shows.
fn on_disk(facts: &Facts, weighing: &mut Weighing) {
    let host = files_are_the_kernels(facts);
    match &facts.firmware.files {
        Observed::Absent(origin) if host => {
            weighing.supports(Strong, "the firmware folder holds no GSP file for it", origin);
        }
        Observed::Seen(_) => match wanted_file(facts) {
            Wanted::Found(path, origin) if host => {
                weighing.rules_out(format!("{path} is there"), &origin);
            }
            Wanted::Found(path, origin) => {
                weighing.objects(Strong, format!("{path} is there, in the container"), &origin);
                weighing.needs(Need::GspFile);
            }
            Wanted::OthersOnly(statement, origin) if host => {
                weighing.supports(Moderate, statement, &origin);
            }
            Wanted::OthersOnly(..) | Wanted::Undecided => {
                weighing.needs(Need::GspFile);
            }
        },
        Observed::Absent(_) | Observed::Denied(..) | Observed::Unknown(_) => {
            weighing.needs(Need::GspFile);
        }
    }
}

/// What the listed files say of the one that is wanted.
enum Wanted {
    /// It is there: path and where that was seen.
    Found(String, Origin),
    /// Files are there, but not the one: what they are.
    OthersOnly(String, Origin),
    /// Which file is wanted is not known.
    Undecided,
}

fn wanted_file(facts: &Facts) -> Wanted {
    let files = files_for_module(facts);
    let mut names: Vec<&str> =
        chips(facts).iter().filter_map(|chip| file_name(facts, &chip.value)).collect();
    names.sort_unstable();
    names.dedup();
    let missing: Vec<&str> = names
        .iter()
        .copied()
        .filter(|name| !files.iter().any(|file| base_name(&file.path) == *name))
        .collect();
    match (files.first(), names.is_empty(), missing.first()) {
        // Both of the usual files, or one for a GPU of unknown chip.
        (Some(file), true, _) if files.len() > 1 => {
            Wanted::Found(file.path.clone(), file.origin.clone())
        }
        (Some(_), true, _) => Wanted::Undecided,
        (Some(file), false, None) => Wanted::Found(file.path.clone(), file.origin.clone()),
        (Some(file), false, Some(name)) => Wanted::OthersOnly(
            format!("{name} does not stand beside {}", file.path),
            file.origin.clone(),
        ),
        (None, _, _) => match other_release(facts) {
            Some((statement, origin)) => Wanted::OthersOnly(statement, origin),
            None => Wanted::Undecided,
        },
    }
}

/// Files of other releases, when there are none of the module's.
fn other_release(facts: &Facts) -> Option<(String, Origin)> {
    let module = readings::driver_version(facts)?;
    let file = facts.firmware.files.value()?.first()?;
    let statement = format!("{} is there, but nothing of {}", file.path, module.value);
    Some((statement, file.origin.clone()))
}

/// A GPU that NVML or CUDA lists was initialised, and that took its firmware.
fn answers(facts: &Facts, weighing: &mut Weighing) {
    if let Some(origin) = readings::cuda_works(facts) {
        weighing.rules_out("cuInit answers 0", origin);
    } else if let Some(gpu) = facts.nvml.gpus.first() {
        weighing.objects(Strong, "NVML lists GPUs, so they were initialised", &gpu.origin);
    }
    if let Some(origin) = facts.firmware.not_running.first()
        && !weighing.support.is_empty()
    {
        weighing.supports(Weak, "the GPU reports no GSP firmware", origin);
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let place = machine::kernel_place(facts);
    let version = wanted_version(facts);
    let folder = format!("/lib/firmware/nvidia/{version}");
    Remedy::new(Impact::None, "nothing")
        .step_to(place, install(facts, &version), "brings the file of exactly this version")
        .step_to(place, format!("ls -l {folder}/"), "must list gsp_ga10x.bin and gsp_tu10x.bin")
        .step_to(place, "nvidia-smi -L", "the driver asks for the file again at the next open")
        .undo("remove the package again")
        .verify("nvidia-smi -q | grep 'GSP Firmware' prints the module's version")
        .will_not_help("linux-firmware's files under nvidia/CHIP/gsp: they are nouveau's")
        .will_not_help(
            "a file of another release: its version must equal the module's to the last digit",
        )
        .will_not_help("another CUDA toolkit or framework: the GPU does not start beneath them")
}

/// The version that the file must have: the module's, or what the kernel log says was asked for.
fn wanted_version(facts: &Facts) -> String {
    if let Some(seen) = readings::driver_version(facts) {
        return seen.value.to_string();
    }
    let asked =
        facts.log.with("FW_DIRECT_LOAD").find_map(|event| Some(requested(event)?.1.to_owned()));
    asked.unwrap_or_else(|| "VERSION".to_owned())
}

fn install(facts: &Facts, version: &str) -> String {
    let branch = version.split('.').next().unwrap_or(version);
    match machine::distribution(facts) {
        Distribution::Debian | Distribution::Proxmox => {
            "apt install firmware-nvidia-gsp (component non-free-firmware)".to_owned()
        }
        Distribution::Ubuntu => format!("apt install --reinstall nvidia-firmware-{branch}-{version}"),
        Distribution::Fedora | Distribution::Rhel => {
            "dnf reinstall nvidia-kmod-common (RPM Fusion: xorg-x11-drv-nvidia)".to_owned()
        }
        Distribution::Suse => format!("zypper install --force kernel-firmware-nvidia-gspx-G06={version}"),
        Distribution::Arch => "pacman -S nvidia-utils".to_owned(),
        Distribution::Nixos => {
            "hardware.firmware = [ config.hardware.nvidia.package.firmware ]; then nixos-rebuild switch"
                .to_owned()
        }
        Distribution::Other => format!("reinstall driver {version} with its firmware"),
    }
}
