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
}
