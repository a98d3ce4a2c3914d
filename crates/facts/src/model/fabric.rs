//! NVSwitch, NVLink and the fabric manager.

use crate::observed::{Observed, Origin, Seen};
use crate::version::DriverVersion;

/// State of a systemd service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServiceState {
    /// Active and running.
    Running,
    /// Installed and not running; what systemd says.
    Stopped(String),
    /// It is not installed.
    NotInstalled,
}

/// A line of the fabric manager, of its start script or of the subnet manager beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ManagerLine {
    /// It refuses the driver: its own version and the driver's.
    VersionMismatch(DriverVersion, DriverVersion),
    /// It finds no switch that it could manage in the old way (`NV_WARN_NOTHING_TO_DO`).
    NothingToDo,
    /// It does not know an option, or prints its usage.
    Usage(String),
    /// A kernel module that it needs is not loaded, in its own words.
    ModuleMissing(String),
    /// The same as a person tells it.
    ModuleTold(String),
    /// The start script takes the machine for one with switches of the fifth NVLink (`true`) or
    /// before (`false`).
    DetectedFifth(bool),
    /// Its configuration or topology file is wrong.
    BadConfiguration(String),
    /// A link, a switch or a GPU failed.
    LinkFault(String),
    /// All switches are configured.
    Configured,
}

/// One NVLink of one GPU, as `nvidia-smi nvlink` lists it.
#[derive(Debug, Clone, PartialEq)]
pub struct NvLink {
    /// Index of the GPU.
    pub gpu: Option<u32>,
    /// Number of the link.
    pub link: u32,
    /// Whether it is up.
    pub active: bool,
}

/// The fabric.
#[derive(Debug, Clone, Default)]
pub struct Fabric {
    /// nvidia-fabricmanager.
    pub manager: Observed<ServiceState>,
    /// Its version.
    pub manager_version: Observed<DriverVersion>,
    /// Whether the machine has NVSwitches, from the bus, nodes or the driver.
    pub nvswitch: Observed<bool>,
    /// Fabric states of GPUs that a report tells without nvidia-smi's own output.
    pub states: Vec<Seen<String>>,
    /// Lines of its log or of other daemons that say what is wrong.
    pub messages: Vec<(String, Origin)>,
    /// Lines of the fabric manager and its start script, understood, in order.
    pub manager_lines: Vec<Seen<ManagerLine>>,
    /// Devices of InfiniBand in /sys/class/infiniband, through which the switches of the fifth
    /// NVLink are managed. `Absent` when the folder is not there or empty.
    pub infiniband: Observed<Vec<String>>,
    /// NVLinks, one by one.
    pub links: Vec<Seen<NvLink>>,
    /// The GPU under whose heading the next links stand; of use only while a text is read.
    pub(crate) link_gpu: Option<u32>,
    /// Links are said to be lacking, or queries of their state to take very long.
    pub link_statements: Vec<Seen<String>>,
    /// Calls for NVLink multicast that failed, with their code where it is known.
    pub multicast_failures: Vec<Seen<Option<i64>>>,
    /// Whether NCCL finds multicast available.
    pub multicast_available: Observed<bool>,
    /// The switches are said to belong to the host or to another guest.
    pub switches_elsewhere: Vec<Seen<String>>,
}
