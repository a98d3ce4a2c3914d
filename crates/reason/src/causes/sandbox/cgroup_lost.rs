//! `sandbox.cgroup-lost`

use facts::{Errno, Facts, Layer, Origin, Seen};

use super::container;
use crate::cause::{Cause, LookAlike};
use crate::causes::node::rightly_numbered;
use crate::engine;
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::need::Need;
use crate::readings::{self, code};
use crate::remedy::{Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "sandbox.cgroup-lost",
    layer: Layer::Sandbox,
    claim: "a running container lost its devices when systemd re-applied the unit's device policy",
    explanation: "NVIDIA's hook adds the GPUs to the container's device policy behind the back of \
        runc and systemd. Whenever systemd re-applies the unit (daemon-reload, a package \
        installation, a change of CPU or memory limits), it builds the policy anew from what it \
        knows, and the GPUs are not in it: systemd finds devices by their links in /dev/char, \
        which NVIDIA's driver does not make. The nodes stay visible in the container, open \
        answers EPERM from then on, and NVML says 'Unknown Error'. A new container works.",
    explains: &[
        SymptomId::NvmlFails,
        SymptomId::CudaInitFails,
        SymptomId::CudaContextFails,
        SymptomId::GpuMissing,
        SymptomId::FrameworkNoGpu,
    ],
    specializes: &["sandbox.cgroup-denies"],
    look_alikes: &[
        LookAlike {
            id: "sandbox.no-cgroups-set",
            tell: "no-cgroups = true, and it fails from the container's first second on",
        },
        LookAlike { id: "sandbox.cgroup-denies", tell: "it never worked in this container" },
        LookAlike {
            id: "module.version-skew",
            tell: "NVML says 'Driver/library version mismatch': the driver was upgraded under the container",
        },
        LookAlike {
            id: "pci.fell-off-bus",
            tell: "nvidia-smi fails on the host as well, and an Xid is logged",
        },
    ],
    references: &[
        "https://github.com/NVIDIA/nvidia-container-toolkit/issues/48",
        "https://github.com/NVIDIA/gpu-operator/issues/485",
        "https://github.com/NVIDIA/nvidia-docker/issues/1730",
        "https://github.com/opencontainers/runc/issues/3708",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    let Some(failure) = failure(facts) else { return weighing };
    let engine = &facts.sandbox.engine;
    let story = !engine.lost_later.is_empty() || !engine.restart_cures.is_empty();
    if container(facts).is_none() && !story {
        return weighing;
    }
    if never_worked(facts, &mut weighing) {
        return weighing;
    }
    let reload = engine.reloads.first();
    if reload.is_none() && !story {
        if engine::told(&engine.char_links, false).is_some() {
            links(facts, &mut weighing);
        }
        weighing.needs(Need::UnitReloads);
        return weighing;
    }
    weighing.supports(Moderate, failure.value, &failure.origin);
    course(facts, reload, &mut weighing);
    links(facts, &mut weighing);
    proof(facts, &mut weighing);
    host(facts, &mut weighing);
    weighing
}

/// What a lost device policy looks like from inside.
fn failure(facts: &Facts) -> Option<Seen<String>> {
    if let Some((path, origin)) = engine::refused_opens(facts, Errno::EPERM).into_iter().next() {
        return Some(Seen::new(format!("open of {path} answers EPERM"), origin));
    }
    // The host's own nvidia-smi, which works, may have had the last word.
    let failures = facts.sandbox.engine.nvml_failures.iter();
    let unknown = failures.rev().find(|seen| seen.value == code::NVML_UNKNOWN);
    let origin = readings::nvml_failed_with(facts, code::NVML_UNKNOWN)
        .or_else(|| unknown.map(|seen| seen.origin.clone()));
    if let Some(origin) = origin {
        let statement = "NVML answers 999, 'Unknown Error', which it makes of EPERM on nvidiactl";
        return Some(Seen::new(statement.to_owned(), origin));
    }
    let later = !facts.sandbox.engine.lost_later.is_empty() && container(facts).is_some();
    let trial = readings::init_failed_with(facts, code::NO_DEVICE).filter(|_| later)?;
    let statement = "cuInit answers 100, which it makes of EPERM on nvidiactl";
    Some(Seen::new(statement.to_owned(), trial.origin.clone()))
}

/// A container that fails from its start has nothing to lose.
fn never_worked(facts: &Facts, weighing: &mut Weighing) -> bool {
    let engine = &facts.sandbox.engine;
    if !engine.lost_later.is_empty() {
        return false;
    }
    if let Some(seen) = engine.from_start.first() {
        weighing.rules_out("it fails from the container's start, not later", &seen.origin);
        return true;
    }
    if let Some(cure) = engine.no_cgroups_cure.as_ref().filter(|cure| !cure.value) {
        weighing.rules_out(
            "a switch of the toolkit cures it: the rules were never there",
            &cure.origin,
        );
        return true;
    }
    false
}

fn course(facts: &Facts, reload: Option<&Seen<String>>, weighing: &mut Weighing) {
    let engine = &facts.sandbox.engine;
    if let Some(seen) = reload {
        weighing.supports(Strong, "systemd re-read its units (daemon-reload)", &seen.origin);
    } else {
        weighing.needs(Need::UnitReloads);
    }
    if let Some(seen) = engine.lost_later.first() {
        weighing.supports(Moderate, "it worked in this container and stopped later", &seen.origin);
    }
    if let Some(seen) = engine.restart_cures.first() {
        weighing.supports(
            Strong,
            "a new start of the container brings the GPUs back",
            &seen.origin,
        );
    }
    if let Some(seen) = engine.cgroup_driver.as_seen() {
        if seen.value == "systemd" {
            weighing.supports(Weak, "the engine leaves cgroups to systemd", &seen.origin);
        } else {
            let statement = format!("the engine's cgroup driver is {}", seen.value);
            weighing.objects(Strong, statement, &seen.origin);
        }
    }
}

fn links(facts: &Facts, weighing: &mut Weighing) {
    match facts.sandbox.engine.char_links.as_seen() {
        Some(seen) if seen.value => {
            let statement = "/dev/char has links to the nodes, by which systemd finds them";
            weighing.objects(Moderate, statement, &seen.origin);
        }
        Some(seen) => {
            weighing.supports(Moderate, "/dev/char has no links to NVIDIA's nodes", &seen.origin);
        }
        None => {}
    }
}

/// EPERM from a node whose numbers are right is a device policy; that it worked before, and that
/// systemd re-read its units, says which.
fn proof(facts: &Facts, weighing: &mut Weighing) {
    let engine = &facts.sandbox.engine;
    let Some(reload) = engine.reloads.first() else { return };
    let worked = engine.lost_later.first().or(engine.restart_cures.first()).is_some();
    let denied = engine::refused_opens(facts, Errno::EPERM);
    let policy = denied.iter().any(|(path, _)| rightly_numbered(facts, path).is_some())
        || engine::told(&engine.char_links, false).is_some();
    if worked && policy {
        let statement = "it worked until systemd re-read its units, and then open was refused";
        weighing.confirms(statement, &reload.origin);
    }
}

/// A healthy host, and what speaks of a GPU that is really gone.
fn host(facts: &Facts, weighing: &mut Weighing) {
    let told = facts.sandbox.host_has_gpus.as_seen().filter(|seen| seen.value);
    if let Some(seen) = told {
        weighing.supports(Weak, "outside the container the GPUs work", &seen.origin);
    }
    let lost: Option<&Origin> = readings::logged(facts, &["FALLEN_BUS", "GSP_RPC_TIMEOUT"]);
    if let Some(origin) = lost {
        weighing.objects(Strong, "the kernel log has the GPU failing by itself", origin);
    }
}

fn remedy(_: &Facts) -> Remedy {
    super::recreate()
        .step_to(
            Place::Host,
            "nvidia-ctk system create-dev-char-symlinks --create-all",
            "as root, at each boot before the engine: a udev rule or a unit keeps it so",
        )
        .step_to(Place::Engine, "docker restart CONTAINER", "a running container does not get its devices back")
        .step_to(
            Place::Engine,
            "docker run --device nvidia.com/gpu=all …",
            "the other way: with CDI, or --device for each node, runc itself knows the devices (a pod needs the operator's CDI mode)",
        )
        .step_to(
            Place::Host,
            "\"exec-opts\": [\"native.cgroupdriver=cgroupfs\"] in /etc/docker/daemon.json, then systemctl restart docker",
            "a third way, not for Kubernetes",
        )
        .undo("find /dev/char -lname '*nvidia*' -delete")
        .verify("systemctl daemon-reload on the host, then nvidia-smi -L in the container still lists the GPUs")
        .will_not_help("resetting the GPU or reloading the driver: the host's nvidia-smi works all the while")
        .will_not_help("restarting the program inside: the policy belongs to the container")
}
