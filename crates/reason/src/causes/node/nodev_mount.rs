//! `node.nodev-mount`

use facts::model::node::NodeOpen;
use facts::model::sandbox::Mount;
use facts::{Errno, Facts, Layer, Observed, Origin, Seen};

use super::{all_needed, harmless, matching_failure, nodes_in_question, role, short};
use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::machine;
use crate::need::Need;
use crate::readings::{self, code};
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "node.nodev-mount",
    layer: Layer::Node,
    claim: "the device nodes lie on a mount with nodev",
    explanation: "On a file system that is mounted with nodev no device node can be opened, by \
        nobody and whatever its mode: open answers EACCES, root included. The node looks perfect \
        in a listing. It happens where /dev was rebuilt by hand (chroot, build jail, a tmpfs for a \
        sandbox) or where a folder with nodes was copied onto an ordinary disk. With nvidiactl \
        closed in this way NVML answers 4 and cuInit 100.",
    explains: &[
        SymptomId::CudaInitFails,
        SymptomId::NvmlFails,
        SymptomId::GpuMissing,
        SymptomId::FrameworkNoGpu,
    ],
    specializes: &["node.permission"],
    look_alikes: &[
        LookAlike {
            id: "node.permission",
            tell: "the node's mode or group does not let this user in",
        },
        LookAlike {
            id: "sandbox.selinux",
            tell: "an AVC denial stands in the log, and no mount has nodev",
        },
        LookAlike { id: "sandbox.cgroup-denies", tell: "open answers EPERM, not EACCES" },
        LookAlike {
            id: "sandbox.userns",
            tell: "the file system was mounted inside a user namespace, which forbids devices without saying nodev",
        },
    ],
    references: &[
        "https://man7.org/linux/man-pages/man8/mount.8.html",
        "https://docs.kernel.org/filesystems/mount_api.html",
        "fs/namei.c (may_open_dev)",
    ],
    weigh,
    remedy,
};

/// Codes that NVML makes of EACCES on nvidiactl.
const NVML_CODES: [i64; 1] = [code::NVML_NO_PERMISSION];

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    let Some(mounts) = facts.sandbox.mounts.as_seen() else {
        unseen(facts, &mut weighing);
        return weighing;
    };
    let mut held = None;
    for path in nodes_in_question(facts) {
        let Some(role) = role(&path) else { continue };
        let Some(mount) = mount_of(&mounts.value, &path) else { continue };
        if !has_nodev(mount) {
            continue;
        }
        if let Some((NodeOpen::Opened, origin)) = facts.node.opens.get(&path) {
            weighing.rules_out(format!("{} opens read-write from here", short(&path)), origin);
            return weighing;
        }
        held.get_or_insert((path, role, mount));
    }
    let Some((path, role, mount)) = held else {
        elsewhere(facts, mounts, &mut weighing);
        return weighing;
    };
    if let Some(works) = harmless(facts, role) {
        weighing.rules_out("CUDA starts all the same", works);
        return weighing;
    }
    let statement = format!("{} is mounted with nodev ({})", mount.target, mount.fs_type);
    weighing.supports(Strong, statement, &mounts.origin);
    refused(facts, &path, mount, &mut weighing);
    if let Some((statement, origin)) = matching_failure(facts, role, &NVML_CODES) {
        weighing.supports(Moderate, statement, &origin);
    }
    weighing
}

/// EACCES from a node with nodev on its mount: what else could refuse it is its mode.
fn refused(facts: &Facts, path: &str, mount: &Mount, weighing: &mut Weighing) {
    let name = short(path);
    match facts.node.opens.get(path) {
        Some((NodeOpen::Failed(Errno::EACCES), origin)) => {
            if let Some(mode) = open_to_all(facts, path) {
                let target = &mount.target;
                let statement = format!(
                    "open of {name} answers EACCES with mode {mode:04o}, and {target} has nodev"
                );
                weighing.confirms(statement, origin);
            } else {
                weighing.supports(Strong, format!("open of {name} answers EACCES"), origin);
                weighing.needs(Need::NodeListing);
            }
        }
        Some((NodeOpen::Failed(errno), origin)) => {
            weighing.objects(Strong, format!("open of {name} answers {errno}, not EACCES"), origin);
        }
        _ => {
            weighing.needs(Need::NodeOpen);
        }
    }
}

/// The node's mode, when it lets everybody in.
fn open_to_all(facts: &Facts, path: &str) -> Option<u32> {
    let node = facts.node.at(path);
    let mode = node.value()?.mode? & 0o7777;
    (mode & 0o666 == 0o666).then_some(mode)
}

/// The mount that holds a path: the one with the longest target, and of those the last.
fn mount_of<'a>(mounts: &'a [Mount], path: &str) -> Option<&'a Mount> {
    let holds = |mount: &&Mount| {
        let target = mount.target.trim_end_matches('/');
        path == target || path.strip_prefix(target).is_some_and(|rest| rest.starts_with('/'))
    };
    mounts.iter().filter(holds).max_by_key(|mount| mount.target.trim_end_matches('/').len())
}

fn has_nodev(mount: &Mount) -> bool {
    mount.options.iter().any(|option| option == "nodev")
}

