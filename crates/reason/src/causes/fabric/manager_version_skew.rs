//! `fabric.manager-version-skew`

use facts::model::fabric::{ManagerLine, ServiceState};
use facts::version::DriverVersion;
use facts::{Facts, Layer, Observed, Origin};

use super::{completed, fabric_waits, manager_missing};
use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Strong, Weak};
use crate::machine;
use crate::need::Need;
use crate::readings;
use crate::remedy::{Impact, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "fabric.manager-version-skew",
    layer: Layer::Fabric,
    claim: "fabric manager and driver differ in version",
    explanation: "The fabric manager speaks the driver's private interface and accepts only the \
        release that it was built with, all parts of the version equal. After an upgrade of one of \
        the two it logs that its interface version doesn't match and ends; the GPUs then stay \
        unregistered and cuInit answers 802. Package managers bring this about where driver and \
        fabric manager come from different repositories, or only one of them is held back.",
    explains: &[
        SymptomId::CudaInitFails,
        SymptomId::CudaInitHangs,
        SymptomId::FrameworkNoGpu,
        SymptomId::P2pBroken,
    ],
    specializes: &["fabric.manager-missing", "fabric.manager-misconfigured"],
    look_alikes: &[
        LookAlike {
            id: "fabric.manager-missing",
            tell: "the service is not installed or was never started: it has logged nothing",
        },
        LookAlike {
            id: "fabric.manager-misconfigured",
            tell: "the versions are equal, and it ends over an option, a module or a file",
        },
        LookAlike {
            id: "module.version-skew",
            tell: "the libraries differ from the module: cuInit answers 803, NVML 18",
        },
    ],
    references: &[
        "https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/",
        "https://github.com/NVIDIA/gpu-operator/issues/544",
        "https://github.com/NVIDIA/gpu-driver-container/issues/735",
        "kernel-open/nvidia/linux_nvswitch.c (Version mismatch)",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    said(facts, &mut weighing);
    versions(facts, &mut weighing);
    if weighing.support.is_empty() && weighing.against.is_empty() {
        let stopped = matches!(facts.fabric.manager.value(), Some(ServiceState::Stopped(_)));
        if stopped {
            weighing.needs(Need::FabricLog);
        }
        return weighing;
    }
    if !weighing.support.is_empty() {
        fabric_waits(facts, &mut weighing);
    }
    if let Some(origin) = readings::cuda_works(facts) {
        weighing.rules_out("cuInit answers 0", origin);
    } else if let Some(origin) = completed(facts) {
        weighing.rules_out("the GPUs' fabric state is 'Completed'", origin);
    }
    weighing
}

/// Its own words, and the switch driver's.
fn said(facts: &Facts, weighing: &mut Weighing) {
    if let Some((own, driver, origin)) = refusal(facts) {
        // The line itself is no witness of which driver is loaded.
        let loaded = readings::driver_version(facts)
            .filter(|seen| (&seen.origin.item, seen.origin.line) != (&origin.item, origin.line))
            .map(|seen| seen.value);
        let statement = format!("the fabric manager {own} refuses driver {driver}");
        // A line about another driver than the loaded one is from before it was replaced.
        if loaded.is_some_and(|loaded| loaded == *own) {
            weighing.supports(Weak, statement, &origin);
        } else {
            weighing.confirms(statement, &origin);
        }
    }
    if let Some(event) = facts.log.with("NVSWITCH_MISMATCH").last() {
        let (kernel, user) = (event.get("k").unwrap_or("?"), event.get("u").unwrap_or("?"));
        weighing.confirms(
            format!("the switch driver is {kernel}, what opens it {user}"),
            &event.origin,
        );
    }
}

/// The last refusal: its own version, the driver's.
fn refusal(facts: &Facts) -> Option<(&DriverVersion, &DriverVersion, Origin)> {
    facts.fabric.manager_lines.iter().rev().find_map(|line| match &line.value {
        ManagerLine::VersionMismatch(own, driver) => Some((own, driver, line.origin.clone())),
        _ => None,
    })
}

/// The package's version against the driver's.
fn versions(facts: &Facts, weighing: &mut Weighing) {
    let (Some(manager), Some(driver)) =
        (facts.fabric.manager_version.as_seen(), readings::driver_version(facts))
    else {
        return;
    };
    if manager.value == driver.value {
        let statement = format!("fabric manager {} = driver {}", manager.value, driver.value);
        if weighing.support.is_empty() {
            weighing.rules_out(statement, &manager.origin);
        }
        return;
    }
    let runs = matches!(&facts.fabric.manager, Observed::Seen(seen) if seen.value == ServiceState::Running);
    let statement = format!("the fabric manager is {}, the driver {}", manager.value, driver.value);
    if !runs {
        weighing.supports(Strong, statement, &manager.origin);
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let place = machine::kernel_place(facts);
    let driver = refusal(facts)
        .map(|(_, driver, _)| driver.to_string())
        .or_else(|| readings::driver_version(facts).map(|seen| seen.value.to_string()));
    let driver = driver.unwrap_or_else(|| "VERSION".to_owned());
    let hold = match machine::distribution(facts) {
        machine::Distribution::Ubuntu
        | machine::Distribution::Debian
        | machine::Distribution::Proxmox => {
            "apt-mark hold the driver's packages and nvidia-fabricmanager together".to_owned()
        }
        _ => "pin driver and fabric manager to one version".to_owned(),
    };
    Remedy::new(Impact::RestartsService, "nothing that works now")
        .step_to(
            place,
            manager_missing::install(facts, &driver),
            "the fabric manager of exactly the driver's version",
        )
        .step_to(place, "systemctl restart nvidia-fabricmanager", "registers the GPUs")
        .step_to(place, hold, "so that the next upgrade moves both or none")
        .undo("install the former package again")
        .verify(
            "nvidia-smi -q | grep -A2 Fabric prints Completed and Success, and cuInit answers 0",
        )
        .will_not_help("restarting the service without another package: it refuses again")
        .will_not_help("a fabric manager of the same branch: all parts of the version count")
}
