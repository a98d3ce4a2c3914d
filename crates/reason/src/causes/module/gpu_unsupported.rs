//! `module.gpu-unsupported`

use facts::model::log::LogEvent;
use facts::version::DriverVersion;
use facts::{Facts, Layer, Origin};
use nvabi::pci_id;

use super::gpus_down;
use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::gpu_state;
use crate::machine::{self, Distribution};
use crate::need::Need;
use crate::readings;
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

mod range;

use range::Range;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "module.gpu-unsupported",
    layer: Layer::Module,
    claim: "the installed driver release does not drive this GPU",
    explanation: "A release drives the GPUs of its time. Older ones move to a legacy branch (Fermi \
        390, Kepler 470, Maxwell, Pascal and Volta 580), and the releases after it load, log the \
        branch that they want and ignore the GPU. A GPU that is newer than the release is refused \
        as not supported. The module stays without a device and often cannot be loaded at all. The \
        refusal alone proves little: a GPU that is powered down or half started does not read as \
        itself and is refused with the same words by a release that lists it.",
    explains: &[
        SymptomId::GpuFaulted,
        SymptomId::GpuMissing,
        SymptomId::DriverAbsent,
        SymptomId::CudaInitFails,
        SymptomId::NvmlFails,
        SymptomId::FrameworkNoGpu,
    ],
    specializes: &["pci.no-gpu", "module.rm-init-failed", "module.not-loaded"],
    look_alikes: &[
        LookAlike {
            id: "module.open-unsupported",
            tell: "the refusal speaks of the open nvidia.ko and the GSP: the proprietary module of the same release would do",
        },
        LookAlike {
            id: "module.needs-open",
            tell: "the refusal asks for the open kernel modules, of the same release",
        },
        LookAlike {
            id: "pci.power-state",
            tell: "the release lists the GPU, which is powered down and does not read as itself",
        },
        LookAlike {
            id: "framework.driver-too-old",
            tell: "the driver drives the GPU, and the program's CUDA wants a newer one",
        },
        LookAlike { id: "pci.no-gpu", tell: "no line of the driver names a GPU" },
    ],
    references: &[
        "https://www.nvidia.com/en-us/drivers/unix/legacy-gpu/",
        "https://github.com/siderolabs/talos/issues/8764",
        "https://github.com/NixOS/nixos-hardware/issues/1880",
        "https://github.com/Bumblebee-Project/Bumblebee/issues/810",
        "src/nvidia/arch/nvalloc/unix/src/osapi.c (rm_is_supported_pci_device)",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    if let Some(origin) = readings::cuda_works(facts) {
        weighing.rules_out("cuInit answers 0", origin);
        return weighing;
    }
    legacy(facts, &mut weighing);
    for event in facts.log.with("UNSUPPORTED_GPU") {
        refused(facts, event, &mut weighing);
    }
    if weighing.support.is_empty() {
        by_table(facts, &mut weighing);
    } else if let Some((failure, origin)) = gpus_down(facts) {
        weighing.supports(Weak, failure, &origin);
    }
    weighing
}

/// The driver knows the GPU and names the branch that drives it.
fn legacy(facts: &Facts, weighing: &mut Weighing) {
    if let Some(event) = facts.log.with("LEGACY_GPU").next() {
        let name = event.get("name").unwrap_or("GPU");
        let release = event.get("version").unwrap_or("this release");
        let statement = match event.get("branch") {
            Some(branch) => format!("{release} ignores the {name}: branch {branch} drives it"),
            None => format!("{release} leaves the {name} to a legacy branch"),
        };
        weighing.confirms(statement, &event.origin);
    } else if let Some(event) = facts.log.with("LEGACY_IGNORED").next() {
        weighing.confirms("the driver ignores a GPU of a legacy branch", &event.origin);
    }
}

/// The driver does not know the GPU, or does not read it as what it is.
fn refused(facts: &Facts, event: &LogEvent, weighing: &mut Weighing) {
    let release = release_of(facts, event);
    let device = event.get("pci_id").and_then(device_of);
    let named = release.as_ref().map_or("this release".to_owned(), DriverVersion::to_string);
    let known = device.and_then(pci_id::by_device);
    let range = match (&known, &release) {
        (Some(id), Some(release)) => range::of_device(id, release),
        _ => Range::Unknown,
    };
    let said = format!("the driver logged that {named} does not support the GPU");
    match (range, known, gpu_state::vgpu_guest(facts)) {
        (Range::Outside(why), ..) => {
            weighing.supports(Strong, said, &event.origin);
            weighing.confirms(why, &event.origin);
        }
        (Range::Inside, Some(_), Some(guest)) => {
            weighing.supports(Strong, said, &event.origin);
            let statement =
                "a vGPU, which looks like its GPU, and which the driver of machines does not drive";
            weighing.supports(Moderate, statement, &guest);
        }
        (Range::Inside, Some(id), None)
            if may_be_shared(facts, id.product_name.unwrap_or(id.name)) =>
        {
            weighing.supports(Strong, said, &event.origin);
            weighing.needs(Need::VgpuVersions);
        }
        (Range::Inside, Some(id), None) => {
            weighing.supports(Moderate, said, &event.origin);
            let name = id.product_name.unwrap_or(id.name);
            let statement = format!("{named} lists {name}, which did not read as itself");
            weighing.objects(Strong, statement, &event.origin);
            weighing.needs(Need::PowerState);
        }
        _ => {
            weighing.supports(Strong, said, &event.origin);
            weighing.needs(Need::GpuModel);
        }
    }
}

