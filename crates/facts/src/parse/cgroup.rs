//! /proc/PID/cgroup, and what the names of control groups tell of the container around a process.

use super::{At, Parsed, numbered};
use crate::model::host::ContainerKind;

/// One line: a hierarchy and the group in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CgroupLine {
    /// Number of the hierarchy; 0 is the unified one of version 2.
    pub hierarchy: u32,
    /// Controllers, empty for version 2.
    pub controllers: String,
    /// Path of the group, seen from the reader's cgroup namespace.
    pub path: String,
}

/// Reads /proc/PID/cgroup, of either version: `hierarchy:controllers:path`.
pub fn cgroup(text: &str) -> Parsed<Vec<At<CgroupLine>>> {
    let mut parsed = Parsed::<Vec<At<CgroupLine>>>::default();
    for (line, content) in numbered(text) {
        match cgroup_line(content) {
            Some(group) => parsed.value.push(At::new(line, group)),
            None if content.trim().is_empty() => {}
            None => parsed.complain(line, "not a `hierarchy:controllers:path` line"),
        }
    }
    parsed
}

fn cgroup_line(content: &str) -> Option<CgroupLine> {
    let mut fields = content.trim().splitn(3, ':');
    let hierarchy = fields.next()?.parse().ok()?;
    let controllers = fields.next()?.to_owned();
    let path = fields.next().filter(|path| path.starts_with('/'))?.to_owned();
    Some(CgroupLine { hierarchy, controllers, path })
}

/// The kind of container that a group's path, or the source of a bind mount, gives away.
///
/// A cgroup namespace hides the path (`0::/`), so `None` says nothing.
pub fn container_of(path: &str) -> Option<ContainerKind> {
    let components = || path.split('/').filter(|component| !component.is_empty());
    let starts = |beginnings: &[&str]| {
        components().any(|name| beginnings.iter().any(|beginning| name.starts_with(beginning)))
    };
    if starts(&["kubepods", "cri-containerd-", "crio-"]) {
        return Some(ContainerKind::Kubernetes);
    }
    if starts(&["libpod-", "libpod_parent"]) {
        return Some(ContainerKind::Podman);
    }
    if starts(&["docker-"]) || follows(path, &["docker", "ecs", "actions_job"]) {
        // The engine's own unit, docker.service, has a dot and not a dash there.
        return Some(ContainerKind::Docker);
    }
    if starts(&["lxc.payload", ".lxc"]) || follows(path, &["lxc"]) {
        return Some(ContainerKind::Lxc);
    }
    // machine.slice also holds virtual machines: `machine-qemu-…`.
    let machine = |name: &str| {
        name.starts_with("systemd-nspawn@")
            || (name.starts_with("machine-") && !name.starts_with("machine-qemu"))
    };
    components().any(machine).then_some(ContainerKind::Nspawn)
}

/// True when a component has one of these names and another follows it: `/docker/<id>`.
fn follows(path: &str, names: &[&str]) -> bool {
    let mut components = path.split('/').filter(|component| !component.is_empty());
    components.any(|component| names.contains(&component)) && components.next().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_both_versions() {
        let parsed = cgroup("12:devices:/docker/0123abcd\n1:name=systemd:/x:y\n0::/\nnonsense\n");
        assert_eq!(parsed.value.len(), 3);
        assert_eq!(parsed.value[0].value.controllers, "devices");
        assert_eq!(parsed.value[1].value.path, "/x:y");
        assert_eq!(parsed.value[2].value.hierarchy, 0);
        assert_eq!(parsed.complaints.len(), 1);
    }

    #[test]
    fn kinds_of_containers() {
        use ContainerKind::{Docker, Kubernetes, Lxc, Nspawn, Podman};
        let kinds = [
            ("/docker/7be92808767a667f35c8505cbf40d14e931ef6db5b0210329cf193b15ba9d605", Docker),
            ("/system.slice/docker-7be92808767a667f.scope", Docker),
            ("/ecs/55091c13-b8cf-4801-b527-f4601742204d/432624d2150b349f", Docker),
            (
                "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0.slice/x",
                Kubernetes,
            ),
            ("/kubepods/besteffort/pod1/7be92808767a667f", Kubernetes),
            ("/system.slice/containerd.service/kubepods-pod1.slice:cri-containerd:7b", Kubernetes),
            ("/machine.slice/libpod-7be92808767a667f.scope/container", Podman),
            ("/lxc.payload.129/init.scope", Lxc),
            ("/lxc/129/ns", Lxc),
            ("/machine.slice/systemd-nspawn@web.service/payload", Nspawn),
            ("/machine.slice/machine-web.scope", Nspawn),
        ];
        for (path, kind) in kinds {
            assert_eq!(container_of(path), Some(kind), "{path}");
        }
        for path in [
            "/",
            "/init.scope",
            "/user.slice/user-0.slice/session-1.scope",
            "/system.slice/docker.service",
            "/docker",
            "/lxc.monitor.129",
            "/machine.slice/machine-qemu\\x2d1\\x2dvm.scope",
        ] {
            assert_eq!(container_of(path), None, "{path}");
        }
    }
}
