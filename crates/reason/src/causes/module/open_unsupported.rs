//! `module.open-unsupported`

use facts::model::log::LogEvent;
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
    id: "module.open-unsupported",
    layer: Layer::Module,
    claim: "this GPU cannot be driven by the open kernel modules that are loaded",
    explanation: "The open kernel modules leave most work to the GSP, a processor that GPUs have \
        from Turing on, so that Maxwell, Pascal and Volta need the proprietary ones. The early open \
        releases (515 to 535) were meant for data-centre GPUs: GeForce and workstation boards were \
        refused unless NVreg_OpenRmEnableUnsupportedGpus=1 was given, and 515 failed on boards \
        without the first video decoder. The module loads, logs why it refuses the GPU, and \
        nvidia-smi finds no device.",
    explains: &[
        SymptomId::GpuFaulted,
        SymptomId::GpuMissing,
        SymptomId::DriverAbsent,
        SymptomId::CudaInitFails,
        SymptomId::NvmlFails,
        SymptomId::FrameworkNoGpu,
    ],
    specializes: &["module.rm-init-failed"],
    look_alikes: &[
        LookAlike {
            id: "module.needs-open",
            tell: "the other way round: the proprietary module is loaded on a GPU that needs the open one",
        },
        LookAlike {
            id: "firmware.gsp-missing",
            tell: "the loader's error -2 names a firmware file, and no line speaks of support",
        },
        LookAlike {
            id: "module.rm-init-failed",
            tell: "no line names support or the GSP, and the chip is of Turing or later",
        },
    ],
    references: &[
        "https://github.com/NVIDIA/open-gpu-kernel-modules/issues/116",
        "https://github.com/NVIDIA/open-gpu-kernel-modules/issues/230",
        "https://github.com/siderolabs/talos/issues/6206",
        "https://github.com/siderolabs/extensions/issues/114",
        "https://github.com/NVIDIA/open-gpu-kernel-modules#compatible-gpus",
    ],
    weigh,
    remedy,
};

/// The last branch whose open modules ask for NVreg_OpenRmEnableUnsupportedGpus.
const LAST_WITH_PARAMETER: u32 = 535;

/// The branch whose open modules fail on boards without the first video decoder.
const FIRST_OPEN: u32 = 515;

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    if let Some(origin) = readings::cuda_works(facts) {
        weighing.rules_out("cuInit answers 0", origin);
        return weighing;
    }
    match facts.module.flavour() {
        Some(Seen { value: Flavour::Proprietary, origin }) => {
            weighing.rules_out("the proprietary module is loaded", &origin);
            return weighing;
        }
        Some(Seen { value: Flavour::Open, origin }) => old_chip(facts, &origin, &mut weighing),
        None => {}
    }
    said(facts, &mut weighing);
    if weighing.support.is_empty() {
        supported(facts, &mut weighing);
    } else if let Some((failure, origin)) = gpus_down(facts) {
        weighing.supports(Weak, failure, &origin);
    }
    weighing
}

/// What the module logs when it refuses a GPU.
fn said(facts: &Facts, weighing: &mut Weighing) {
    if let Some(origin) = readings::logged(facts, &["OPEN_DC_ONLY", "OPEN_UNSUPPORTED_OLD"]) {
        let statement =
            "the open module logged that it is for data-centre GPUs only, and how to override that";
        weighing.confirms(statement, origin);
    }
    for event in facts.log.with("OPEN_NO_GSP") {
        no_gsp(event, weighing);
    }
    if let Some(origin) = readings::logged(facts, &["GSP_NVDEC0"]) {
        let statement = "the log says 'missing NVDEC0 engine', a fault of the first open releases";
        weighing.supports(Strong, statement, origin);
        if let Some(seen) = readings::driver_version(facts)
            && seen.value.branch() == FIRST_OPEN
        {
            let statement = format!("{} is one of them", seen.value);
            weighing.supports(Strong, statement, &seen.origin);
        }
    }
    opt_in(facts, weighing);
}

/// The refusal for want of a GSP. The driver reads that from the chip, and a chip that is half
/// started, as behind a hypervisor or in confidential computing, reads as one that it is not.
fn no_gsp(event: &LogEvent, weighing: &mut Weighing) {
    let statement = "the module logged that the open modules do not support this GPU";
    let board = event.get("pci_id").and_then(readings::board_of_pci_id);
    let drives = board.as_ref().and_then(open_drives);
    match board.filter(|_| drives == Some(true)) {
        Some(board) => {
            weighing.supports(Moderate, statement, &event.origin);
            let statement = format!("{} has a GSP: it did not read as itself", board.name);
            weighing.objects(Strong, statement, &event.origin);
        }
        None if drives == Some(false) => {
            weighing.confirms(statement, &event.origin);
        }
        // Which GPU it is stands in a line that is not here.
        None => {
            weighing.supports(Strong, statement, &event.origin);
        }
    }
}

