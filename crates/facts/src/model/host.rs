//! The machine as a whole.

use std::collections::BTreeMap;

use crate::observed::{Observed, Origin, Seen};
use crate::version::KernelRelease;

/// What kind of container the process is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ContainerKind {
    /// None: the init namespace of the machine.
    None,
    /// An LXC or LXD system container.
    Lxc,
    /// Docker or Moby.
    Docker,
    /// Podman.
    Podman,
    /// A Kubernetes pod, whatever the runtime beneath.
    Kubernetes,
    /// A gVisor sandbox (kernel 4.4.0, nvproxy).
    Gvisor,
    /// systemd-nspawn.
    Nspawn,
    /// A container whose kind is not known.
    Other,
}

impl ContainerKind {
    /// The name as the terminal shows it.
    pub fn name(self) -> &'static str {
        match self {
            ContainerKind::None => "none",
            ContainerKind::Lxc => "LXC",
            ContainerKind::Docker => "Docker",
            ContainerKind::Podman => "Podman",
            ContainerKind::Kubernetes => "Kubernetes",
            ContainerKind::Gvisor => "gVisor",
            ContainerKind::Nspawn => "systemd-nspawn",
            ContainerKind::Other => "container",
        }
    }
}

/// One setting of the kernel's configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigValue {
    /// `=y`
    Yes,
    /// `=m`
    Module,
    /// `# CONFIG_X is not set`
    No,
    /// Any other value.
    Text(String),
}

impl ConfigValue {
    /// True for `=y` and `=m`.
    pub fn is_on(&self) -> bool {
        matches!(self, ConfigValue::Yes | ConfigValue::Module)
    }
}

/// The machine.
#[derive(Debug, Clone, Default)]
pub struct Host {
    /// Host name.
    pub hostname: Observed<String>,
    /// `PRETTY_NAME` of os-release, or what the report calls the system.
    pub os: Observed<String>,
    /// Proxmox VE version, such as `8.4.1`.
    pub proxmox: Observed<String>,
    /// Kernel release.
    pub kernel: Observed<KernelRelease>,
    /// Machine architecture, such as `x86_64`.
    pub arch: Observed<String>,
    /// Seconds since boot.
    pub uptime_s: Observed<u64>,
    /// Hypervisor, lower case: `kvm`, `vmware`, `xen`, `microsoft`, or `none`.
    pub hypervisor: Observed<String>,
    /// Container.
    pub container: Observed<ContainerKind>,
    /// That a report speaks of a container, without the kind being known.
    pub container_told: Observed<bool>,
    /// Windows Subsystem for Linux (/dev/dxg): no PCI device is normal there.
    pub wsl: Observed<bool>,
    /// Tegra: an integrated GPU, which is not on the PCI bus.
    pub tegra: Observed<bool>,
    /// The words of the kernel command line that matter here.
    pub cmdline: Observed<Vec<String>>,
    /// The settings of the kernel configuration that matter here, without `CONFIG_`.
    pub config: BTreeMap<String, Observed<ConfigValue>>,
    /// Secure Boot.
    pub secure_boot: Observed<bool>,
    /// Where a report says that the driver loads once Secure Boot is off.
    pub secure_boot_cure: Option<Origin>,
    /// Product names of GPUs that a report mentions without any tool having listed them.
    pub gpu_names: Vec<Seen<String>>,
    /// PCI device ids of NVIDIA that a report mentions without any tool having listed them.
    pub gpu_ids: Vec<Seen<u16>>,
    /// Kernel lockdown: `none`, `integrity` or `confidentiality`.
    pub lockdown: Observed<String>,
    /// What a report says of a suspend or resume before the fault, where no log shows it.
    pub suspend_told: Vec<Seen<String>>,
}

impl Host {
    /// One setting of the kernel's configuration, given without `CONFIG_`.
    pub fn config(&self, name: &str) -> Observed<ConfigValue> {
        self.config.get(name).cloned().unwrap_or_default()
    }
}
