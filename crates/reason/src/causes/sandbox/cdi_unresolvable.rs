//! `sandbox.cdi-unresolvable`

use facts::model::engine::EngineFault;
use facts::{Facts, Layer, Observed};

use crate::cause::{Cause, LookAlike};
use crate::engine;
use crate::evidence::Strength::{Moderate, Weak};
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "sandbox.cdi-unresolvable",
    layer: Layer::Sandbox,
    claim: "the engine finds no CDI device of the requested name",
    explanation: "A name such as nvidia.com/gpu=all is looked up in specs, files in /etc/cdi and \
        /run/cdi. The engine finds none when no spec was generated, when its user may not read the \
        file, when it looks in other folders, or when the spec names its devices otherwise. Engines \
        before podman 4.1 and docker 25 do not know such names and take them for paths. The driver \
        has no part in it.",
    explains: &[SymptomId::ContainerRefused],
    specializes: &[],
    look_alikes: &[
        LookAlike {
            id: "sandbox.cdi-stale",
            tell: "the device is found, and a file or number in its spec is no longer there",
        },
        LookAlike {
            id: "sandbox.engine-blind",
            tell: "the hook runs and cannot load libnvidia-ml.so.1",
        },
        LookAlike { id: "module.not-loaded", tell: "nvidia-smi fails on the host as well" },
    ],
    references: &[
        "https://github.com/NVIDIA/nvidia-container-toolkit/issues/146",
        "https://github.com/NVIDIA/nvidia-container-toolkit/issues/63",
        "https://github.com/NixOS/nixpkgs/issues/420638",
        "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/cdi-support.html",
    ],
    weigh,
    remedy,
};

/// The first podman that knows CDI names.
const PODMAN_WITH_CDI: (u32, u32) = (4, 1);

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    let unresolvable = engine::fault(facts, |fault| match fault {
        EngineFault::CdiUnresolvable(device) => Some(device.clone()),
        _ => None,
    });
    let unknown = engine::fault(facts, |fault| match fault {
        EngineFault::CdiUnknown(device) => Some(device.clone()),
        _ => None,
    });
    if let Some(seen) = &unresolvable {
        let statement = format!("the engine cannot resolve the CDI device {}", seen.value);
        weighing.confirms(statement, &seen.origin);
    }
    if let Some(seen) = &unknown {
        let statement = if seen.value.contains('/') {
            format!("the engine takes {} for a path: it does not know CDI", seen.value)
        } else {
            "the engine has no driver for CDI devices".to_owned()
        };
        weighing.confirms(statement, &seen.origin);
    }
    if weighing.support.is_empty() {
        return weighing;
    }
    let engine = &facts.sandbox.engine;
    if let Some(seen) = engine.podman.as_seen().filter(|seen| seen.value < PODMAN_WITH_CDI) {
        let (major, minor) = seen.value;
        let statement = format!("podman {major}.{minor} is older than 4.1, which first knew CDI");
        weighing.supports(Moderate, statement, &seen.origin);
    }
    match (&engine.cdi.specs, &engine.cdi.listed) {
        (Observed::Absent(origin), _) => {
            weighing.supports(Moderate, "no CDI spec is there", origin);
        }
        (_, Observed::Seen(seen)) if seen.value.is_empty() => {
            weighing.supports(Moderate, "nvidia-ctk finds no CDI device", &seen.origin);
        }
        (_, Observed::Seen(seen)) => {
            let statement = "nvidia-ctk lists CDI devices, so that a spec exists for somebody";
            weighing.supports(Weak, statement, &seen.origin);
        }
        _ => {}
    }
    weighing
}

fn remedy(facts: &Facts) -> Remedy {
    let engine = &facts.sandbox.engine;
    let old = engine.podman.value().is_some_and(|version| *version < PODMAN_WITH_CDI);
    let docker = facts.host.container.value() == Some(&facts::model::host::ContainerKind::Docker);
    let mut remedy = Remedy::new(Impact::None, "nothing");
    if old {
        remedy = Remedy::new(Impact::RestartsService, "the engine's containers").step_to(
            Place::Host,
            "upgrade podman to 4.1 or later",
            "older ones take a CDI name for a path",
        );
    }
    remedy = remedy
        .step_to(
            Place::Host,
            "nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml && chmod 0644 /etc/cdi/nvidia.yaml",
            "as root; NixOS: hardware.nvidia-container-toolkit.enable = true",
        )
        .step_to(Place::Host, "nvidia-ctk cdi list", "shows the names that can be asked for");
    if docker {
        remedy = remedy.step_to(
            Place::Host,
            "\"features\": {\"cdi\": true} in /etc/docker/daemon.json, then systemctl restart docker",
            "docker 25 to 27; later ones have it on",
        );
    }
    remedy
        .undo("rm /etc/cdi/nvidia.yaml")
        .verify("podman run --rm --device nvidia.com/gpu=all IMAGE nvidia-smi -L lists the GPUs")
        .will_not_help(
            "reinstalling the driver: the name is looked up in files, the driver is not asked",
        )
        .will_not_help("--gpus or hooks beside the CDI name: the engine stops at the name")
}
