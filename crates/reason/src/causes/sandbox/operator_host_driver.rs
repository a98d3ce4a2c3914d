//! `sandbox.operator-host-driver`

use facts::model::engine::EngineFault;
use facts::{Facts, Layer, Seen};

use crate::cause::{Cause, LookAlike};
use crate::engine;
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::need::Need;
use crate::readings;
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "sandbox.operator-host-driver",
    layer: Layer::Sandbox,
    claim: "the GPU operator's driver container collides with the driver of the host",
    explanation: "The operator brings a driver of its own in a container and takes whatever module \
        is loaded out of the kernel first. On a node whose distribution installed a driver that \
        module is in use (by the desktop, by persistenced, by running pods) and cannot be removed, \
        so the driver's pod starts, fails and starts again, and no GPU is offered. The host's \
        driver itself works all the while.",
    explains: &[SymptomId::ContainerRefused, SymptomId::GpuMissing, SymptomId::DriverAbsent],
    specializes: &["platform.vfio-unbind-stuck"],
    look_alikes: &[
        LookAlike {
            id: "kernel.module-build-failed",
            tell: "the driver's pod fails while compiling, not while unloading",
        },
        LookAlike {
            id: "sandbox.engine-blind",
            tell: "the driver's pod is well or absent, and containers fail with 'load library failed'",
        },
        LookAlike {
            id: "module.version-skew",
            tell: "pods start, and NVML inside says 'version mismatch'",
        },
    ],
    references: &[
        "https://github.com/NVIDIA/gpu-operator/issues/126",
        "https://github.com/NVIDIA/gpu-operator/issues/367",
        "https://github.com/canonical/microk8s/issues/2634",
        "https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/getting-started.html",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    let in_use = engine::fault(facts, |fault| match fault {
        EngineFault::DriverInUse(said) => Some(said.clone()),
        _ => None,
    });
    let crashing = crashing_pod(facts);
    if let Some(origin) = facts.sandbox.engine.host_driver_kept.origin() {
        let statement = "the operator found the host's driver and leaves it in place";
        weighing.rules_out(statement, origin);
        return weighing;
    }
    let host = engine::driver_works(facts).or_else(|| {
        facts.sandbox.engine.host_driver_told.as_seen().map(|seen| seen.origin.clone())
    });
    match (&in_use, &host) {
        (Some(seen), Some(_)) => {
            let statement = format!("the driver's container says: {}", seen.value);
            weighing.confirms(statement, &seen.origin);
        }
        (Some(seen), None) => {
            let statement = format!("the driver's container says: {}", seen.value);
            weighing.supports(Strong, statement, &seen.origin);
            weighing.needs(Need::Nvml);
        }
        (None, _) if crashing.is_some() => {
            weighing.needs(Need::DriverPod);
        }
        (None, _) => return weighing,
    }
    if let Some(seen) = crashing {
        let (pod, status) = seen.value;
        weighing.supports(Moderate, format!("{pod} is in {status}"), &seen.origin);
    }
    if let Some(origin) = host {
        weighing.supports(Moderate, "the host has a driver of its own", &origin);
    } else if let Some(version) = readings::driver_version(facts) {
        let statement = format!("a driver is loaded: {}", version.value);
        weighing.supports(Weak, statement, &version.origin);
    }
    weighing
}

/// The pod that installs the driver, when it does not come up.
fn crashing_pod(facts: &Facts) -> Option<Seen<(String, String)>> {
    let pods = &facts.sandbox.engine.driver_pods;
    let bad = ["CrashLoopBackOff", "Error", "RunContainerError"];
    pods.iter().find(|seen| bad.iter().any(|word| seen.value.1.contains(word))).cloned()
}

fn remedy(_: &Facts) -> Remedy {
    Remedy::new(Impact::RestartsService, "the operator's pods on the node")
        .step_to(
            Place::Engine,
            "helm upgrade gpu-operator nvidia/gpu-operator -n gpu-operator --reuse-values --set driver.enabled=false",
            "leaves the driver to the host",
        )
        .step_to(
            Place::Engine,
            "… --set toolkit.enabled=false",
            "as well, where the container toolkit is installed on the host",
        )
        .step_to(
            Place::Host,
            "apt-get purge 'nvidia-driver-*' && reboot",
            "the other way: leave the driver to the operator; this one reboots",
        )
        .undo("helm upgrade with driver.enabled=true")
        .verify("kubectl get pods -n gpu-operator shows every pod Running or Completed, and the node offers nvidia.com/gpu")
        .will_not_help("deleting GPU pods: the host's own services hold the module")
        .will_not_help("restarting the driver's pod: it meets the same module")
}
