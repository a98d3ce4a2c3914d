//! Causes in containers and in the policy around the process, and the questions that they share.

use facts::model::host::ContainerKind;
use facts::{Facts, Seen};

use crate::remedy::{Impact, Place, Remedy};

pub(super) mod cgroup_denies;
pub(super) mod gpu_not_requested;
pub(super) mod seccomp;

/// The kind of container around the process, when there is one.
pub(super) fn container(facts: &Facts) -> Option<Seen<ContainerKind>> {
    let seen = facts.host.container.as_seen()?;
    (seen.value != ContainerKind::None).then(|| seen.clone())
}

/// True in an LXC or LXD container.
pub(super) fn in_lxc(facts: &Facts) -> bool {
    container(facts).is_some_and(|kind| kind.value == ContainerKind::Lxc)
}

/// Where a command that concerns the kernel module or the true /dev must be run.
pub(super) fn kernel_side(facts: &Facts) -> Place {
    if container(facts).is_some() { Place::Host } else { Place::Here }
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
        let kernel = facts.host.kernel.value().map_or("", |kernel| kernel.as_str());
        let id = lxc_name(facts);
        if facts.host.proxmox.is_seen() || kernel.contains("pve") {
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

/// The LXC container's name as its cgroup path shows it: `/lxc.payload.129/…` or `/lxc/129/…`.
fn lxc_name(facts: &Facts) -> Option<String> {
    let lines = facts.sandbox.cgroups.value()?;
    lines.iter().find_map(|line| {
        let rest = line.split_once("lxc.payload.").or_else(|| line.split_once("/lxc/"))?.1;
        let name = rest.split('/').next()?;
        let plain = |ch: char| ch.is_ascii_alphanumeric() || matches!(ch, '-' | '_' | '.');
        (!name.is_empty() && name.len() < 64 && name.chars().all(plain)).then(|| name.to_owned())
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