/// A board that is not for data centres, an open module of the branches that ask for the opt-in,
/// and no opt-in.
fn opt_in(facts: &Facts, weighing: &mut Weighing) {
    let asks = readings::driver_version(facts)
        .filter(|seen| (FIRST_OPEN..=LAST_WITH_PARAMETER).contains(&seen.value.branch()));
    let open = facts.module.flavour().is_some_and(|seen| seen.value == Flavour::Open);
    let Some(version) = asks.filter(|_| open) else { return };
    let Some((board, origin)) = consumer_board(facts) else { return };
    if given(facts).is_some() || gpus_down(facts).is_none() {
        return;
    }
    let statement =
        format!("{board} is no data-centre GPU, which open modules of {} refuse", version.value);
    weighing.supports(Strong, statement, &origin);
    if facts.module.params.contains_key("OpenRmEnableUnsupportedGpus") {
        let statement = "NVreg_OpenRmEnableUnsupportedGpus is not set";
        weighing.supports(Moderate, statement, &version.origin);
    }
}

/// Where the opt-in was seen to be given.
fn given(facts: &Facts) -> Option<&Origin> {
    let params = facts.module.params.get("OpenRmEnableUnsupportedGpus");
    if let Some(seen) = params.filter(|seen| seen.value == "1") {
        return Some(&seen.origin);
    }
    let asked = facts
        .module
        .options
        .iter()
        .find(|(_, option, _)| option == "NVreg_OpenRmEnableUnsupportedGpus=1");
    asked.map(|(_, _, origin)| origin)
}

fn consumer_board(facts: &Facts) -> Option<(String, Origin)> {
    const MARKS: [&str; 4] = ["GeForce", "Quadro", "TITAN", "RTX"];
    let consumer = |name: &str| MARKS.iter().any(|mark| name.contains(mark));
    let board = readings::boards(facts).into_iter().find(|board| consumer(&board.value.name));
    if let Some(board) = board {
        return Some((board.value.name, board.origin));
    }
    let told = facts.host.gpu_names.iter().find(|name| consumer(&name.value))?;
    Some((told.value.clone(), told.origin.clone()))
}

/// Whether the open modules drive a board; Grace Hopper and all from Turing on yes.
fn open_drives(board: &Board) -> Option<bool> {
    let chip = chip::by_name(board.product.chip?)?;
    Some(chip.open != OpenSupport::No)
}

/// A GPU from before Turing under the open module.
fn old_chip(facts: &Facts, flavour: &Origin, weighing: &mut Weighing) {
    let boards = readings::boards(facts);
    let Some(board) = boards.iter().find(|board| open_drives(&board.value) == Some(false)) else {
        return;
    };
    let statement = format!("{} has no GSP, which the open modules need", board.value.name);
    weighing.supports(Strong, statement, &board.origin);
    if gpus_down(facts).is_some() {
        weighing.confirms("the open module is loaded", flavour);
    } else {
        weighing.supports(Moderate, "the open module is loaded", flavour);
    }
}

/// A GPU and a branch that the open modules drive without more ado.
fn supported(facts: &Facts, weighing: &mut Weighing) {
    let boards = readings::boards(facts);
    let known = boards.iter().all(|board| open_drives(&board.value) == Some(true));
    let recent = readings::driver_version(facts)
        .is_some_and(|seen| seen.value.branch() > LAST_WITH_PARAMETER);
    if let (Some(board), true, true) = (boards.first(), known, recent) {
        let statement = format!("the open modules of this branch drive {}", board.value.name);
        weighing.rules_out(statement, &board.origin);
    } else if gpus_down(facts).is_some() {
        weighing.needs(Need::GpuModel);
        weighing.needs(Need::ModuleFlavour);
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let place = machine::kernel_place(facts);
    let old = readings::boards(facts).iter().any(|board| open_drives(&board.value) == Some(false));
    let remedy = if old {
        reload().step_to(
            place,
            proprietary(facts),
            "the flavour that drives this GPU; branch 580 is its last",
        )
    } else {
        reload()
            .step_to(
                place,
                "install driver 550 or later",
                "there the open modules take GeForce and workstation boards as they are",
            )
            .step_to(
                place,
                "or: echo 'options nvidia NVreg_OpenRmEnableUnsupportedGpus=1' > /etc/modprobe.d/nvidia-open.conf",
                "the opt-in of branches 515 to 535",
            )
            .step_to(place, proprietary(facts), "or the other flavour of the same release")
    };
    reload_step(facts, remedy)
        .undo("install the open modules again; rm /etc/modprobe.d/nvidia-open.conf")
        .verify("nvidia-smi lists the GPU, and gpudx is healthy")
        .will_not_help("another firmware file: the module refuses the GPU before it needs one")
        .will_not_help("another CUDA toolkit or framework: the GPU does not start beneath them")
}

fn proprietary(facts: &Facts) -> &'static str {
    match machine::distribution(facts) {
        Distribution::Ubuntu => "apt install nvidia-driver-BRANCH (without -open)",
        Distribution::Debian | Distribution::Proxmox => "apt install nvidia-kernel-dkms",
        Distribution::Fedora | Distribution::Rhel => {
            "dnf module switch-to nvidia-driver:latest-dkms (RPM Fusion: akmod-nvidia without the open macro)"
        }
        Distribution::Suse => "zypper install nvidia-driver-G06-kmp-default",
        Distribution::Arch => "pacman -S nvidia-dkms",
        Distribution::Nixos => {
            "hardware.nvidia.open = false; in the configuration, then nixos-rebuild switch"
        }
        Distribution::Other => {
            "run the driver's installer again with --kernel-module-type=proprietary"
        }
    }
}
