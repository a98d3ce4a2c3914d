//! `sandbox.no-cgroups-set`

use facts::{Errno, Facts, Layer};

use super::container;
use crate::cause::{Cause, LookAlike};
use crate::engine;
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::need::Need;
use crate::readings::{self, code};
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "sandbox.no-cgroups-set",
    layer: Layer::Sandbox,
    claim: "the toolkit's switch for rootless engines is on under an engine that runs as root",
    explanation: "With no-cgroups = true the hook puts nodes and libraries into the container and \
        leaves its device policy alone. An engine without root has no such policy, so there it is \
        right. One with root has, and the policy then denies every node: NVML says 'Unknown Error' \
        from the container's first second on. Usually somebody set it so that podman or rootless \
        docker would work, and both engines read the same file.",
    explains: &[
        SymptomId::NvmlFails,
        SymptomId::CudaInitFails,
        SymptomId::GpuMissing,
        SymptomId::FrameworkNoGpu,
    ],
    specializes: &["sandbox.cgroup-denies"],
    look_alikes: &[
        LookAlike {
            id: "sandbox.cgroup-lost",
            tell: "it worked at the container's start and stopped later",
        },
        LookAlike {
            id: "sandbox.cgroup-denies",
            tell: "no-cgroups is false, and the rules were left out elsewhere",
        },
        LookAlike {
            id: "sandbox.selinux",
            tell: "NVML says 'Insufficient Permissions', and an AVC denial is logged",
        },
    ],
    references: &[
        "https://github.com/NVIDIA/nvidia-container-toolkit/issues/580",
        "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    let denied = engine::refused_opens(facts, Errno::EPERM);
    let unknown = readings::nvml_failed_with(facts, code::NVML_UNKNOWN);
    let failing = unknown.is_some() || !denied.is_empty();
    let Some(setting) = engine::setting(facts, "no-cgroups") else {
        if failing && container(facts).is_some() {
            weighing.needs(Need::ToolkitConfig);
        }
        return weighing;
    };
    let was_on = facts
        .sandbox
        .settings
        .iter()
        .any(|seen| seen.value.0 == "no-cgroups" && seen.value.1 == "true");
    if !was_on {
        weighing.rules_out(format!("no-cgroups = {}", setting.value), &setting.origin);
        return weighing;
    }
    if let Some(origin) = engine::rootless(facts) {
        let statement = "the engine runs without root, and needs no-cgroups = true";
        weighing.rules_out(statement, origin);
        return weighing;
    }
    if !failing {
        return weighing;
    }
    weighing.supports(Strong, "no-cgroups = true: the hook adds no device rules", &setting.origin);
    cured(facts, &mut weighing);
    if let Some(origin) = unknown {
        let statement = "NVML answers 999, which it makes of EPERM on nvidiactl";
        weighing.supports(Moderate, statement, &origin);
    }
    if let Some((path, origin)) = denied.first() {
        weighing.supports(Strong, format!("open of {path} answers EPERM"), origin);
    }
    course(facts, &mut weighing);
    weighing
}

/// The same container with the switch the other way round is the proof.
fn cured(facts: &Facts, weighing: &mut Weighing) {
    let Some(cure) = &facts.sandbox.engine.no_cgroups_cure else { return };
    if cure.value {
        weighing.objects(Strong, "it works with no-cgroups = true", &cure.origin);
    } else {
        weighing.confirms("it works with no-cgroups = false", &cure.origin);
    }
}

fn course(facts: &Facts, weighing: &mut Weighing) {
    let engine = &facts.sandbox.engine;
    if let Some(seen) = engine.from_start.first() {
        weighing.supports(Weak, "it fails from the container's start", &seen.origin);
    } else if let (Some(lost), None) = (engine.lost_later.first(), &engine.no_cgroups_cure) {
        weighing.objects(Moderate, "it worked before, in the same container", &lost.origin);
    }
    if let Some(kind) = container(facts) {
        let statement = format!("the process is in a container ({})", kind.value.name());
        weighing.supports(Weak, statement, &kind.origin);
    }
}

fn remedy(_: &Facts) -> Remedy {
    Remedy::new(Impact::RestartsService, "the engine's containers")
        .step_to(
            Place::Host,
            "nvidia-ctk config --set nvidia-container-cli.no-cgroups=false --in-place",
            "as root; the file is /etc/nvidia-container-runtime/config.toml",
        )
        .step_to(Place::Host, "systemctl restart docker", "or the engine in question; then recreate the container")
        .step_to(
            Place::Host,
            "nvidia-ctk config --set nvidia-container-cli.no-cgroups --in-place --config-file=$HOME/.config/nvidia-container-runtime/config.toml",
            "for a rootless engine beside it: a file of its own",
        )
        .undo("nvidia-ctk config --set nvidia-container-cli.no-cgroups --in-place")
        .verify("docker run --rm --gpus all IMAGE nvidia-smi -L lists the GPUs")
        .will_not_help("restarting the container without changing the switch: the new one gets no rules either")
        .will_not_help("chmod of the nodes, or SELinux settings: a device policy refuses, and it asks neither")
}
