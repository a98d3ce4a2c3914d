//! Container engines, hooks, orchestrators and policies: what they said and how they are set up.

use crate::observed::{Errno, Observed, Origin, Seen};
use crate::version::DriverVersion;

/// What a step of installing a device program into a cgroup is called by the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProgramStep {
    /// `BPF_PROG_QUERY`: asking which programs are attached.
    Query,
    /// `BPF_PROG_LOAD`: handing a new program to the kernel.
    Load,
    /// `BPF_PROG_ATTACH`: putting it in the place of the old one.
    Attach,
}

/// A fault that an engine, a hook or an orchestrator reports.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum EngineFault {
    /// The kernel refused a step of installing a device program (cgroup v2).
    DeviceProgram(ProgramStep, Errno),
    /// The kernel refused a write to `devices.allow` (cgroup v1).
    DeviceList(Errno),
    /// The hook was asked for a device that the driver does not list; which.
    UnknownDevice(String),
    /// The hook finds no device controller of cgroup v1.
    NoDeviceController,
    /// The engine knows no CDI device of this name.
    CdiUnresolvable(String),
    /// The engine takes a CDI name for a path, since it does not know CDI.
    CdiUnknown(String),
    /// A path that a CDI spec or a mount request names is not there.
    PathMissing(String),
    /// A driver library that libnvidia-container was to put into the image and found there.
    LibraryInImage(String),
    /// A node of the driver's that libnvidia-container did not find on its host.
    NodeMissing(String),
    /// The hook, which runs outside the container, could not load this driver library.
    HookLacksLibrary(String),
    /// The hook could not enter the root under which it looks for the driver.
    DriverRootMissing,
    /// The engine knows no driver, runtime or hook for GPUs; its words.
    NoGpuRuntime(String),
    /// A device plugin finds no driver in its own container.
    PluginLacksDriver,
    /// The hook waited for the driver in vain.
    HookTimedOut,
    /// gVisor does not know this driver version; `None` when it only ended.
    GvisorVersion(Option<DriverVersion>),
    /// gVisor does not know a call, a control command or a class; its words.
    GvisorCall(String),
    /// A driver container could not take the host's driver out of the kernel.
    DriverInUse(String),
    /// A device node could not be made.
    MknodRefused(String),
}

/// Which policy denied an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Policy {
    /// SELinux.
    Selinux,
    /// `AppArmor`.
    Apparmor,
    /// Landlock.
    Landlock,
}

/// An access that a policy denied, as the audit log or its interpreters show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// Which policy.
    pub policy: Policy,
    /// What was denied, such as `read write`.
    pub access: String,
    /// Label or profile of the process.
    pub subject: String,
    /// Label of the object; empty under AppArmor.
    pub object: String,
    /// Class of the object, such as `chr_file`; empty when not shown.
    pub class: String,
    /// Name or path of the object, if shown.
    pub name: String,
    /// True when the policy only logs (`permissive=1`, `ALLOWED`).
    pub permissive: bool,
}

impl Denial {
    /// True when the denied thing is a device node of the driver.
    pub fn of_driver_node(&self) -> bool {
        let named = self.name.rsplit('/').next().unwrap_or("").starts_with("nvidia");
        let labelled = ["xserver_misc_device_t", "nvidia_device_t"]
            .iter()
            .any(|label| self.object.contains(label));
        let device = self.class == "chr_file" || self.class.is_empty();
        device && (named || labelled)
    }

    /// True when the denied thing is the name of a thread in /proc.
    pub fn of_thread_name(&self) -> bool {
        self.name.ends_with("/comm") || self.name == "comm"
    }
}

/// How SELinux is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SelinuxMode {
    /// It denies.
    Enforcing,
    /// It only logs.
    Permissive,
    /// It is off or not there.
    Disabled,
}

/// A device node of a CDI spec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CdiNode {
    /// Path on the host.
    pub path: String,
    /// Major number, if the spec has one.
    pub major: Option<u32>,
    /// Minor number, if the spec has one.
    pub minor: Option<u32>,
}

/// CDI specs.
#[derive(Debug, Clone, Default)]
pub struct Cdi {
    /// The files that were seen; `Absent` when none of the folders holds one.
    pub specs: Observed<Vec<String>>,
    /// Device nodes with the numbers that the specs record.
    pub nodes: Vec<Seen<CdiNode>>,
    /// Host files with a driver version in their names.
    pub libraries: Vec<Seen<(String, DriverVersion)>>,
    /// Devices that `nvidia-ctk cdi list` shows; `Seen` and empty when it finds none.
    pub listed: Observed<Vec<String>>,
}

