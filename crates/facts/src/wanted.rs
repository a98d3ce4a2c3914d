//! The one table of what is collected from a machine.
//!
//! A source reads it row by row; what the rows bring is understood by [`crate::extract::files`].
//! A row says which disposable child reads it, since what touches the driver can hang: only the
//! children of [`Group::ProcDriver`] and [`Group::Pci`] read anything that takes a lock of the
//! driver's or wakes a device, and they read their safe rows first.

mod table;

pub use table::WANTED;

use crate::layer::Layer;

/// How a row is read, and in which form its item is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A file: its bytes from the beginning, up to the row's limit.
    File,
    /// A log: its last bytes, up to the row's limit. /dev/kmsg is read to its present end without
    /// waiting for more.
    Log,
    /// A folder: the names of its entries, one a line, without `.` and `..`.
    Dir,
    /// A symbolic link: its target.
    Link,
    /// A binary file: what it tells of itself, recorded as [`crate::parse::elf_summary`]. Only its
    /// headers and a few sections are read, compressed ones apart.
    Elf,
    /// A device node: looked at by `lstat` and never opened, recorded as
    /// [`crate::parse::ls_long::live_line`].
    Node,
}

/// The child process that reads a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// What can be read without touching the driver or a device.
    Passive,
    /// /proc/driver/nvidia, whose files take the driver's locks.
    ProcDriver,
    /// PCI devices in sysfs, some of whose files read the device itself.
    Pci,
    /// The kernel log.
    KernelLog,
    /// The dynamic loader's files, and binary files: libraries, modules, firmware.
    Libraries,
    /// Container and policy around the process.
    Sandbox,
    /// Environment and limits of the process.
    Process,
    /// Toolkits.
    Frameworks,
}

impl Group {
    /// All groups, in the order in which their children are started.
    pub const ALL: [Group; 8] = [
        Group::Passive,
        Group::Process,
        Group::Sandbox,
        Group::Pci,
        Group::ProcDriver,
        Group::KernelLog,
        Group::Libraries,
        Group::Frameworks,
    ];

    /// The name of the probe that reads it.
    pub fn name(self) -> &'static str {
        match self {
            Group::Passive => "passive",
            Group::ProcDriver => "proc-driver",
            Group::Pci => "pci",
            Group::KernelLog => "kernel-log",
            Group::Libraries => "libraries",
            Group::Sandbox => "sandbox",
            Group::Process => "process",
            Group::Frameworks => "frameworks",
        }
    }

    /// The group of that name, or `None`.
    pub fn from_name(name: &str) -> Option<Group> {
        Group::ALL.into_iter().find(|group| group.name() == name)
    }

    /// The rows that this group's child reads, in order.
    pub fn rows(self) -> impl Iterator<Item = &'static Wanted> {
        WANTED.iter().filter(move |row| row.group == self)
    }
}

/// Whether reading a row can block for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Safety {
    /// It takes no lock of the driver's and reads no device.
    Safe,
    /// It waits behind a stuck thread of the driver, or wakes a device that may not wake.
    CanHang,
}

/// Which of the paths that a pattern fits are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// All of them.
    All,
    /// Below /sys/bus/pci/devices: only those of devices whose `vendor` reads `0x10de`. Others may
    /// be slow or hang, and are nobody's business here.
    NvidiaDevices,
}

/// What a bundle must not carry of a row as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redaction {
    /// Nothing to hide.
    None,
    /// The name of the machine.
    HostName,
    /// Values of variables other than those of CUDA, NVIDIA and the loader.
    Variables,
    /// Words other than those that [`crate::parse::cmdline`] keeps.
    CommandLine,
    /// UUIDs and serial numbers of devices.
    Identifiers,
    /// Paths of users' folders and shares.
    Paths,
    /// Lines that do not come from the kernel's drivers.
    LogLines,
}

/// One row: what is read, by whom and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// How it is read.
    pub kind: Kind,
    /// The absolute path. `*` stands for any characters within one component; `{release}` for the
    /// running kernel's release, and `{driver}` for the text of /sys/module/nvidia/version (without
    /// that file the row is left out). A path without a `*` that is not there is recorded as
    /// absent; a pattern that nothing fits is not. A path that an earlier row brought is not read
    /// again.
    pub pattern: &'static str,
    /// The layer that it tells of.
    pub layer: Layer,
    /// Who reads it.
    pub group: Group,
    /// Whether reading it can block for good.
    pub safety: Safety,
    /// Which of the fitting paths are read.
    pub scope: Scope,
    /// The most bytes that are kept; an item that was cut there is a part.
    pub limit_bytes: u32,
    /// The privilege without which it is refused or tells less; empty when anyone may read it.
    pub privilege: &'static str,
    /// What must not leave the machine as it is.
    pub redaction: Redaction,
}

