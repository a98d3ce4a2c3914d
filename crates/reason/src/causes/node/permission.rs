//! `node.permission`

use facts::model::node::{Node, NodeKind, NodeOpen};
use facts::model::process::Lever;
use facts::{Errno, Facts, Layer, Observed, Origin};

use super::{
    Role, all_needed, gone_ones, harmless, matching_failure, nodes_in_question, role, seen_gone,
    short,
};
use crate::cause::{Cause, LookAlike};
use crate::causes::sandbox;
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::machine;
use crate::need::Need;
use crate::readings::{self, code};
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "node.permission",
    layer: Layer::Node,
    claim: "this user may not open a device node for reading and writing",
    explanation: "The driver opens its nodes for reading and writing, so a mode of 0444 refuses as \
        surely as 0000. With nvidiactl closed NVML answers 4, \"insufficient permissions\", and \
        cuInit 100; with nvidia-uvm closed cuInit answers 999 while NVML goes on; with one GPU's \
        node closed that GPU is not counted and nothing is said. Where the nodes belong to a \
        group, a user namespace (rootless containers) drops that group on the way in, and adding \
        its number inside names another group.",
    explains: &[
        SymptomId::CudaInitFails,
        SymptomId::NvmlFails,
        SymptomId::GpuMissing,
        SymptomId::FrameworkNoGpu,
    ],
    specializes: &[],
    look_alikes: &[
        LookAlike {
            id: "sandbox.cgroup-denies",
            tell: "open answers EPERM, not EACCES, and the mode lets this user in",
        },
        LookAlike {
            id: "node.nodev-mount",
            tell: "EACCES with good mode bits, and the mount that holds the node has nodev",
        },
        LookAlike {
            id: "sandbox.selinux",
            tell: "EACCES with good mode bits, and an AVC denial in the log",
        },
    ],
    references: &[
        "https://github.com/NVIDIA/nvidia-container-toolkit/issues/210",
        "https://docs.nvidia.com/cuda/cuda-installation-guide-linux/#device-node-verification",
        "kernel-open/nvidia/nv-reg.h",
    ],
    weigh,
    remedy,
};

/// NVML_ERROR_NOT_FOUND, with which nvidia-smi ends when it says "No devices were found".
const NVML_NOT_FOUND: i64 = 6;

/// Codes that NVML makes of EACCES on nvidiactl.
const NVML_CODES: [i64; 1] = [code::NVML_NO_PERMISSION];

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    let works_as_root = facts.process.tried(|lever| lever == Lever::Root);
    if let Some((attempt, origin)) = works_as_root.filter(|(attempt, _)| attempt.helped) {
        if attempt.controlled {
            of_another_user(facts, origin, &mut weighing);
            return weighing;
        }
        // Root also has another environment, and makes nodes that are missing.
        weighing.supports(Moderate, "it works as root", origin);
    }
    if let Some(origin) = facts.process.helped_by(Lever::NodeGroup) {
        weighing.supports(Strong, "it works once the user is in the nodes' group", origin);
    }
    let refused = refused_nodes(facts);
    if refused.is_empty() {
        nothing_refused(facts, &mut weighing);
        for_root_alone(facts, &mut weighing);
        return weighing;
    }
    for kind in [0, 1, 2] {
        let alike: Vec<&Refused> = refused.iter().filter(|node| rank(node.role) == kind).collect();
        weigh_alike(facts, &alike, &mut weighing);
    }
    weighing
}

/// It works as root, who looks, and fails as the user who asked: the modes are judged for others
/// than root.
fn of_another_user(facts: &Facts, origin: &Origin, weighing: &mut Weighing) {
    weighing.supports(Strong, "cuInit works as root and fails as the user in question", origin);
    let closed = nodes_in_question(facts).into_iter().find_map(|path| {
        let seen = facts.node.at(&path).as_seen().cloned()?;
        let mode = seen.value.mode?;
        (mode & 0o006 != 0o006).then_some((path, seen.origin))
    });
    match closed {
        Some((path, origin)) => {
            let shown = mode_text(facts, &path);
            let statement = format!("{}: mode{shown} lets not everybody in", short(&path));
            weighing.supports(Strong, statement, &origin);
        }
        None => {
            weighing.needs(Need::NodeListing);
        }
    }
}

fn rank(role: Role) -> u8 {
    match role {
        Role::Control => 0,
        Role::Uvm => 1,
        Role::Gpu(_) => 2,
    }
}

/// A node that refuses this user, or that must by its mode.
struct Refused {
    path: String,
    role: Role,
    /// What its mode says of this user.
    by_mode: Option<bool>,
    /// The refused open, or the listing.
    origin: Origin,
    /// True when an open was refused and not only the mode read.
    tried: bool,
}

