//! `module.needs-open`

use facts::model::module::Flavour;
use facts::{Facts, Layer, Origin, Seen};
use nvabi::chip::{self, OpenSupport};

use super::{gpus_down, reload, reload_step};
use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::machine::{self, Distribution};
use crate::need::Need;
use crate::readings::{self, Board};
use crate::remedy::Remedy;
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "module.needs-open",
    layer: Layer::Module,
    claim: "this GPU needs the open kernel modules, and the proprietary ones are loaded",
    explanation: "NVIDIA ships each driver in two flavours of kernel modules with the same version. \
        Blackwell and Grace Hopper are driven by the open one alone; Turing to Hopper by either. \
        The proprietary module loads, refuses the GPU, and nvidia-smi says that no devices were \
        found; newer releases log that the GPU 'requires use of the NVIDIA open kernel modules', \
        older ones only that RmInitAdapter failed. On GB10 the refusal shows as Xid 169 and as \
        calls that take a minute.",
    explains: &[
        SymptomId::GpuFaulted,
        SymptomId::GpuMissing,
        SymptomId::DriverAbsent,
        SymptomId::CudaInitFails,
        SymptomId::CudaInitHangs,
        SymptomId::NvmlFails,
        SymptomId::NvmlHangs,
        SymptomId::FrameworkNoGpu,
    ],
    specializes: &["module.rm-init-failed"],
    look_alikes: &[
        LookAlike {
            id: "firmware.gsp-lacks-chip",
            tell: "the open module is loaded, and its firmware file lacks the chip's family",
        },
        LookAlike {
            id: "module.open-unsupported",
            tell: "the other way round: the open module is loaded on a GPU that it cannot drive",
        },
        LookAlike {
            id: "module.rm-init-failed",
            tell: "the loaded module is of the right flavour for the chip",
        },
        LookAlike {
            id: "pci.bar-unassigned",
            tell: "the kernel log calls a PCI I/O region of the GPU invalid",
        },
    ],
    references: &[
        "https://github.com/NVIDIA/open-gpu-kernel-modules#compatible-gpus",
        "https://developer.nvidia.com/blog/nvidia-transitions-fully-towards-open-source-gpu-kernel-modules/",
        "https://github.com/Start9Labs/start-technologies/pull/3693",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    if let Some(origin) = readings::logged(facts, &["NEED_OPEN_MODULES"]) {
        weighing.confirms("the driver logged that this GPU requires the open modules", origin);
    }
    let flavour = flavour(facts);
    match &flavour {
        Some(Seen { value: Flavour::Open, origin }) => {
            weighing.rules_out("the open kernel module is loaded", origin);
            return weighing;
        }
        Some(_) => {}
        None => {
            weighing.needs(Need::ModuleFlavour);
        }
    }
    if let Some(origin) = readings::cuda_works(facts) {
        weighing.rules_out("cuInit answers 0", origin);
        return weighing;
    }
    if let Some(origin) = &facts.module.open_wanted_told {
        let statement =
            "the input says that the GPU needs the open modules, and the others refuse it";
        weighing.supports(Moderate, statement, origin);
    }
    match demand(facts) {
        Demand::Open(name, origin) => {
            refused(facts, &name, &origin, flavour.as_ref(), &mut weighing);
        }
        Demand::Either(name, origin) => {
            weighing.rules_out(format!("{name} does not need the open modules"), &origin);
        }
        Demand::Unknown => {
            weighing.needs(Need::GpuModel);
        }
    }
    weighing
}

/// Flavour of the loaded module: its own version line, or the kernel's remark on its licence.
fn flavour(facts: &Facts) -> Option<Seen<Flavour>> {
    facts.module.flavour().or_else(|| {
        let taint = facts.log.with("TAINT").last()?;
        let proprietary = taint.get("lic") == Some("NVIDIA");
        proprietary.then(|| Seen::new(Flavour::Proprietary, taint.origin.clone()))
    })
}