/// The engine and what surrounds it.
#[derive(Debug, Clone, Default)]
pub struct Engine {
    /// Faults that it reported, in order.
    pub faults: Vec<Seen<EngineFault>>,
    /// Accesses that a policy denied, in order.
    pub denials: Vec<Seen<Denial>>,
    /// Mode of SELinux.
    pub selinux: Observed<SelinuxMode>,
    /// SELinux context or AppArmor profile of the process (/proc/self/attr/current).
    pub label: Observed<String>,
    /// CDI specs.
    pub cdi: Cdi,
    /// A snap, or a desktop product whose engine runs in a virtual machine: which.
    pub enclosed: Observed<String>,
    /// Whether the engine runs without root, as a report tells it.
    pub rootless: Observed<bool>,
    /// The same as a command shows it.
    pub rootless_seen: Observed<bool>,
    /// The value of the toolkit's `no-cgroups` with which a report says that it works.
    pub no_cgroups_cure: Option<Seen<bool>>,
    /// Cgroup driver of the engine: `systemd` or `cgroupfs`.
    pub cgroup_driver: Observed<String>,
    /// Whether the host has the unified hierarchy of cgroup v2, and not that of v1.
    pub cgroup_v2: Observed<bool>,
    /// Version of podman, major and minor.
    pub podman: Observed<(u32, u32)>,
    /// Whether /dev/char has links to the driver's nodes.
    pub char_links: Observed<bool>,
    /// A node of the driver that bubblewrap binds without device access while NVML fails inside:
    /// such binds it mounts with nodev.
    pub bound_nodev: Observed<String>,
    /// Where the container's device rules (cgroup v1) were seen to admit the GPUs.
    pub rules_with_gpus: Option<Origin>,
    /// Lines of a log or words of a report that show systemd re-reading its units.
    pub reloads: Vec<Seen<String>>,
    /// What a report says of a container that had its GPUs and lost them.
    pub lost_later: Vec<Seen<String>>,
    /// What a report says of a restart of the container that brings the GPUs back.
    pub restart_cures: Vec<Seen<String>>,
    /// What a report says of a container that fails from its very start.
    pub from_start: Vec<Seen<String>>,
    /// Files in /proc and /sys that a trace shows the driver's libraries not to find.
    pub hidden_files: Vec<Seen<String>>,
    /// Whether /proc is mounted where the program runs.
    pub proc_mounted: Observed<bool>,
    /// Where it was seen that /proc is the one of another PID namespace, in which the numbers that
    /// the process knows of itself lead nowhere or to others.
    pub proc_of_other: Option<Origin>,
    /// Versions of the NVIDIA extensions of Flatpak's runtime that are installed.
    pub flatpak: Vec<Seen<DriverVersion>>,
    /// What a report says of programs under Flatpak alone.
    pub flatpak_only: Vec<Seen<String>>,
    /// NVML's failures as programs print them, in order: the code.
    pub nvml_failures: Vec<Seen<i64>>,
    /// Where a command that an engine runs inside a container shows that NVML answers there.
    pub nvml_works_inside: Observed<()>,
    /// Whether it works with SELinux's confinement of the container off (`label=disable`).
    pub unconfined_cures: Observed<bool>,
    /// A container is called unprivileged.
    pub unprivileged: Observed<bool>,
    /// It works when the container, or the one around it, is privileged.
    pub privileged_works: Observed<bool>,
    /// What tells that the driver's tools answer, but after many seconds.
    pub slow_tools: Vec<Seen<String>>,
    /// Persistence mode as a report tells it.
    pub persistence: Observed<bool>,
    /// What tells that a driver is installed on the host itself.
    pub host_driver_told: Observed<String>,
    /// Pods of the GPU operator that install the driver: name and status.
    pub driver_pods: Vec<Seen<(String, String)>>,
    /// The operator says that the host's own driver is there and leaves it.
    pub host_driver_kept: Observed<()>,
    /// Versions of the driver that this gVisor knows, when they were listed.
    pub gvisor_supports: Observed<Vec<DriverVersion>>,
}

impl Engine {
    /// The first fault for which `wanted` gives something.
    pub fn fault<T>(&self, wanted: impl Fn(&EngineFault) -> Option<T>) -> Option<Seen<T>> {
        self.faults.iter().find_map(|seen| {
            let value = wanted(&seen.value)?;
            Some(Seen::new(value, seen.origin.clone()))
        })
    }
}