/// No mount with nodev holds a node.
fn elsewhere(facts: &Facts, mounts: &Seen<Vec<Mount>>, weighing: &mut Weighing) {
    let held = nodes_in_question(facts).iter().find_map(|path| mount_of(&mounts.value, path));
    match held {
        Some(mount) if mount.target.starts_with("/dev") => {
            let statement = format!("{} is mounted without nodev", mount.target);
            weighing.rules_out(statement, &mounts.origin);
        }
        _ => unseen(facts, weighing),
    }
}

/// What suggests it while the mounts are not known, or what excludes it all the same.
fn unseen(facts: &Facts, weighing: &mut Weighing) {
    if let Some((names, origin)) = all_needed(facts, |path| readings::opens(facts, path)) {
        weighing.rules_out(format!("{} open read-write from here", names.join(", ")), &origin);
        return;
    }
    if let Some(seen) = facts.sandbox.engine.bound_nodev.as_seen() {
        let statement =
            format!("bwrap binds {} without --dev-bind, and so with nodev", short(&seen.value));
        weighing.supports(Strong, statement, &seen.origin);
        if let Some(origin) = nvml_refused(facts) {
            weighing.supports(Moderate, "NVML answers 4, which it makes of EACCES", &origin);
        }
        weighing.needs(Need::Mounts);
        return;
    }
    let refused = nodes_in_question(facts).into_iter().find_map(|path| {
        let (open, origin) = facts.node.opens.get(&path)?;
        let eacces = *open == NodeOpen::Failed(Errno::EACCES);
        (eacces && open_to_all(facts, &path).is_some()).then(|| (path, origin.clone()))
    });
    if let Some((path, origin)) = refused {
        let statement =
            format!("open of {} answers EACCES though its mode is open to all", short(&path));
        weighing.supports(Weak, statement, &origin);
        weighing.needs(Need::Mounts);
    } else if nvml_refused(facts).is_some() {
        weighing.needs(Need::Mounts).needs(Need::NodeOpen);
    }
}

fn nvml_refused(facts: &Facts) -> Option<Origin> {
    readings::nvml_failed_with(facts, code::NVML_NO_PERMISSION)
}

fn remedy(facts: &Facts) -> Remedy {
    let target = match &facts.sandbox.mounts {
        Observed::Seen(seen) => nodes_in_question(facts)
            .iter()
            .filter_map(|path| mount_of(&seen.value, path))
            .find(|mount| has_nodev(mount))
            .map(|mount| mount.target.clone()),
        _ => None,
    };
    let target = target.filter(|target| is_plain(target)).unwrap_or_else(|| "/dev".to_owned());
    let place = if machine::in_container(facts) { Place::Container } else { Place::Here };
    let mut remedy = Remedy::new(Impact::RestartsProcess, "the program in question");
    if facts.sandbox.engine.bound_nodev.is_seen() {
        remedy = remedy.step_to(
            Place::Engine,
            "bwrap --dev-bind /dev/nvidiactl /dev/nvidiactl --dev-bind /dev/nvidia0 /dev/nvidia0 --dev-bind /dev/nvidia-uvm /dev/nvidia-uvm …",
            "in the place of --bind, after --dev /dev",
        );
    }
    remedy
        .step_to(
            place,
            format!("mount -o remount,dev {target}"),
            "as root; not possible for a mount that was made inside a user namespace",
        )
        .step_to(
            place,
            "mount --bind /dev ROOT/dev",
            "for a chroot or jail: the host's own /dev in the place of a copy",
        )
        .step_to(
            Place::Engine,
            "take nodev out of the option list that makes this mount (fstab, the unit's or sandbox's mount options)",
            "keeps it so",
        )
        .undo(format!("mount -o remount,nodev {target}"))
        .verify("python3 -c 'import os; os.open(\"/dev/nvidiactl\", os.O_RDWR)' says nothing, and cuInit answers 0")
        .will_not_help("chmod, chown or sudo: nodev refuses root as well")
        .will_not_help("making the nodes anew on the same mount")
}

fn is_plain(path: &str) -> bool {
    path.len() < 128
        && path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/-_.".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(target: &str, options: &str) -> Mount {
        Mount {
            target: target.to_owned(),
            fs_type: "tmpfs".to_owned(),
            source: "tmpfs".to_owned(),
            options: options.split(',').map(str::to_owned).collect(),
            root: "/".to_owned(),
        }
    }

    #[test]
    fn the_longest_and_last_mount_holds_a_node() {
        let mounts = [
            mount("/", "rw"),
            mount("/dev", "rw,nosuid,nodev"),
            mount("/dev/nvidia0", "rw"),
            mount("/dev/shm", "rw,nosuid,nodev"),
        ];
        let nodev = |path| mount_of(&mounts, path).is_some_and(has_nodev);
        assert!(nodev("/dev/nvidiactl"));
        assert!(!nodev("/dev/nvidia0"));
        assert!(nodev("/dev/nvidia01"));
        let over = [mount("/dev", "rw,nodev"), mount("/dev", "rw,nosuid")];
        assert!(!mount_of(&over, "/dev/nvidiactl").is_some_and(has_nodev));
    }
}