fn refused_nodes(facts: &Facts) -> Vec<Refused> {
    let mut found = Vec::new();
    for path in nodes_in_question(facts) {
        let Some(role) = role(&path) else { continue };
        let node = facts.node.at(&path);
        let by_mode = node.value().and_then(|node| admits(facts, node));
        match (facts.node.opens.get(&path), node) {
            (Some((NodeOpen::Failed(Errno::EACCES), origin)), _) => {
                found.push(Refused { path, role, by_mode, origin: origin.clone(), tried: true });
            }
            (Some((NodeOpen::Opened | NodeOpen::Failed(_), _)), _) => {}
            (_, Observed::Seen(seen)) if by_mode == Some(false) => {
                found.push(Refused { path, role, by_mode, origin: seen.origin, tried: false });
            }
            _ => {}
        }
    }
    found
}

/// Whether this node's mode lets this user read and write; `None` when the mode, the user or the
/// user's groups would have to be known.
fn admits(facts: &Facts, node: &Node) -> Option<bool> {
    let mode = node.mode?;
    if mode & 0o006 == 0o006 {
        return Some(true);
    }
    let euid = *facts.node.euid.value()?;
    if euid == 0 && overrides_modes(facts) {
        return Some(true);
    }
    let owner = node.owner.as_deref()?;
    let owned = owner == euid.to_string() || (owner == "root" && euid == 0);
    if owned {
        return Some(mode & 0o600 == 0o600);
    }
    if mode & 0o060 != 0o060 {
        return Some(false);
    }
    in_group(facts, node.group.as_deref()?)
}

/// Whether this user is in a group; `None` when the groups are not known, or the group is known by
/// its name alone.
fn in_group(facts: &Facts, group: &str) -> Option<bool> {
    let wanted: u32 = if group == "root" { 0 } else { group.parse().ok()? };
    let groups = facts.node.groups.value()?;
    let effective = facts.node.egid.value().copied();
    Some(groups.contains(&wanted) || effective == Some(wanted))
}

/// Root passes by mode bits through CAP_DAC_OVERRIDE, which in a user namespace holds only for
/// files whose owner is mapped.
fn overrides_modes(facts: &Facts) -> bool {
    const CAP_DAC_OVERRIDE: u32 = 1;
    facts.sandbox.has_capability(CAP_DAC_OVERRIDE) != Some(false) && !in_user_namespace(facts)
}

fn in_user_namespace(facts: &Facts) -> bool {
    let whole = |ranges: &Vec<facts::model::sandbox::IdMapRange>| {
        ranges
            .iter()
            .any(|range| range.inside == 0 && range.outside == 0 && range.count == u32::MAX)
    };
    facts.sandbox.uid_map.value().is_some_and(|ranges| !whole(ranges))
}

fn weigh_alike(facts: &Facts, alike: &[&Refused], weighing: &mut Weighing) {
    let Some(first) = alike.first() else { return };
    let names: Vec<&str> = alike.iter().map(|node| short(&node.path)).collect();
    let names = names.join(", ");
    let shown = mode_text(facts, &first.path);
    if first.by_mode == Some(true) {
        let statement =
            format!("{names}: the mode{shown} lets this user in, so it is not what refuses");
        weighing.rules_out(statement, &first.origin);
        return;
    }
    if let Some(works) = harmless(facts, first.role) {
        weighing.rules_out("CUDA starts all the same", works);
        return;
    }
    let known = !shown.is_empty();
    if first.tried && known {
        weighing
            .confirms(format!("open of {names} answers EACCES, with mode{shown}"), &first.origin);
    } else if first.tried {
        weighing.supports(Strong, format!("open of {names} answers EACCES"), &first.origin);
        weighing.needs(Need::NodeListing);
    } else {
        let statement = format!("{names}: mode{shown} does not let this user read and write");
        weighing.supports(Strong, statement, &first.origin);
        weighing.needs(Need::NodeOpen);
    }
    if let Some((statement, origin)) = matching_failure(facts, first.role, &NVML_CODES) {
        weighing.supports(Moderate, statement, &origin);
    }
    if let Some(origin) = nodev(facts) {
        weighing.objects(
            Strong,
            "/dev is mounted with nodev, which answers EACCES by itself",
            origin,
        );
    }
    if let Some(seen) = facts.sandbox.uid_map.as_seen().filter(|_| in_user_namespace(facts)) {
        let statement =
            "a user namespace is around the process, and groups outside it are lost in it";
        weighing.supports(Weak, statement, &seen.origin);
    }
}

/// ` 0660 root:video`, or nothing when the mode is not known.
fn mode_text(facts: &Facts, path: &str) -> String {
    let node = facts.node.at(path);
    let Some(node) = node.value() else {
        return String::new();
    };
    let Some(mode) = node.mode else {
        return String::new();
    };
    let owner = node.owner.as_deref().unwrap_or("?");
    let group = node.group.as_deref().unwrap_or("?");
    format!(" {:04o} {owner}:{group}", mode & 0o7777)
}

/// The mount over /dev, when it has nodev.
fn nodev(facts: &Facts) -> Option<&Origin> {
    let seen = facts.sandbox.mounts.as_seen()?;
    let over_dev = |target: &str| target == "/dev" || target.starts_with("/dev/nvidia");
    let denies = |options: &[String]| options.iter().any(|option| option == "nodev");
    let found = seen.value.iter().any(|mount| over_dev(&mount.target) && denies(&mount.options));
    found.then_some(&seen.origin)
}

