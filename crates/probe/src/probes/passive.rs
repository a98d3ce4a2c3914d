//! Files that can be read without touching the driver: of the kernel, the modules, the host, and a
//! snapshot of the device nodes before any library could change them.

use super::Options;
use super::reader::Reader;
use crate::child::report::Report;

/// Listings of folders.
const FOLDERS: [&str; 6] = [
    "/dev",
    "/dev/nvidia-caps",
    "/dev/nvidia-caps-imex-channels",
    "/lib/firmware/nvidia",
    "/etc/modprobe.d",
    "/etc/cdi",
];
/// Device nodes.
const NODES: [&str; 4] = ["/dev/nvidia*", "/dev/nvidia-caps/*", "/dev/dxg", "/dev/dri/*"];
/// Most nodes of one pattern that are described: a machine may have 2048 IMEX channels.
const NODES_LIMIT: usize = 128;
/// Symbolic links.
const LINKS: [&str; 1] = ["/dev/char/195:*"];

/// Files, in the order in which they are read. A pattern may fit nothing; a path without `*` that
/// is not there is reported as absent.
const FILES: [&str; 53] = [
    "/proc/modules",
    "/proc/devices",
    "/proc/iomem",
    "/proc/cmdline",
    "/proc/version",
    "/proc/uptime",
    "/proc/sys/kernel/osrelease",
    "/proc/sys/kernel/hostname",
    "/proc/sys/kernel/arch",
    "/proc/sys/kernel/modprobe",
    "/proc/sys/kernel/modules_disabled",
    "/proc/sys/kernel/tainted",
    "/proc/sys/kernel/hung_task_timeout_secs",
    "/proc/sys/kernel/hung_task_warnings",
    "/proc/sys/kernel/hung_task_detect_count",
    "/proc/sys/vm/overcommit_memory",
    "/proc/meminfo",
    "/sys/module/nvidia*/initstate",
    "/sys/module/nvidia*/version",
    "/sys/module/nvidia*/srcversion",
    "/sys/module/nvidia*/taint",
    "/sys/module/nvidia*/refcnt",
    "/sys/module/nvidia*/parameters/*",
    "/sys/module/nouveau/initstate",
    "/sys/module/nova_core/initstate",
    "/sys/module/vfio_pci/initstate",
    "/etc/modprobe.d/*.conf",
    "/run/modprobe.d/*.conf",
    "/lib/modprobe.d/*.conf",
    "/etc/os-release",
    "/etc/hostname",
    "/etc/nv_tegra_release",
    "/usr/share/perl5/PVE/pvecfg.pm",
    "/proc/device-tree/compatible",
    "/sys/class/dmi/id/sys_vendor",
    "/sys/class/dmi/id/product_name",
    "/sys/hypervisor/type",
    "/sys/kernel/security/lockdown",
    "/sys/firmware/efi/efivars/SecureBoot-*",
    "/.dockerenv",
    "/run/.containerenv",
    "/run/systemd/container",
    "/etc/nvidia-container-runtime/config.toml",
    "/etc/pve/lxc/*.conf",
    "/var/lib/lxc/*/config",
    "/etc/cdi/*",
    "/var/run/cdi/*",
    "/run/nvidia-persistenced/*.pid",
    "/run/nvidia-fabricmanager/*.pid",
    "/tmp/nvidia-mps/*.pid",
    "/proc/1/environ",
    "/proc/1/comm",
    "/proc/1/sched",
];
/// Most files of one pattern.
const MATCHES_LIMIT: usize = 256;
/// How much of /proc/cpuinfo is read: the first processor tells all that matters.
const CPUINFO_LIMIT_BYTES: usize = 4096;
/// Largest kernel configuration, compressed or not.
const CONFIG_LIMIT_BYTES: usize = 1 << 20;

/// Reads them, the device nodes first.
pub(super) fn run(report: &mut Report, options: &Options) {
    let reader = Reader::new(&options.root);
    for folder in FOLDERS {
        reader.listing(report, folder);
    }
    for pattern in NODES {
        for path in reader.matches(pattern).into_iter().take(NODES_LIMIT) {
            reader.node(report, &path);
        }
    }
    for pattern in LINKS {
        for path in reader.matches(pattern) {
            reader.link(report, &path);
        }
    }
    for pattern in FILES {
        for path in reader.matches(pattern).into_iter().take(MATCHES_LIMIT) {
            reader.file(report, &path);
        }
    }
    reader.file_within(report, "/proc/cpuinfo", CPUINFO_LIMIT_BYTES);
    kernel_configuration(report, &reader);
}

/// The configuration of the running kernel, from the first place that has it.
fn kernel_configuration(report: &mut Report, reader: &Reader) {
    let release = reader.text("/proc/sys/kernel/osrelease").unwrap_or_default();
    let release = release.trim();
    let places = [
        "/proc/config.gz".to_owned(),
        format!("/boot/config-{release}"),
        format!("/lib/modules/{release}/config"),
    ];
    for place in places {
        reader.file_within(report, &place, CONFIG_LIMIT_BYTES);
        if reader.metadata(&place).is_some() {
            return;
        }
    }
}
