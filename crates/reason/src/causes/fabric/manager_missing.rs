//! `fabric.manager-missing`

use facts::model::fabric::ServiceState;
use facts::{Facts, Layer, Observed, Origin};

use super::started;
use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Decisive, Moderate, Strong, Weak};
use crate::machine::{self, Distribution};
use crate::need::Need;
use crate::readings::{self, Board, code};
use crate::remedy::{Impact, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "fabric.manager-missing",
    layer: Layer::Fabric,
    claim: "this machine has NVSwitches, and no fabric manager runs",
    explanation: "On HGX and DGX boards the GPUs hang on NVSwitches that somebody must configure: \
        the service nvidia-fabricmanager, of exactly the driver's version. Until it has registered \
        a GPU with the fabric, nvidia-smi lists the GPU as healthy, its fabric state stays 'In \
        Progress' or 'Not Started', and cuInit answers 802 or asks again without end. Machines \
        without NVSwitch need no such service, and a guest without switches depends on the one of \
        its host.",
    explains: &[SymptomId::CudaInitFails, SymptomId::CudaInitHangs, SymptomId::FrameworkNoGpu],
    specializes: &[],
    look_alikes: &[
        LookAlike {
            id: "fabric.manager-version-skew",
            tell: "the service starts, logs two versions and ends",
        },
        LookAlike {
            id: "fabric.manager-misconfigured",
            tell: "the service is installed and ends at once: wrong arguments, missing InfiniBand modules",
        },
        LookAlike {
            id: "fabric.vm-partition",
            tell: "a guest with SXM GPUs and no switch on its bus",
        },
        LookAlike {
            id: "platform.cc-not-ready",
            tell: "confidential computing is on, and its ready state is off",
        },
    ],
    references: &[
        "https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/",
        "https://github.com/pytorch/pytorch/issues/35710",
        "https://github.com/gpustack/gpustack/issues/1254",
        "https://github.com/NVIDIA/gpu-operator/issues/2781",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    let answer = readings::init_failed_with(facts, code::SYSTEM_NOT_READY);
    let switches = switches(facts);
    match &switches {
        Switches::None(statement, origin) => {
            // Where nothing hints at a fabric the cause is not worth a line.
            if answer.is_none() {
                return Weighing::not_applicable();
            }
            weighing.rules_out(statement.clone(), origin);
        }
        Switches::Seen(statement, origin) if answer.is_some() => {
            weighing.supports(Moderate, *statement, origin);
        }
        Switches::Board(name, origin) if answer.is_some() => {
            weighing.supports(Weak, format!("{name} is a board for NVSwitch machines"), origin);
            weighing.needs(Need::PciDevices);
        }
        Switches::Unknown if answer.is_none() => return Weighing::not_applicable(),
        Switches::Unknown => {
            weighing.needs(Need::PciDevices);
        }
        Switches::Seen(..) | Switches::Board(..) => {}
    }
    if let Some(origin) = readings::cuda_works(facts) {
        weighing.rules_out("cuInit answers 0", origin);
        return weighing;
    }
    if let Some(trial) = answer {
        let strength = if matches!(switches, Switches::Seen(..)) { Strong } else { Moderate };
        weighing.supports(strength, "cuInit answers 802, system not ready", &trial.origin);
    } else if let Some((other, trial)) = readings::init_failure(facts) {
        weighing.objects(Strong, format!("cuInit answers {other}, not 802"), &trial.origin);
    }
    if let (Switches::Seen(..), Some(trial)) = (&switches, readings::init_hang(facts)) {
        let statement = "cuInit does not return, as while the fabric is in progress";
        weighing.supports(Weak, statement, &trial.origin);
    }
    service(facts, &switches, answer.is_some(), &mut weighing);
    state(facts, &mut weighing);
    weighing
}

/// What is known of NVSwitches.
enum Switches {
    /// They are here.
    Seen(&'static str, Origin),
    /// The GPUs are of a board that comes with them; whether this machine has them is not known.
    Board(String, Origin),
    /// There are none.
    None(String, Origin),
    /// Nothing is known.
    Unknown,
}

fn switches(facts: &Facts) -> Switches {
    let bus = facts.pci.devices.origin().filter(|_| facts.pci.nvswitches().next().is_some());
    if let Some(origin) = bus {
        return Switches::Seen("NVSwitches are on the bus", origin.clone());
    }
    if let Observed::Seen(seen) = facts.module.major("nvidia-nvswitch") {
        return Switches::Seen("the kernel has registered nvidia-nvswitch", seen.origin);
    }
    if let Some(seen) = facts.fabric.nvswitch.as_seen() {
        return if seen.value {
            Switches::Seen("NVSwitches are here", seen.origin.clone())
        } else {
            Switches::None("this machine has no NVSwitch".to_owned(), seen.origin.clone())
        };
    }
    let boards = readings::boards(facts);
    let on_switches = boards.iter().find(|board| is_switch_board(&board.value));
    match (on_switches, boards.first()) {
        // The switches of the fifth NVLink are not on the PCI bus of the host.
        (Some(board), _) if board.value.product.architecture.starts_with("Blackwell") => {
            Switches::Board(board.value.name.clone(), board.origin.clone())
        }
        (Some(board), _) if facts.pci.devices.is_seen() => {
            without_switch(facts, &board.value, &board.origin)
        }
        (Some(board), _) => Switches::Board(board.value.name.clone(), board.origin.clone()),
        (None, Some(board)) => {
            let statement = format!("{} is no board for NVSwitch machines", board.value.name);
            Switches::None(statement, board.origin.clone())
        }
        (None, None) => Switches::Unknown,
    }
}

/// SXM boards whose bus was listed and holds no switch: four GPUs linked directly, or a guest that
/// was given GPUs alone.
fn without_switch(facts: &Facts, board: &Board, origin: &Origin) -> Switches {
    let guest = facts.host.hypervisor.value().is_some_and(|name| name != "none");
    let here = if guest { "in this guest" } else { "on this bus" };
    Switches::None(format!("{} without a switch {here}", board.name), origin.clone())
}

/// Boards that sit on NVSwitch machines: SXM modules of A100 and later with many siblings. PCIe,
/// NVL and workstation boards do not.
pub(super) fn is_switch_board(board: &Board) -> bool {
    const NAMES: [&str; 9] = [
        "SXM",
        "HGX",
        "H100 80GB HBM3",
        "NVIDIA H200",
        "NVIDIA H20",
        "NVIDIA H800",
        "NVIDIA B200",
        "NVIDIA B300",
        "NVIDIA GB200",
    ];
    const OTHERS: [&str; 3] = ["PCIe", "NVL", "V100"];
    let name = &board.name;
    NAMES.iter().any(|part| name.contains(part)) && !OTHERS.iter().any(|part| name.contains(part))
}

/// What a line of the daemon's own log says.
const STARTED: &str = "the fabric manager is there and was started";

/// The service. With switches and 802 its absence is proof; where nothing is known of switches it
/// says little, since most machines have no such service.
fn service(facts: &Facts, switches: &Switches, answered: bool, weighing: &mut Weighing) {
    let (statement, origin) = match &facts.fabric.manager {
        Observed::Seen(seen) => match &seen.value {
            ServiceState::Running => {
                weighing.rules_out("nvidia-fabricmanager is running", &seen.origin);
                return;
            }
            ServiceState::NotInstalled => {
                ("nvidia-fabricmanager is not installed".to_owned(), &seen.origin)
            }
            ServiceState::Stopped(said) if said.contains("failed") => {
                if let Some(line) = started(facts) {
                    weighing.rules_out(STARTED, line);
                    return;
                }
                // It was started and ended by itself: why, its log tells.
                weighing.supports(Moderate, format!("nvidia-fabricmanager: {said}"), &seen.origin);
                return;
            }
            ServiceState::Stopped(said) => (format!("nvidia-fabricmanager: {said}"), &seen.origin),
        },
        Observed::Absent(origin) => ("there is no nvidia-fabricmanager".to_owned(), origin),
        Observed::Denied(..) | Observed::Unknown(_) => {
            match started(facts) {
                Some(line) => weighing.rules_out(STARTED, line),
                None => weighing.needs(Need::FabricManager),
            };
            return;
        }
    };
    let strength = match switches {
        Switches::Seen(..) if answered => Decisive,
        Switches::Seen(..) | Switches::Board(..) => Strong,
        Switches::None(..) | Switches::Unknown => Weak,
    };
    if !weighing.support.is_empty() {
        weighing.supports(strength, statement, origin);
    }
}

/// The fabric's state as the GPUs report it.
fn state(facts: &Facts, weighing: &mut Weighing) {
    let mut reported = facts.nvml.gpus.iter().filter_map(|gpu| {
        Some((gpu.value.fabric_state.as_deref()?, gpu.value.fabric_status.as_deref(), &gpu.origin))
    });
    if let Some((word, _, origin)) =
        reported.clone().find(|(word, ..)| matches!(*word, "In Progress" | "Not Started"))
    {
        weighing.supports(Moderate, format!("the GPUs' fabric state is '{word}'"), origin);
    } else if let Some((_, _, origin)) = reported
        .find(|(word, status, _)| *word == "Completed" && status.is_none_or(|s| s == "Success"))
    {
        weighing.rules_out("the GPUs' fabric state is 'Completed'", origin);
    } else {
        weighing.needs(Need::FabricState);
    }
    if let Some(origin) = readings::logged(facts, &["FABRIC_ADDR"]) {
        weighing.supports(Moderate, "the driver logged a GPU without a fabric address", origin);
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let place = machine::kernel_place(facts);
    let version = readings::driver_version(facts);
    let version = version.map_or("VERSION".to_owned(), |seen| seen.value.to_string());
    let remedy = Remedy::new(Impact::RestartsService, "nothing that works now").step_to(
        place,
        install(facts, &version),
        "exactly the driver's version",
    );
    let remedy = if fifth_nvlink(facts) {
        remedy
            .step_to(
                place,
                "modprobe -a mlx5_ib ib_umad",
                "the switches are managed through InfiniBand",
            )
            .step_to(place, "install nvlsm", "the subnet manager of this generation")
    } else {
        remedy
    };
    remedy
        .step_to(
            place,
            "systemctl enable --now nvidia-fabricmanager",
            "starts it now and at every boot",
        )
        .undo("systemctl disable --now nvidia-fabricmanager")
        .verify(
            "nvidia-smi -q | grep -A2 Fabric prints Completed and Success, and cuInit answers 0",
        )
        .will_not_help("another PyTorch build: a bare cuInit answers 802 as well")
        .will_not_help(
            "a fabric manager of another release: it refuses a driver that is not its own",
        )
}

/// Blackwell boards, whose switches speak InfiniBand to their manager.
pub(super) fn fifth_nvlink(facts: &Facts) -> bool {
    readings::boards(facts).iter().any(|board| {
        board.value.product.architecture.starts_with("Blackwell") && is_switch_board(&board.value)
    })
}

pub(super) fn install(facts: &Facts, version: &str) -> String {
    let branch = version.split('.').next().unwrap_or_default();
    match machine::distribution(facts) {
        Distribution::Ubuntu | Distribution::Debian | Distribution::Proxmox => {
            format!("apt install 'nvidia-fabricmanager-{branch}={version}*'")
        }
        Distribution::Fedora | Distribution::Rhel => {
            format!("dnf install nvidia-fabric-manager-{version}")
        }
        Distribution::Suse => format!("zypper install nvidia-fabricmanager={version}"),
        Distribution::Arch | Distribution::Nixos | Distribution::Other => {
            format!("install nvidia-fabricmanager {version}")
        }
    }
}
