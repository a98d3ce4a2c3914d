//! What remedies need to know of the machine: where the kernel module lives, and how this
//! distribution installs and rebuilds things.

use facts::Facts;
use facts::model::host::ContainerKind;
use facts::version::KernelRelease;

use crate::remedy::Place;

/// A family of distributions, as far as commands differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Distribution {
    /// Debian, and what is derived from it without being named here.
    Debian,
    /// Ubuntu and its derivatives.
    Ubuntu,
    /// Proxmox VE: Debian beneath, a kernel of its own.
    Proxmox,
    /// Fedora.
    Fedora,
    /// RHEL, Rocky, Alma, CentOS, Oracle and Amazon Linux.
    Rhel,
    /// openSUSE and SLES.
    Suse,
    /// Arch and its derivatives.
    Arch,
    /// NixOS.
    Nixos,
    /// Not known, or none of these.
    Other,
}

impl Distribution {
    /// The command that writes the initial RAM disk anew, with the files of modprobe.d and the
    /// firmware that it holds.
    pub fn rebuild_initramfs(self) -> &'static str {
        match self {
            Distribution::Debian | Distribution::Ubuntu => "update-initramfs -u",
            Distribution::Proxmox => "update-initramfs -u && proxmox-boot-tool refresh",
            Distribution::Fedora | Distribution::Rhel | Distribution::Suse => "dracut --force",
            Distribution::Arch => "mkinitcpio -P",
            Distribution::Nixos => "nixos-rebuild boot",
            Distribution::Other => "update-initramfs -u, or dracut --force",
        }
    }
}

/// Parts of a system's own name, lower case, and what it is. The first that fits counts.
const NAMES: [(&str, Distribution); 20] = [
    ("proxmox", Distribution::Proxmox),
    ("ubuntu", Distribution::Ubuntu),
    ("pop!_os", Distribution::Ubuntu),
    ("mint", Distribution::Ubuntu),
    ("debian", Distribution::Debian),
    ("fedora", Distribution::Fedora),
    ("bazzite", Distribution::Fedora),
    ("red hat", Distribution::Rhel),
    ("rocky", Distribution::Rhel),
    ("alma", Distribution::Rhel),
    ("centos", Distribution::Rhel),
    ("oracle", Distribution::Rhel),
    ("amazon linux", Distribution::Rhel),
    ("suse", Distribution::Suse),
    ("sles", Distribution::Suse),
    ("arch", Distribution::Arch),
    ("artix", Distribution::Arch),
    ("manjaro", Distribution::Arch),
    ("nixos", Distribution::Nixos),
    ("rhel", Distribution::Rhel),
];

/// Parts of a kernel's release and the distribution that builds it.
const KERNELS: [(&str, Distribution); 11] = [
    ("-pve", Distribution::Proxmox),
    ("-generic", Distribution::Ubuntu),
    ("-aws", Distribution::Ubuntu),
    ("-azure", Distribution::Ubuntu),
    ("-gcp", Distribution::Ubuntu),
    ("-amd64", Distribution::Debian),
    (".fc", Distribution::Fedora),
    (".el", Distribution::Rhel),
    ("-default", Distribution::Suse),
    ("-arch", Distribution::Arch),
    (".amzn", Distribution::Rhel),
];

/// Whether this is WSL, whose driver is that of Windows.
pub fn is_wsl(facts: &Facts) -> bool {
    facts.host.wsl.value() == Some(&true)
}

/// WSL and Tegra bring the driver's kernel side in other ways.
pub fn has_other_driver(facts: &Facts) -> bool {
    is_wsl(facts) || facts.host.tegra.value() == Some(&true)
}

/// Whether the facts come from inside a container.
pub fn in_container(facts: &Facts) -> bool {
    facts.host.container.value().is_some_and(|kind| *kind != ContainerKind::None)
}

/// Where commands about kernel modules, firmware and services of the driver belong: inside a
/// container nothing can be loaded, and its /lib is not the kernel's.
pub fn kernel_place(facts: &Facts) -> Place {
    if in_container(facts) { Place::Host } else { Place::Here }
}

/// The distribution that the kernel's machine runs. In a container, os-release describes the
/// image, so only the kernel's release counts there.
pub fn distribution(facts: &Facts) -> Distribution {
    if facts.host.proxmox.is_seen() {
        return Distribution::Proxmox;
    }
    let release = facts.host.kernel.value().map(KernelRelease::as_str).unwrap_or_default();
    let by_kernel = find(&KERNELS, release);
    let name = facts.host.os.value().map(|os| os.to_lowercase()).unwrap_or_default();
    let by_name = if in_container(facts) { None } else { find(&NAMES, &name) };
    match (by_name, by_kernel) {
        (_, Some(Distribution::Proxmox)) => Distribution::Proxmox,
        (Some(named), _) => named,
        (None, Some(built)) => built,
        (None, None) => Distribution::Other,
    }
}

fn find(table: &[(&str, Distribution)], text: &str) -> Option<Distribution> {
    table.iter().find(|(part, _)| text.contains(part)).map(|(_, found)| *found)
}

#[cfg(test)]
mod tests {
    use facts::{Observed, Origin};

    use super::*;

    fn facts(os: &str, kernel: &str) -> Facts {
        let mut facts = Facts::default();
        facts.host.os = Observed::seen(os.to_owned(), Origin::item("/etc/os-release"));
        let release = KernelRelease::parse(kernel).unwrap();
        facts.host.kernel = Observed::seen(release, Origin::item("$ uname -r"));
        facts
    }

    #[test]
    fn the_kernel_tells_what_a_container_hides() {
        let mut machine = facts("Ubuntu 24.04.2 LTS", "6.8.12-9-pve");
        assert_eq!(distribution(&machine), Distribution::Proxmox);
        machine = facts("Debian GNU/Linux 12 (bookworm)", "5.14.0-570.23.1.el9_6.x86_64");
        assert_eq!(distribution(&machine), Distribution::Debian);
        let kind = Observed::seen(ContainerKind::Docker, Origin::item("/.dockerenv"));
        machine.host.container = kind;
        assert_eq!(distribution(&machine), Distribution::Rhel);
        assert_eq!(kernel_place(&machine), Place::Host);
        assert_eq!(distribution(&Facts::default()), Distribution::Other);
    }
}
