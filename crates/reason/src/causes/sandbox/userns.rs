//! `sandbox.userns`

use facts::model::engine::EngineFault;
use facts::model::node::{Node, NodeOpen};
use facts::{Errno, Facts, Layer, Observed, Origin, Seen};

use super::LxcConfig;
use crate::cause::{Cause, LookAlike};
use crate::causes::node::{all_needed, harmless, nodes_in_question, role, short};
use crate::engine;
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::need::Need;
use crate::readings;
use crate::remedy::{Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "sandbox.userns",
    layer: Layer::Sandbox,
    claim: "a user namespace blocks the device nodes or their creation",
    explanation: "In a user namespace (unprivileged LXC, rootless engines, userns-remap) root is \
        nobody outside. It cannot make device nodes, cannot open any on a file system that was \
        mounted inside, and passes by no mode bits of files whose owner is not mapped: those show \
        as 65534, nobody:nogroup. Nodes with mode 0666 that the host binds in work all the same, \
        so an owner of nobody is no fault by itself.",
    explains: &[
        SymptomId::CudaInitFails,
        SymptomId::NvmlFails,
        SymptomId::GpuMissing,
        SymptomId::FrameworkNoGpu,
        SymptomId::ContainerRefused,
        SymptomId::DriverAbsent,
    ],
    specializes: &["node.permission"],
    look_alikes: &[
        LookAlike {
            id: "node.permission",
            tell: "the node's owner and group are mapped, and the mode leaves this user out",
        },
        LookAlike { id: "node.nodev-mount", tell: "the mount itself says nodev" },
        LookAlike {
            id: "sandbox.cgroup-denies",
            tell: "open answers EPERM, and privileged containers fail as well",
        },
        LookAlike {
            id: "sandbox.rootless-bpf",
            tell: "only the hook fails, over the device rules; the nodes are in order",
        },
    ],
    references: &[
        "https://man7.org/linux/man-pages/man7/user_namespaces.7.html",
        "https://github.com/NVIDIA/nvidia-docker/issues/1546",
        "https://github.com/NVIDIA/nvidia-container-toolkit/issues/290",
        "https://linuxcontainers.org/lxc/manpages/man5/lxc.container.conf.5.html",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    if let Some((names, origin)) = all_needed(facts, |path| readings::opens(facts, path)) {
        weighing.rules_out(format!("{} open read-write from here", names.join(", ")), &origin);
        return weighing;
    }
    if let Some(works) = readings::cuda_works(facts) {
        weighing.rules_out("CUDA starts all the same", works);
        return weighing;
    }
    let namespace = namespace(facts);
    if namespace.is_none() && facts.sandbox.uid_map.is_seen() {
        let statement = "no user namespace is around the process: all ids are mapped";
        if let Some(origin) = facts.sandbox.uid_map.origin() {
            weighing.rules_out(statement, origin);
        }
        return weighing;
    }
    closed_nodes(facts, namespace.as_ref(), &mut weighing);
    creation(facts, namespace.as_ref(), &mut weighing);
    device_rules(facts, &mut weighing);
    match namespace {
        Some(seen) if !weighing.support.is_empty() => {
            weighing.supports(Moderate, seen.value, &seen.origin);
        }
        Some(_) => {
            weighing.needs(Need::NodeOpen);
        }
        None if !weighing.support.is_empty() => {
            weighing.needs(Need::UserNamespace);
        }
        None => {}
    }
    weighing
}

/// What shows a user namespace around the process: its map, or its container's configuration.
fn namespace(facts: &Facts) -> Option<Seen<String>> {
    if let Some(origin) = engine::user_namespace(facts) {
        let statement = "a user namespace is around the process: not all ids are mapped";
        return Some(Seen::new(statement.to_owned(), origin.clone()));
    }
    if facts.sandbox.uid_map.is_seen() {
        return None;
    }
    let unprivileged = engine::setting(facts, "unprivileged").filter(|seen| seen.value == "1");
    if let Some(seen) = unprivileged.or_else(|| engine::setting(facts, "lxc.idmap")) {
        let statement = "the container is configured as an unprivileged one";
        return Some(Seen::new(statement.to_owned(), seen.origin));
    }
    let told = facts.sandbox.engine.unprivileged.as_seen().filter(|seen| seen.value)?;
    Some(Seen::new("the container is called unprivileged".to_owned(), told.origin.clone()))
}

/// Nodes that answer EACCES: by their mode, since their owner is not mapped, or in spite of it,
/// since their file system was mounted inside.
fn closed_nodes(facts: &Facts, namespace: Option<&Seen<String>>, weighing: &mut Weighing) {
    for path in nodes_in_question(facts) {
        let refused = match facts.node.opens.get(&path) {
            Some((NodeOpen::Failed(Errno::EACCES), origin)) => Some(origin.clone()),
            Some(_) => continue,
            None => None,
        };
        let node = facts.node.at(&path);
        let Some(seen) = node.as_seen() else { continue };
        if role(&path).is_some_and(|role| harmless(facts, role).is_some()) {
            continue;
        }
        judge(&path, seen.value, &seen.origin, refused.as_ref(), namespace.is_some(), weighing);
    }
}

fn judge(
    path: &str,
    node: &Node,
    listed: &Origin,
    refused: Option<&Origin>,
    in_namespace: bool,
    weighing: &mut Weighing,
) {
    let name = short(path);
    let Some(mode) = node.mode.map(|mode| mode & 0o7777) else { return };
    let closed = mode & 0o006 != 0o006;
    match (closed && unmapped(node), refused) {
        (true, Some(origin)) if in_namespace => {
            let statement = format!(
                "open of {name} answers EACCES: mode {mode:04o}, and its owner is not mapped in here"
            );
            weighing.confirms(statement, origin);
        }
        (true, origin) => {
            let statement = format!("{name} belongs to nobody in here, with mode {mode:04o}");
            weighing.supports(Strong, statement, origin.unwrap_or(listed));
        }
        (false, Some(origin)) if !closed && in_namespace => {
            let statement = format!("open of {name} answers EACCES though its mode is {mode:04o}");
            weighing.supports(Moderate, statement, origin);
            weighing.needs(Need::Mounts);
        }
        _ => {}
    }
}

/// The owner, or the group, is the kernel's stand-in for ids that are not mapped.
fn unmapped(node: &Node) -> bool {
    let overflow = |name: &Option<String>| {
        matches!(name.as_deref(), Some("65534" | "nobody" | "nogroup" | "nfsnobody"))
    };
    overflow(&node.owner)
}

/// A node that could not be made.
fn creation(facts: &Facts, namespace: Option<&Seen<String>>, weighing: &mut Weighing) {
    let refused = engine::fault(facts, |fault| match fault {
        EngineFault::MknodRefused(path) => Some(path.clone()),
        _ => None,
    });
    if let Some(seen) = refused {
        let statement = format!("making {} is refused", seen.value);
        if namespace.is_some() {
            weighing.confirms(statement, &seen.origin);
        } else {
            weighing.supports(Moderate, statement, &seen.origin);
        }
    }
}

/// The hook's own rules need rights over the outer container's cgroup.
fn device_rules(facts: &Facts, weighing: &mut Weighing) {
    let refused = engine::fault(facts, |fault| match fault {
        EngineFault::DeviceList(Errno::EPERM | Errno::EACCES)
        | EngineFault::DeviceProgram(_, Errno::EPERM) => Some(()),
        _ => None,
    });
    if let Some(seen) = refused
        && engine::rootless(facts).is_none()
    {
        weighing.supports(Moderate, "the hook may not write device rules", &seen.origin);
    }
    let told = &facts.sandbox.engine.privileged_works;
    let suspected = !weighing.support.is_empty() || namespace(facts).is_some();
    if let Some(origin) = engine::told(told, true).filter(|_| suspected) {
        weighing.supports(Moderate, "it works when the container is privileged", origin);
    }
    if let Observed::Seen(seen) = &facts.node.euid
        && seen.value == 65534
    {
        weighing.supports(Weak, "the process itself runs as 65534", &seen.origin);
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let config = LxcConfig::of(facts);
    let mut remedy = super::recreate();
    if super::in_lxc(facts) || engine::setting(facts, "unprivileged").is_some() {
        for path in readings::needed_nodes(facts) {
            let inside = path.trim_start_matches('/');
            let entry = format!("{path} {inside} none bind,optional,create=file");
            remedy = remedy.step(Place::Host, config.add("lxc.mount.entry", &entry));
        }
        remedy = remedy.step_to(
            Place::Host,
            config.restart,
            "the nodes are then the host's own, bound in",
        );
    } else {
        remedy = remedy.step_to(
            Place::Engine,
            "podman run --device nvidia.com/gpu=all --group-add keep-groups …",
            "binds the host's nodes in, and keeps the caller's groups (crun only)",
        );
    }
    remedy
        .step_to(
            Place::Host,
            "echo 'options nvidia NVreg_DeviceFileMode=0666' > /etc/modprobe.d/nvidia-nodes.conf && chmod 0666 /dev/nvidia[0-9]* /dev/nvidiactl /dev/nvidia-uvm",
            "a mode that lets in whoever is not mapped",
        )
        .undo("take the lines out again, and chmod back to the former mode")
        .verify("every node opens read-write from inside, and cuInit answers 0")
        .will_not_help("mknod or chown inside: root in there has no right to either")
        .will_not_help("sudo inside: it is root of the namespace already, and that is not enough")
}
