//! Causes in containers and in the policy around the process, and the questions that they share.

use facts::model::host::ContainerKind;
use facts::{Facts, Seen};

use crate::machine::{self, Distribution};
use crate::remedy::{Impact, Place, Remedy};

pub(super) mod bpf_old_kernel;
pub(super) mod cdi_stale;
pub(super) mod cdi_unresolvable;
pub(super) mod cgroup_denies;
pub(super) mod cgroup_lost;
pub(super) mod cgroup_v2_unsupported;
pub(super) mod cli_timeout;
pub(super) mod engine_blind;
pub(super) mod flatpak_runtime;
pub(super) mod gpu_not_requested;
pub(super) mod gvisor_unsupported;
pub(super) mod landlock;
pub(super) mod no_cgroups_set;
pub(super) mod operator_host_driver;
pub(super) mod proc_hidden;
pub(super) mod rootless_bpf;
pub(super) mod seccomp;
pub(super) mod selinux;
pub(super) mod userns;

/// The kind of container around the process, when there is one.
pub(super) fn container(facts: &Facts) -> Option<Seen<ContainerKind>> {
    let seen = facts.host.container.as_seen()?;
    (seen.value != ContainerKind::None).then(|| seen.clone())
}

/// True in an LXC or LXD container.
pub(super) fn in_lxc(facts: &Facts) -> bool {
    container(facts).is_some_and(|kind| kind.value == ContainerKind::Lxc)
}

/// How an LXC container is configured on its host: the file, and what stands between key and value.
pub(super) struct LxcConfig {
    /// Path of the file on the host.
    pub(super) path: String,
    /// `: ` on Proxmox VE, ` = ` elsewhere.
    pub(super) separator: &'static str,
    /// The command that restarts the container.
    pub(super) restart: String,
}

impl LxcConfig {
    /// The configuration of the container around the process. Proxmox VE is told by its kernel,
    /// which the container shares; the container's id by its cgroup, where that shows.
    pub(super) fn of(facts: &Facts) -> LxcConfig {
        let id = lxc_name(facts).or_else(|| configured_name(facts));
        if machine::distribution(facts) == Distribution::Proxmox {
            let id = id.unwrap_or_else(|| "CTID".to_owned());
            LxcConfig {
                path: format!("/etc/pve/lxc/{id}.conf"),
                separator: ": ",
                restart: format!("pct reboot {id}"),
            }
        } else {
            let id = id.unwrap_or_else(|| "NAME".to_owned());
            LxcConfig {
                path: format!("/var/lib/lxc/{id}/config"),
                separator: " = ",
                restart: format!("lxc-stop -n {id} && lxc-start -n {id}"),
            }
        }
    }

    /// The command that adds a line to the configuration.
    pub(super) fn add(&self, key: &str, value: &str) -> String {
        format!("echo '{key}{}{value}' >> {}", self.separator, self.path)
    }
}

/// The LXC container's name by the path of a configuration that is in the input.
fn configured_name(facts: &Facts) -> Option<String> {
    facts.sandbox.settings.iter().find_map(|setting| {
        let path = &*setting.origin.item;
        let proxmox =
            path.strip_prefix("/etc/pve/lxc/").and_then(|rest| rest.strip_suffix(".conf"));
        let plain = || path.strip_prefix("/var/lib/lxc/")?.strip_suffix("/config");
        plain_name(proxmox.or_else(plain)?)
    })
}

/// A name that is safe to stand in a command line; names from outside are hostile.
fn plain_name(name: &str) -> Option<String> {
    let plain = |ch: char| ch.is_ascii_alphanumeric() || matches!(ch, '-' | '_' | '.');
    let fits = !name.is_empty() && name.len() < 64 && name.chars().all(plain);
    fits.then(|| name.to_owned())
}

/// The LXC container's name as its cgroup path shows it: `/lxc.payload.129/…` or `/lxc/129/…`.
fn lxc_name(facts: &Facts) -> Option<String> {
    let lines = facts.sandbox.cgroups.value()?;
    lines.iter().find_map(|line| {
        let rest = line.split_once("lxc.payload.").or_else(|| line.split_once("/lxc/"))?.1;
        plain_name(rest.split('/').next()?)
    })
}

