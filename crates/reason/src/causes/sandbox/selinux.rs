//! `sandbox.selinux`

use facts::model::engine::{Denial, Policy, SelinuxMode};
use facts::model::module_message::{ModuleMessage, Refusal};
use facts::{Errno, Facts, Layer, Seen};

use super::container;
use crate::cause::{Cause, LookAlike};
use crate::causes::node::{all_needed, short};
use crate::engine;
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::need::Need;
use crate::readings::{self, code};
use crate::remedy::{Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "sandbox.selinux",
    layer: Layer::Sandbox,
    claim: "SELinux denies the device nodes, or the module's load",
    explanation: "On Fedora, RHEL and their kin containers run as container_t, and the driver's \
        nodes are labelled xserver_misc_device_t. Unless the policy allows the pair, open answers \
        EACCES although mode, owner and numbers are right, NVML says 'Insufficient Permissions' \
        and the audit log has an AVC denial. In permissive mode SELinux only logs and denies \
        nothing. A container that loads the module itself may be denied that as well: modprobe \
        then says 'Permission denied'.",
    explains: &[
        SymptomId::NvmlFails,
        SymptomId::CudaInitFails,
        SymptomId::GpuMissing,
        SymptomId::FrameworkNoGpu,
        SymptomId::ContainerRefused,
        SymptomId::DriverAbsent,
    ],
    specializes: &["node.permission"],
    look_alikes: &[
        LookAlike {
            id: "sandbox.cgroup-denies",
            tell: "open answers EPERM and NVML 'Unknown Error', with no AVC denial",
        },
        LookAlike {
            id: "node.permission",
            tell: "the mode or the group does not let this user in",
        },
        LookAlike { id: "node.nodev-mount", tell: "the mount that holds the nodes has nodev" },
        LookAlike {
            id: "sandbox.no-cgroups-set",
            tell: "SELinux is permissive or off, and no-cgroups = true",
        },
    ],
    references: &[
        "https://github.com/fedora-selinux/selinux-policy/issues/1695",
        "https://github.com/redhat-et/triton-dev-containers/issues/61",
        "https://github.com/NVIDIA/nvidia-container-toolkit/issues/33",
        "https://github.com/NVIDIA/nvidia-docker/issues/676",
        "https://github.com/containers/container-selinux",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    let mode = facts.sandbox.engine.selinux.as_seen();
    if let Some(seen) = mode.filter(|seen| seen.value != SelinuxMode::Enforcing) {
        let word = if seen.value == SelinuxMode::Permissive { "permissive" } else { "off" };
        weighing.rules_out(format!("SELinux is {word} and denies nothing"), &seen.origin);
    }
    if let Some((names, origin)) = all_needed(facts, |path| readings::opens(facts, path)) {
        weighing.rules_out(format!("{} open read-write from here", names.join(", ")), &origin);
    }
    let tried = &facts.sandbox.engine.unconfined_cures;
    if let Some(origin) = engine::told(tried, false) {
        weighing.rules_out("it fails with SELinux's confinement off as well", origin);
    }
    if let Some(origin) = engine::told(tried, true) {
        weighing.supports(
            Strong,
            "it works with SELinux's confinement off (label=disable)",
            origin,
        );
    }
    denials(facts, &mut weighing);
    refusals(facts, mode, &mut weighing);
    module_refused(facts, mode, &mut weighing);
    if weighing.support.is_empty() {
        if weighing.against.is_empty()
            && nvml_refused(facts).is_some()
            && container(facts).is_some()
        {
            weighing.needs(Need::PolicyLog);
        }
        return weighing;
    }
    if let Some(seen) = mode.filter(|seen| seen.value == SelinuxMode::Enforcing) {
        weighing.supports(Weak, "SELinux is enforcing", &seen.origin);
    }
    if let Some(origin) = nvml_refused(facts) {
        let statement = "NVML answers 4, which it makes of EACCES on nvidiactl";
        weighing.supports(Moderate, statement, &origin);
    }
    weighing
}

fn nvml_refused(facts: &Facts) -> Option<facts::Origin> {
    readings::nvml_failed_with(facts, code::NVML_NO_PERMISSION)
}

/// Lines of the audit log that name a node of the driver.
fn denials(facts: &Facts, weighing: &mut Weighing) {
    let selinux =
        |seen: &&Seen<Denial>| seen.value.policy == Policy::Selinux && seen.value.of_driver_node();
    for seen in facts.sandbox.engine.denials.iter().filter(selinux).take(4) {
        let Denial { subject, object, name, permissive, .. } = &seen.value;
        let kind = |label: &str| label.split(':').nth(2).unwrap_or(label).to_owned();
        let statement = format!(
            "SELinux denied {} the node {} ({})",
            shown(&kind(subject), "the process"),
            shown(short(name), "of the driver"),
            shown(&kind(object), "no label shown"),
        );
        if *permissive {
            weighing.objects(Weak, format!("{statement}, and only logged it"), &seen.origin);
        } else {
            weighing.confirms(statement, &seen.origin);
        }
    }
}

fn shown(text: &str, otherwise: &str) -> String {
    if text.is_empty() { otherwise.to_owned() } else { text.to_owned() }
}

/// EACCES from nodes whose modes are open, in a process that SELinux confines.
fn refusals(facts: &Facts, mode: Option<&Seen<SelinuxMode>>, weighing: &mut Weighing) {
    let open_to_all = |path: &str| {
        let node = facts.node.at(path);
        node.value().and_then(|node| node.mode).is_some_and(|mode| mode & 0o666 == 0o666)
    };
    let refused = engine::refused_opens(facts, Errno::EACCES);
    let Some((path, origin)) = refused.iter().find(|(path, _)| open_to_all(path)) else { return };
    let confined = facts.sandbox.engine.label.as_seen().filter(|seen| {
        seen.value.contains("container_t") || seen.value.contains("svirt_lxc_net_t")
    });
    let name = short(path);
    if let Some(seen) = confined {
        let statement = format!("open of {name} answers EACCES though its mode is open to all");
        weighing.supports(Strong, statement, origin);
        weighing.supports(Moderate, format!("the process runs as {}", seen.value), &seen.origin);
    } else if mode.is_some_and(|seen| seen.value == SelinuxMode::Enforcing) {
        let statement = format!("open of {name} answers EACCES though its mode is open to all");
        weighing.supports(Moderate, statement, origin);
        weighing.needs(Need::PolicyLog);
    }
}

/// A module that root may not load, with EACCES: a signature, lockdown and a missing capability each
/// answer something else.
fn module_refused(facts: &Facts, mode: Option<&Seen<SelinuxMode>>, weighing: &mut Weighing) {
    let refused = facts.module.messages.iter().find(|seen| {
        matches!(seen.value, ModuleMessage::Refused { refusal: Refusal::PolicyDenied, .. })
    });
    let Some(refused) = refused else { return };
    if mode.is_some_and(|seen| seen.value == SelinuxMode::Enforcing) {
        let statement = "loading the module answers EACCES, which a security policy gives";
        weighing.supports(Moderate, statement, &refused.origin);
        weighing.needs(Need::PolicyLog);
    }
}

fn remedy(_: &Facts) -> Remedy {
    super::recreate()
        .step_to(
            Place::Host,
            "setsebool -P container_use_devices 1",
            "as root, with a current container-selinux; lets all containers use devices that they are given",
        )
        .step_to(
            Place::Engine,
            "podman run --security-opt label=disable --device nvidia.com/gpu=all …",
            "for one container: takes SELinux's confinement off it",
        )
        .step_to(
            Place::Host,
            "dnf upgrade container-selinux selinux-policy",
            "some releases lacked a permission for these nodes",
        )
        .undo("setsebool -P container_use_devices 0")
        .verify("ausearch -m avc -ts recent shows no new denial, and nvidia-smi -L works in the container")
        .will_not_help("chmod or --group-add: SELinux asks for labels, not for modes")
        .will_not_help("--device-cgroup-rule: the cgroup's policy answers EPERM, and this is EACCES")
}