fn nothing_refused(facts: &Facts, weighing: &mut Weighing) {
    let opened = all_needed(facts, |path| readings::opens(facts, path));
    let admitted = all_needed(facts, |path| {
        let node = facts.node.at(path);
        let Some(seen) = node.as_seen() else { return seen_gone(facts, path) };
        let open = is_device(seen.value) && admits(facts, seen.value) == Some(true);
        open.then(|| seen.origin.clone())
    });
    if let Some((names, origin)) = opened {
        weighing.rules_out(format!("{} open read-write from here", names.join(", ")), &origin);
    } else if let Some((names, origin)) = admitted {
        let gone = gone_ones(facts, &names);
        let there = |name: &&String| facts.node.at(&format!("/dev/{name}")).is_seen();
        let there: Vec<&str> = names.iter().filter(there).map(String::as_str).collect();
        let statement = if there.is_empty() {
            "/dev has no node that could refuse anybody".to_owned()
        } else {
            format!("the modes of {} let this user read and write{gone}", there.join(", "))
        };
        weighing.rules_out(statement, &origin);
    } else {
        if let Some(origin) = readings::nvml_failed_with(facts, code::NVML_NO_PERMISSION) {
            let statement = "NVML answers 4, which it makes of EACCES on nvidiactl";
            weighing.supports(Strong, statement, &origin);
            let control = facts.node.at("/dev/nvidiactl");
            let closed = |node: &Node| node.mode.is_some_and(|mode| mode & 0o006 != 0o006);
            if let Some(seen) = control.as_seen().filter(|seen| closed(seen.value)) {
                let shown = mode_text(facts, "/dev/nvidiactl");
                let statement = format!("nvidiactl: mode{shown} does not let everybody in");
                weighing.supports(Moderate, statement, &seen.origin);
            }
        }
        weighing.needs(Need::NodeOpen).needs(Need::NodeListing);
    }
}

/// Modes that let root and a group in, when nobody said who looked: a suspect where NVML or CUDA
/// finds no device.
fn for_root_alone(facts: &Facts, weighing: &mut Weighing) {
    if facts.node.euid.is_seen() || harmless(facts, Role::Control).is_some() {
        return;
    }
    let closed = nodes_in_question(facts).into_iter().find_map(|path| {
        let Observed::Seen(node) = facts.node.at(&path) else { return None };
        let mode = node.value.mode.filter(|mode| mode & 0o006 == 0)?;
        (is_device(node.value) && mode & 0o600 == 0o600).then_some((path, node.origin))
    });
    let Some((path, origin)) = closed else { return };
    let none = facts.nvml.count.as_seen().filter(|seen| seen.value == 0);
    let no_device = none.map(|seen| seen.origin.clone()).or_else(|| {
        let trial = readings::init_failed_with(facts, code::NO_DEVICE);
        let by_nvml = readings::nvml_failed_with(facts, NVML_NOT_FOUND);
        trial.map(|trial| trial.origin.clone()).or(by_nvml)
    });
    let Some(failure) = no_device else { return };
    let statement = format!("{}: mode{} is for root alone", short(&path), mode_text(facts, &path));
    weighing.supports(Strong, statement, &origin);
    weighing.supports(Moderate, "no device is found", &failure);
    weighing.needs(Need::NodeOpen);
}

fn is_device(node: &Node) -> bool {
    matches!(node.kind, NodeKind::Char { .. })
}

fn remedy(facts: &Facts) -> Remedy {
    let host = machine::kernel_place(facts);
    let group = refused_nodes(facts).iter().find_map(|node| {
        let node = facts.node.at(&node.path);
        let node = node.value()?;
        let named = node.group.clone().filter(|group| group != "root" && group != "0");
        named.filter(|_| node.mode.is_some_and(|mode| mode & 0o060 == 0o060))
    });
    let mut remedy = Remedy::new(Impact::RestartsProcess, "the program in question");
    if let Some(group) = &group {
        remedy = match sandbox::container(facts) {
            Some(_) => remedy.step_to(
                Place::Engine,
                "podman run --group-add keep-groups …",
                "keeps the caller's groups in the user namespace (crun only)",
            ),
            None => remedy.step_to(
                Place::Here,
                format!("usermod -aG {group} \"$USER\""),
                "then log in anew",
            ),
        };
    }
    remedy
        .step_to(host, "chmod 0666 /dev/nvidia[0-9]* /dev/nvidiactl /dev/nvidia-uvm", "until the nodes are made anew")
        .step_to(
            host,
            "echo 'options nvidia NVreg_DeviceFileMode=0666' > /etc/modprobe.d/nvidia-nodes.conf",
            "keeps it so from the next module load on",
        )
        .undo("rm /etc/modprobe.d/nvidia-nodes.conf, and chmod back to the former mode")
        .verify("python3 -c 'import os; os.open(\"/dev/nvidiactl\", os.O_RDWR)' as this user says nothing, and cuInit answers 0")
        .will_not_help("--group-add with the group's number: inside a user namespace that number is another group")
        .will_not_help("reinstalling the driver: it is loaded, and root can use it")
}