/// A guest's GPU, or a board for servers, which are often given to guests in parts: a part reads as
/// its GPU, and only the driver for guests knows it.
fn may_be_shared(facts: &Facts, name: &str) -> bool {
    let name = name.trim_start_matches("NVIDIA ");
    let for_servers =
        ["Tesla ", "A10", "A16", "A2", "A30", "A40", "L2", "L4", "H100", "H200", "GRID"];
    gpu_state::hypervisor(facts).is_some()
        || for_servers.iter().any(|family| name.starts_with(family))
}

/// The release that the refusal names, else the loaded one.
fn release_of(facts: &Facts, event: &LogEvent) -> Option<DriverVersion> {
    let own = event.get("version").and_then(DriverVersion::parse);
    own.or_else(|| readings::driver_version(facts).map(|seen| seen.value))
}

/// `10de:13b0`
fn device_of(id: &str) -> Option<u16> {
    u16::from_str_radix(id.strip_prefix("10de:")?, 16).ok()
}

/// A board and a release that do not go together, and a driver that brings no GPU up.
fn by_table(facts: &Facts, weighing: &mut Weighing) {
    // What NVML lists is driven.
    if !facts.nvml.gpus.is_empty() {
        return;
    }
    let Some((why, origin)) = outside(facts) else { return };
    weighing.supports(Strong, why, &origin);
    if let Some((failure, origin)) = gpus_down(facts) {
        weighing.supports(Strong, failure, &origin);
    } else {
        weighing.needs(Need::Nvml);
    }
}

/// The first board outside the range of the installed release, when every board is.
fn outside(facts: &Facts) -> Option<(String, Origin)> {
    let release = readings::driver_version(facts)?;
    let mut found = None;
    for board in readings::boards(facts) {
        match range::of_board(&board.value, &release.value) {
            Range::Outside(why) => found = found.or(Some((why, board.origin))),
            Range::Inside | Range::Unknown => return None,
        }
    }
    found
}

/// The branch that the driver asks for, or the last one for the chip.
fn wanted_branch(facts: &Facts) -> Option<String> {
    let told = facts.log.with("LEGACY_GPU").find_map(|event| event.get("branch"));
    told.map(str::to_owned).or_else(|| {
        let devices = facts.log.with("UNSUPPORTED_GPU").filter_map(|event| event.get("pci_id"));
        let mut chips = devices.filter_map(device_of).filter_map(pci_id::by_device);
        let by_log = chips.find_map(|id| range::last_branch(id.chip));
        let boards = readings::boards(facts);
        let by_board = || boards.iter().find_map(|at| range::last_branch(at.value.product.chip?));
        by_log.or_else(by_board).map(|branch| branch.to_string())
    })
}

fn remedy(facts: &Facts) -> Remedy {
    let place = machine::kernel_place(facts);
    let remedy = Remedy::new(Impact::Reboots, "every program that uses a GPU");
    let remedy = match wanted_branch(facts) {
        _ if gpu_state::vgpu_guest(facts).is_some() => for_vgpu(remedy),
        Some(branch) => remedy
            .step_to(place, install(facts, &branch), "the last branch that drives this GPU")
            .will_not_help("the newest driver: it no longer drives this GPU"),
        None => remedy
            .step_to(
                place,
                "install the release that NVIDIA's driver search names for this GPU",
                "the list of supported products in its README decides",
            )
            .step_to(
                place,
                "lspci -nnk -d 10de:",
                "(rev ff) or D3cold: the GPU is powered down, and no release would know it",
            ),
    };
    remedy
        .step_to(place, "reboot", "the old module goes with it")
        .undo("install the driver from before again")
        .verify("nvidia-smi lists the GPU, and gpudx is healthy")
        .will_not_help("another CUDA toolkit or framework: the GPU does not start beneath them")
        .will_not_help("looking for nouveau or device nodes: the module itself declines the GPU")
}

fn for_vgpu(remedy: Remedy) -> Remedy {
    remedy
        .step_to(
            Place::Hypervisor,
            "nvidia-smi -q | grep -E 'Driver Version|Host VGPU Mode'",
            "the version of the vGPU manager decides which guest drivers fit",
        )
        .step_to(
            Place::Guest,
            "sh NVIDIA-Linux-x86_64-VERSION-grid.run",
            "the guest driver of the manager's release of the vGPU software, from the licence portal",
        )
        .will_not_help("a driver from a distribution or from the public site, of any version")
}

fn install(facts: &Facts, branch: &str) -> String {
    match machine::distribution(facts) {
        Distribution::Ubuntu => format!("apt install nvidia-driver-{branch}"),
        Distribution::Debian | Distribution::Proxmox => {
            format!("apt install nvidia-tesla-{branch}-driver, or the .run file of branch {branch}")
        }
        Distribution::Fedora | Distribution::Rhel => {
            format!("dnf install akmod-nvidia-{branch}xx xorg-x11-drv-nvidia-{branch}xx-cuda")
        }
        Distribution::Arch => format!("install nvidia-{branch}xx-dkms from the AUR"),
        Distribution::Nixos => format!(
            "hardware.nvidia.package = config.boot.kernelPackages.nvidiaPackages.legacy_{branch}; then nixos-rebuild switch"
        ),
        Distribution::Suse | Distribution::Other => {
            format!("install the last driver of branch {branch}, from packages or the .run file")
        }
    }
}
