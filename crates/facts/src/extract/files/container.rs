//! What kind of container the process is in, and how it was configured.

use super::reading::{Learn, Reading};
use crate::model::Facts;
use crate::model::host::ContainerKind;
use crate::observed::{Observed, Origin, Seen};
use crate::parse::{At, Parsed, cgroup, container_conf, environ, mountinfo};
use crate::raw::{ItemName, RawItem, RawSet};

/// An LXC container's configuration.
pub(super) fn lxc(reading: &Reading, facts: &mut Facts) {
    enter_settings(reading, container_conf::lxc, facts);
}

/// NVIDIA's container runtime.
pub(super) fn nvidia_runtime(reading: &Reading, facts: &mut Facts) {
    enter_settings(reading, container_conf::nvidia_runtime, facts);
}

fn enter_settings(
    reading: &Reading,
    parser: fn(&str) -> Parsed<Vec<container_conf::Setting>>,
    facts: &mut Facts,
) {
    let Some(text) = reading.text() else { return };
    let parsed = parser(text.as_str());
    let mut lines = text.lines();
    facts.sandbox.settings.extend(parsed.value.into_iter().map(|at| lines.seen(at)));
    reading.complain(&parsed.complaints, facts);
}

/// How firmly a kind is held: the innermost container wins, since that is where the process is.
fn rank(kind: ContainerKind) -> u8 {
    match kind {
        ContainerKind::Gvisor => 7,
        ContainerKind::Kubernetes => 6,
        ContainerKind::Podman => 5,
        ContainerKind::Docker => 4,
        ContainerKind::Lxc => 3,
        ContainerKind::Nspawn => 2,
        ContainerKind::Other => 1,
        ContainerKind::None => 0,
    }
}

/// Files and variables that an image carries with it. They stay when a virtual machine boots from
/// a container's image, so beside initial namespaces they prove nothing.
const LEFT_BY_IMAGES: [&str; 5] = [
    "/.dockerenv",
    "/proc/1/environ",
    "/proc/self/environ",
    "/run/.containerenv",
    "/run/systemd/container",
];

/// Weighs every mark of a container. Without any that counts, the process is in none when its
/// namespaces are the initial ones, and in one of unknown kind when its process namespace is
/// another.
pub(super) fn conclude(raw: &RawSet, facts: &mut Facts) {
    let by_namespaces = by_namespaces(raw, facts);
    let initial = by_namespaces.as_ref().and_then(Observed::value) == Some(&ContainerKind::None);
    let counts = |seen: &Seen<ContainerKind>| {
        let kind_of_image = matches!(seen.value, ContainerKind::Docker | ContainerKind::Podman);
        !(initial && kind_of_image && LEFT_BY_IMAGES.contains(&&*seen.origin.item))
    };
    let marks = raw.items().flat_map(marks_of).filter(counts);
    let best = marks.max_by_key(|seen| rank(seen.value));
    if let Some(found) = best.map(Observed::Seen).or(by_namespaces) {
        facts.host.container.learn(found);
    }
}

/// The marks in one item.
fn marks_of(item: &RawItem) -> Vec<Seen<ContainerKind>> {
    let ItemName::File(path) = &item.name else {
        return Vec::new();
    };
    let Some(text) = item.text() else {
        return Vec::new();
    };
    let mark = |kind: Option<ContainerKind>| {
        kind.map(|kind| Seen::new(kind, item.origin_at(1, &text))).into_iter().collect()
    };
    match path.as_str() {
        "/.dockerenv" => mark(Some(ContainerKind::Docker)),
        "/run/.containerenv" => mark(Some(ContainerKind::Podman)),
        "/run/systemd/container" => mark(kind_of_word(text.trim())),
        // gVisor's sentry presents a fixed, old kernel.
        "/proc/version" => mark(is_gvisor(&text).then_some(ContainerKind::Gvisor)),
        "/proc/1/environ" | "/proc/self/environ" => marks_of_environ(item),
        "/proc/self/cgroup" | "/proc/1/cgroup" => marks_of_cgroup(item, &text),
        "/proc/self/mountinfo" => marks_of_mounts(item, &text),
        _ => Vec::new(),
    }
}

/// True for the text of /proc/version that gVisor gives to every sandbox.
pub(super) fn is_gvisor(proc_version: &str) -> bool {
    proc_version.starts_with("Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016")
}