/// The steps that give a container its GPUs with the means of its engine.
pub(super) fn request_gpus(facts: &Facts, remedy: Remedy) -> Remedy {
    match container(facts).map(|kind| kind.value) {
        Some(ContainerKind::Podman) => remedy.step_to(
            Place::Engine,
            "podman run --device nvidia.com/gpu=all …",
            "needs a CDI spec: nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml",
        ),
        Some(ContainerKind::Kubernetes) => remedy.step_to(
            Place::Engine,
            "resources: {limits: {nvidia.com/gpu: 1}}",
            "in the container's part of the pod spec; needs NVIDIA's device plugin on the node",
        ),
        Some(ContainerKind::Lxc) => lxc_nodes(facts, remedy),
        Some(ContainerKind::Gvisor) => remedy.step_to(
            Place::Engine,
            "docker run --runtime=runsc --gpus all …",
            "runsc needs the flag --nvproxy=true",
        ),
        Some(ContainerKind::Nspawn) => remedy.step_to(
            Place::Engine,
            "systemd-nspawn --bind=/dev/nvidiactl --bind=/dev/nvidia-uvm --bind=/dev/nvidia0 \
             --property='DeviceAllow=char-nvidia rw' --property='DeviceAllow=char-nvidia-uvm rw' …",
            "one --bind for each GPU",
        ),
        Some(ContainerKind::Docker | ContainerKind::Other | ContainerKind::None) | None => remedy
            .step_to(
                Place::Engine,
                "docker run --gpus all …",
                "needs the NVIDIA Container Toolkit on the host",
            )
            .step_to(
                Place::Engine,
                "deploy: {resources: {reservations: {devices: [{driver: nvidia, count: all, capabilities: [gpu]}]}}}",
                "the same in a compose file, under the service",
            ),
    }
}

/// The configuration lines that give an LXC container the nodes, with the kernel's real numbers.
fn lxc_nodes(facts: &Facts, remedy: Remedy) -> Remedy {
    let config = LxcConfig::of(facts);
    let mut remedy = remedy;
    for path in crate::readings::needed_nodes(facts) {
        let inside = path.trim_start_matches('/');
        let entry = format!("{path} {inside} none bind,optional,create=file");
        remedy = remedy.step(Place::Host, config.add("lxc.mount.entry", &entry));
    }
    for rule in device_rules(facts) {
        remedy = remedy.step(Place::Host, config.add("lxc.cgroup2.devices.allow", &rule));
    }
    remedy.step(Place::Host, config.restart)
}

/// Device rules for the majors that CUDA needs: 195, which is fixed, and nvidia-uvm's, which the
/// kernel gives anew at each load.
pub(super) fn device_rules(facts: &Facts) -> Vec<String> {
    let uvm = facts.module.major("nvidia-uvm");
    let uvm = uvm.value().map_or("MAJOR".to_owned(), u32::to_string);
    vec!["c 195:* rwm".to_owned(), format!("c {uvm}:* rwm")]
}

/// The remedy of a container that has to be started anew.
pub(super) fn recreate() -> Remedy {
    Remedy::new(Impact::RecreatesContainer, "the programs in this container")
}

#[cfg(test)]
mod tests {
    use facts::version::KernelRelease;
    use facts::{Facts, Observed, Origin};

    use super::LxcConfig;

    #[test]
    fn the_configuration_is_found_by_kernel_and_cgroup() {
        let mut facts = Facts::default();
        let origin = || Origin::item("/proc/1/cgroup");
        assert_eq!(LxcConfig::of(&facts).path, "/var/lib/lxc/NAME/config");
        let lines = vec!["0::/lxc/129/ns/init.scope".to_owned()];
        facts.sandbox.cgroups = Observed::seen(lines, origin());
        let release = KernelRelease::parse("6.8.12-9-pve").unwrap();
        facts.host.kernel = Observed::seen(release, origin());
        let config = LxcConfig::of(&facts);
        assert_eq!(
            config.add("lxc.cgroup2.devices.allow", "c 507:* rwm"),
            "echo 'lxc.cgroup2.devices.allow: c 507:* rwm' >> /etc/pve/lxc/129.conf"
        );
        let hostile = vec!["0::/lxc/129;rm -rf ~/ns".to_owned()];
        facts.sandbox.cgroups = Observed::seen(hostile, origin());
        assert_eq!(LxcConfig::of(&facts).path, "/etc/pve/lxc/CTID.conf");
    }
}
