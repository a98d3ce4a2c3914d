//! `sandbox.cgroup-v2-unsupported`

use facts::model::engine::EngineFault;
use facts::{Facts, Layer};

use crate::cause::{Cause, LookAlike};
use crate::engine;
use crate::evidence::Strength::Weak;
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "sandbox.cgroup-v2-unsupported",
    layer: Layer::Sandbox,
    claim: "the container toolkit's hook knows device rules of cgroup v1 alone, and this host has none",
    explanation: "The hook of libnvidia-container lets the GPUs through the container's device \
        rules. Until 1.8.0 it looked for the controller named 'devices' of cgroup v1. A host that \
        boots with the unified hierarchy, as Debian 11, Fedora 31, Ubuntu 21.10 and their \
        successors do, has no such controller: device rules are BPF programs there. The hook \
        gives up before the container starts. The driver and the image have no part in it.",
    explains: &[SymptomId::ContainerRefused],
    specializes: &["sandbox.cgroup-denies"],
    look_alikes: &[
        LookAlike {
            id: "sandbox.bpf-old-kernel",
            tell: "the hook does load a device program, and the kernel answers 'invalid argument'",
        },
        LookAlike {
            id: "sandbox.rootless-bpf",
            tell: "the answer is 'operation not permitted': the right is lacking, not the controller",
        },
        LookAlike {
            id: "sandbox.engine-blind",
            tell: "the hook cannot load a library, or there is no hook at all",
        },
    ],
    references: &[
        "https://github.com/NVIDIA/libnvidia-container/issues/111",
        "https://github.com/NVIDIA/nvidia-docker/issues/1447",
        "https://docs.kernel.org/admin-guide/cgroup-v2.html#device-controller",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    let missing = engine::fault(facts, |fault| {
        matches!(fault, EngineFault::NoDeviceController).then_some(())
    });
    let Some(seen) = missing else { return weighing };
    weighing.confirms("the hook finds no device controller of cgroup v1", &seen.origin);
    if let Some(hierarchy) = facts.sandbox.engine.cgroup_v2.as_seen() {
        if hierarchy.value {
            weighing.supports(Weak, "the host has the unified hierarchy", &hierarchy.origin);
        } else {
            weighing.objects(Weak, "the host has the hierarchy of cgroup v1", &hierarchy.origin);
        }
    }
    weighing
}

fn remedy(_: &Facts) -> Remedy {
    Remedy::new(Impact::RestartsService, "the engine's containers")
        .step_to(
            Place::Host,
            "apt-get install nvidia-container-toolkit",
            "from NVIDIA's repository: 1.8.1 and later know cgroup v2; dnf install on RHEL and its kin",
        )
        .step_to(Place::Host, "systemctl restart docker", "or containerd, or the engine in question")
        .step_to(
            Place::Host,
            "boot with systemd.unified_cgroup_hierarchy=0 in the kernel's command line",
            "where the toolkit must stay as it is; this one reboots",
        )
        .step_to(
            Place::Host,
            "no-cgroups = true in /etc/nvidia-container-runtime/config.toml, and --device for each node",
            "another way: the engine itself then makes the device rules",
        )
        .undo("install the former version of the packages")
        .verify("the container starts, and nvidia-smi -L inside lists the GPUs")
        .will_not_help("another driver or image: the hook fails before either is looked at")
        .will_not_help("--privileged: the hook looks for the controller all the same")
}