/// The word that container managers put into `container=` and systemd into /run/systemd/container.
fn kind_of_word(word: &str) -> Option<ContainerKind> {
    Some(match word {
        "lxc" | "lxc-libvirt" => ContainerKind::Lxc,
        "docker" => ContainerKind::Docker,
        "podman" => ContainerKind::Podman,
        "systemd-nspawn" => ContainerKind::Nspawn,
        // WSL is told apart by its own mark; its namespaces are no container of anybody's.
        "" | "wsl" => return None,
        _ => ContainerKind::Other,
    })
}

fn marks_of_environ(item: &RawItem) -> Vec<Seen<ContainerKind>> {
    let variables = environ::environ(item.bytes().unwrap_or_default());
    let kind = |at: At<(String, String)>| {
        let (name, value) = at.value;
        let kind = match name.as_str() {
            "container" => kind_of_word(&value)?,
            "KUBERNETES_SERVICE_HOST" => ContainerKind::Kubernetes,
            _ => return None,
        };
        Some(Seen::new(kind, item.origin_at(at.line, &format!("{name}={value}"))))
    };
    variables.into_iter().filter_map(kind).collect()
}

fn marks_of_cgroup(item: &RawItem, text: &str) -> Vec<Seen<ContainerKind>> {
    let lines = cgroup::cgroup(text).value;
    let kind = |at: &At<cgroup::CgroupLine>| {
        let kind = cgroup::container_of(&at.value.path)?;
        Some(Seen::new(kind, item.origin_at(at.line, &at.value.path)))
    };
    lines.iter().filter_map(kind).collect()
}

/// Mounts that only containers have: files that an engine binds over /etc/hosts and its like, and
/// lxcfs over /proc.
fn marks_of_mounts(item: &RawItem, text: &str) -> Vec<Seen<ContainerKind>> {
    let mounts = mountinfo::mountinfo(text).value;
    let kind = |at: &At<crate::model::sandbox::Mount>| {
        let mount = &at.value;
        let kind = match mount.target.as_str() {
            "/etc/hostname" | "/etc/hosts" | "/etc/resolv.conf" | "/dev/termination-log" => {
                kind_of_bind(&mount.root)?
            }
            target if target.starts_with("/proc/") && mount.fs_type == "fuse.lxcfs" => {
                ContainerKind::Lxc
            }
            _ => return None,
        };
        Some(Seen::new(kind, item.origin_at(at.line, &mount.target)))
    };
    mounts.iter().filter_map(kind).collect()
}

/// The engine whose folder a bound file comes from.
fn kind_of_bind(root: &str) -> Option<ContainerKind> {
    if root.contains("/kubelet/pods/") {
        Some(ContainerKind::Kubernetes)
    } else if root.contains("/docker/containers/") {
        Some(ContainerKind::Docker)
    } else if root.contains("/overlay-containers/") {
        Some(ContainerKind::Podman)
    } else {
        None
    }
}

/// Inode numbers of the initial namespaces (`PROC_PID_INIT_INO` and `PROC_CGROUP_INIT_INO` of
/// linux/proc_ns.h).
const INITIAL_PID: &str = "pid:[4026531836]";
const INITIAL_CGROUP: &str = "cgroup:[4026531835]";

fn by_namespaces(raw: &RawSet, facts: &Facts) -> Option<Observed<ContainerKind>> {
    let (pid, origin) = link(raw, "/proc/self/ns/pid")?;
    if pid != INITIAL_PID {
        // WSL starts each distribution in a process namespace of its own.
        let wsl = facts.host.wsl.value() == Some(&true);
        let kind = if wsl { ContainerKind::None } else { ContainerKind::Other };
        return Some(Observed::seen(kind, origin));
    }
    // Kernels before 4.6 have no cgroup namespace; the process namespace must do there.
    let same_cgroup =
        link(raw, "/proc/self/ns/cgroup").is_none_or(|(name, _)| name == INITIAL_CGROUP);
    same_cgroup.then(|| Observed::seen(ContainerKind::None, origin))
}

fn link(raw: &RawSet, path: &str) -> Option<(String, Origin)> {
    let item = raw.files(path).find(|item| item.bytes().is_some())?;
    let text = item.text()?.trim().to_owned();
    let origin = item.origin_at(1, &text);
    Some((text, origin))
}