impl Wanted {
    /// A row that anyone may read, of all paths, with nothing to hide and up to 64 KiB.
    const fn new(kind: Kind, group: Group, layer: Layer, pattern: &'static str) -> Wanted {
        Wanted {
            kind,
            pattern,
            layer,
            group,
            safety: Safety::Safe,
            scope: Scope::All,
            limit_bytes: 64 << 10,
            privilege: "",
            redaction: Redaction::None,
        }
    }

    const fn can_hang(self) -> Wanted {
        Wanted { safety: Safety::CanHang, ..self }
    }

    const fn of_nvidia(self) -> Wanted {
        Wanted { scope: Scope::NvidiaDevices, ..self }
    }

    const fn limit_kib(self, kib: u32) -> Wanted {
        Wanted { limit_bytes: kib << 10, ..self }
    }

    const fn needs(self, privilege: &'static str) -> Wanted {
        Wanted { privilege, ..self }
    }

    const fn hides(self, redaction: Redaction) -> Wanted {
        Wanted { redaction, ..self }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::extract::files::{Routing, path_matches, routing};

    /// What reads the device or takes a lock of RM; see the hang-safety column of the interface
    /// table.
    const CAN_HANG: [&str; 11] = [
        "/proc/driver/nvidia/gpus/*/information",
        "/proc/driver/nvidia/gpus/*/power",
        "/proc/driver/nvidia/gpus/*/unbindLock",
        "/proc/driver/nvidia/gpus/*/numa_status",
        "/proc/driver/nvidia/gpus/*/offline_pages",
        "/sys/bus/pci/devices/*/config",
        "/sys/bus/pci/devices/*/current_link_speed",
        "/sys/bus/pci/devices/*/current_link_width",
        "/sys/bus/pci/devices/*/max_link_speed",
        "/sys/bus/pci/devices/*/max_link_width",
        "/sys/bus/pci/devices/*/resource1_resize",
    ];

    fn sample(row: &Wanted) -> String {
        let path =
            row.pattern.replace("{release}", "6.8.12-9-pve").replace("{driver}", "590.48.01");
        path.replace("/devices/*/", "/devices/0000:01:00.0/").replace('*', "0")
    }

    #[test]
    fn rows_are_unique() {
        let patterns: BTreeSet<&str> = WANTED.iter().map(|row| row.pattern).collect();
        assert_eq!(patterns.len(), WANTED.len());
    }

    #[test]
    fn every_row_is_understood() {
        for row in WANTED {
            assert_ne!(routing(&sample(row)), Routing::Unrouted, "{}", row.pattern);
        }
    }

    #[test]
    fn what_can_hang_is_marked_and_left_to_two_children() {
        for row in WANTED {
            let hangs = CAN_HANG.iter().any(|pattern| path_matches(pattern, &sample(row)));
            assert_eq!(hangs, row.safety == Safety::CanHang, "{}", row.pattern);
            let careful = matches!(row.group, Group::ProcDriver | Group::Pci);
            assert!(careful || !hangs, "{}", row.pattern);
            let driver = row.pattern.starts_with("/proc/driver/nvidia");
            assert_eq!(driver, row.group == Group::ProcDriver, "{}", row.pattern);
            let opened = row.pattern.starts_with("/dev/nvidia") && row.kind == Kind::File;
            assert!(!opened, "{} would be opened", row.pattern);
        }
    }

    #[test]
    fn safe_rows_come_first_and_every_group_has_rows() {
        for group in Group::ALL {
            assert_eq!(Group::from_name(group.name()), Some(group));
            assert!(group.rows().next().is_some(), "{}", group.name());
            assert!(group.rows().map(|row| row.safety == Safety::CanHang).is_sorted());
        }
        assert_eq!(Group::from_name("nvml"), None);
    }

    #[test]
    fn patterns_are_absolute_and_limits_are_sane() {
        for row in WANTED {
            assert!(row.pattern.starts_with('/') && !row.pattern.ends_with('/'));
            assert!((1..=8 << 20).contains(&row.limit_bytes), "{}", row.pattern);
        }
    }
}