/// A GPU that only the open modules drive, and what the driver makes of it.
fn refused(
    facts: &Facts,
    name: &str,
    chip: &Origin,
    flavour: Option<&Seen<Flavour>>,
    weighing: &mut Weighing,
) {
    let down = gpus_down(facts);
    let statement = format!("{name} is driven by the open modules alone");
    let Some(flavour) = flavour else {
        if let Some((failure, origin)) = down {
            weighing.supports(Weak, statement, chip);
            weighing.supports(Weak, failure, &origin);
        }
        return;
    };
    weighing.supports(Moderate, statement, chip);
    if let Some((failure, origin)) = down {
        weighing.confirms("the proprietary module is loaded", &flavour.origin);
        weighing.supports(Weak, failure, &origin);
    } else {
        weighing.supports(Strong, "the proprietary module is loaded", &flavour.origin);
    }
    if let Some((_, event)) = facts.log.xids().find(|(xid, _)| *xid == 169) {
        weighing.supports(
            Moderate,
            "the kernel log has Xid 169, as the refusal shows on GB10",
            &event.origin,
        );
    }
    if let Some(gpu) = facts.nvml.gpus.first() {
        weighing.objects(Strong, "NVML lists GPUs, so the module drives some", &gpu.origin);
    }
    if let Some(origin) = readings::logged(facts, &["BAR_INVALID"]) {
        weighing.objects(
            Moderate,
            "a BAR of the GPU has no address, which either flavour refuses",
            origin,
        );
    }
}

/// Which flavour the GPUs at hand ask for.
enum Demand {
    /// One of them is driven by the open modules alone.
    Open(String, Origin),
    /// None of them asks for the open modules.
    Either(String, Origin),
    /// Not every GPU is known.
    Unknown,
}

fn demand(facts: &Facts) -> Demand {
    let boards = readings::boards(facts);
    let asks = |board: &Seen<Board>| requires_open(&board.value);
    if let Some(board) = boards.iter().find(|board| asks(board) == Some(true)) {
        return Demand::Open(board.value.name.clone(), board.origin.clone());
    }
    let known = boards.iter().all(|board| asks(board) == Some(false));
    match boards.first() {
        Some(board) if known && boards.len() >= facts.pci.gpus().count() => {
            Demand::Either(board.value.name.clone(), board.origin.clone())
        }
        _ => Demand::Unknown,
    }
}

/// Whether only the open modules drive a board. Grace Hopper shares its chip with H100, so there
/// the name decides.
fn requires_open(board: &Board) -> Option<bool> {
    if board.name.contains("GH200") {
        return Some(true);
    }
    let chip = chip::by_name(board.product.chip?)?;
    Some(chip.open == OpenSupport::Required)
}

fn remedy(facts: &Facts) -> Remedy {
    let place = machine::kernel_place(facts);
    let version = readings::driver_version(facts);
    let branch =
        version.as_ref().map_or("BRANCH".to_owned(), |seen| seen.value.branch().to_string());
    let remedy =
        reload().step_to(place, install(facts, &branch), "the same version in the other flavour");
    reload_step(facts, remedy)
        .undo("install the proprietary modules again")
        .verify("cat /proc/driver/nvidia/version says 'Open Kernel Module', and gpudx is healthy")
        .will_not_help("an older or newer proprietary driver: that flavour does not drive this GPU")
        .will_not_help("another CUDA toolkit or framework: the GPU does not start beneath them")
}

fn install(facts: &Facts, branch: &str) -> String {
    match machine::distribution(facts) {
        Distribution::Ubuntu => format!("apt install nvidia-driver-{branch}-open"),
        Distribution::Debian | Distribution::Proxmox => {
            "apt install nvidia-open-kernel-dkms (NVIDIA's repository: nvidia-open)".to_owned()
        }
        Distribution::Fedora | Distribution::Rhel => {
            "dnf install --allowerasing nvidia-open (module streams: dnf module switch-to nvidia-driver:open-dkms)".to_owned()
        }
        Distribution::Suse => "zypper install nvidia-open-driver-G06-signed-kmp-default".to_owned(),
        Distribution::Arch => "pacman -S nvidia-open-dkms".to_owned(),
        Distribution::Nixos => "hardware.nvidia.open = true; in the configuration, then nixos-rebuild switch".to_owned(),
        Distribution::Other => {
            "run the driver's installer again with --kernel-module-type=open".to_owned()
        }
    }
}
