//! `fabric.manager-misconfigured`

use facts::model::fabric::ManagerLine;
use facts::{Facts, Layer, Observed, Origin};

use super::{completed, fabric_waits, fifth, unfinished};
use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong};
use crate::machine::{self, Distribution};
use crate::need::Need;
use crate::readings::{self, code};
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "fabric.manager-misconfigured",
    layer: Layer::Fabric,
    claim: "the fabric manager starts in the wrong mode or with wrong arguments, and ends",
    explanation: "It is there and is started, and yet it manages nothing. The switches of the \
        fifth NVLink (B200 and later) are reached through InfiniBand: without mlx5_ib and ib_umad \
        the start script takes the machine for one of before, and the daemon finds nothing to do. \
        From driver 570.158.01 on the start script takes its arguments in another form, so that an \
        old caller makes it print its usage. Whoever started it may still report success, while \
        the GPUs stay 'In Progress' and cuInit answers 802.",
    explains: &[
        SymptomId::CudaInitFails,
        SymptomId::CudaInitHangs,
        SymptomId::FrameworkNoGpu,
        SymptomId::P2pBroken,
    ],
    specializes: &["fabric.manager-missing"],
    look_alikes: &[
        LookAlike {
            id: "fabric.manager-missing",
            tell: "the service is not installed or was never started: it has logged nothing",
        },
        LookAlike {
            id: "fabric.manager-version-skew",
            tell: "it logs two versions that don't match",
        },
        LookAlike { id: "fabric.vm-partition", tell: "a guest, whose host has the switches" },
    ],
    references: &[
        "https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/",
        "https://github.com/NVIDIA/gpu-operator/issues/2781",
        "https://github.com/NVIDIA/gpu-operator/issues/1595",
        "https://github.com/NVIDIA/gpu-driver-container/pull/383",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    let fifth = fifth(facts);
    lines(facts, fifth.is_some(), &mut weighing);
    if let Some(board) = &fifth {
        infiniband(facts, board, &mut weighing);
    }
    if weighing.support.is_empty() {
        return weighing;
    }
    fabric_waits(facts, &mut weighing);
    if let Some(line) = line(facts, |line| *line == ManagerLine::Configured) {
        weighing.rules_out("the fabric manager has configured all switches", line);
    }
    if let Some(origin) = readings::cuda_works(facts) {
        weighing.rules_out("cuInit answers 0", origin);
    } else if let Some(origin) = completed(facts) {
        weighing.rules_out("the GPUs' fabric state is 'Completed'", origin);
    }
    weighing
}

fn line(facts: &Facts, fits: impl Fn(&ManagerLine) -> bool) -> Option<&Origin> {
    facts.fabric.manager_lines.iter().find(|line| fits(&line.value)).map(|line| &line.origin)
}

/// What daemon and start script print.
fn lines(facts: &Facts, fifth: bool, weighing: &mut Weighing) {
    for line in &facts.fabric.manager_lines {
        match &line.value {
            ManagerLine::Usage(option) if option.is_empty() => {
                weighing
                    .confirms("the fabric manager's start script prints its usage", &line.origin);
            }
            ManagerLine::Usage(option) => {
                let statement = format!("the fabric manager does not know the option {option}");
                weighing.confirms(statement, &line.origin);
            }
            ManagerLine::ModuleMissing(name) => {
                let statement = format!("it does not start without the kernel module {name}");
                weighing.confirms(statement, &line.origin);
            }
            ManagerLine::ModuleTold(name) => {
                let statement = format!("{name} is not loaded");
                weighing.supports(Strong, statement, &line.origin);
            }
            ManagerLine::NothingToDo if fifth => {
                let statement = "it looks for switches in the old way and finds nothing to do";
                weighing.supports(Strong, statement, &line.origin);
            }
            ManagerLine::DetectedFifth(false) if fifth => {
                let statement =
                    "its start script takes this machine for one before the fifth NVLink";
                weighing.confirms(statement, &line.origin);
            }
            ManagerLine::BadConfiguration(said) => {
                weighing.supports(Strong, format!("it says: {said}"), &line.origin);
            }
            _ => {}
        }
    }
}

/// Machines whose switches are managed through InfiniBand. Nothing of it counts where the fabric
/// is up.
fn infiniband(facts: &Facts, board: &Origin, weighing: &mut Weighing) {
    let waits = readings::init_failed_with(facts, code::SYSTEM_NOT_READY).is_some()
        || unfinished(facts).is_some();
    if !waits {
        return;
    }
    let empty = match &facts.fabric.infiniband {
        Observed::Absent(origin) => Some(origin),
        Observed::Seen(seen) if seen.value.is_empty() => Some(&seen.origin),
        Observed::Seen(_) => None,
        Observed::Denied(..) | Observed::Unknown(_) => {
            weighing.needs(Need::Infiniband);
            None
        }
    };
    if let Some(origin) = empty {
        let statement = "there is no InfiniBand device, through which these switches are managed";
        weighing.supports(Strong, statement, origin);
        weighing.supports(Moderate, "the board has switches of the fifth NVLink", board);
    }
    for name in ["mlx5_ib", "ib_umad"] {
        if let Observed::Absent(origin) = facts.module.loaded(name) {
            weighing.supports(Strong, format!("{name} is not loaded"), &origin);
        }
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let place = machine::kernel_place(facts);
    let mut remedy = Remedy::new(Impact::RestartsService, "nothing that works now");
    let usage = line(facts, |line| matches!(line, ManagerLine::Usage(_))).is_some();
    if usage {
        remedy = remedy
            .step_to(
                Place::Engine,
                "use a driver container (or unit file) made for this driver's release",
                "its start script is called in the form of 570.158.01 and later: --args '-c FILE'",
            )
            .step_to(
                place,
                "by hand: nvidia-fabricmanager-start.sh --args '-c /usr/share/nvidia/nvswitch/fabricmanager.cfg'",
                "the option goes behind --args",
            );
    } else {
        if let Distribution::Ubuntu = machine::distribution(facts) {
            remedy = remedy.step_to(
                place,
                "apt-get install linux-modules-extra-$(uname -r)",
                "cloud kernels leave mlx5_ib and ib_umad out",
            );
        }
        remedy = remedy
            .step_to(place, "modprobe -a mlx5_ib ib_umad", "the switches are managed through them")
            .step_to(
                place,
                "printf 'mlx5_ib\\nib_umad\\n' > /etc/modules-load.d/nvidia-fabric.conf",
                "for every boot",
            )
            .step_to(place, "install nvlsm", "the subnet manager of this generation");
    }
    remedy
        .step_to(
            place,
            "systemctl restart nvidia-fabricmanager, or restart the driver pod",
            "the start script looks again",
        )
        .undo("remove /etc/modules-load.d/nvidia-fabric.conf; use the former image")
        .verify(
            "nvidia-smi -q | grep -A2 Fabric prints Completed and Success, and cuInit answers 0",
        )
        .will_not_help("waiting: the daemon has ended, and 'In Progress' stays")
        .will_not_help("that the pod is Ready: it does not ask whether the daemon runs")
}
