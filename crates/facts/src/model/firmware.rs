//! GSP firmware, running and on disk.

use crate::observed::{Observed, Origin, Seen};
use crate::version::DriverVersion;

/// A GSP firmware file, judged by its ELF sections and never by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GspFile {
    /// Path.
    pub path: String,
    /// Version in `.fwversion`; `None` when only the file's presence or some strings are known.
    pub version: Option<DriverVersion>,
    /// Chip families from the names of `.fwsignature_*` sections, such as `gb20x`. `Unknown` when
    /// only the file's name was seen; `Seen` may be a part, see `families_complete`.
    pub families: Observed<Vec<String>>,
    /// True when the whole section table was read, so that a family not listed is not there.
    pub families_complete: bool,
    /// What is wrong with the container (truncated, not RISC-V, no version).
    pub faults: Vec<String>,
    /// Where this was read.
    pub origin: Origin,
}

/// GSP firmware.
#[derive(Debug, Clone, Default)]
pub struct Firmware {
    /// Versions of GSP firmware that GPUs report to be running (`N/A` is not one of them).
    pub running: Vec<Seen<DriverVersion>>,
    /// GPUs that say `N/A`: GSP is off, or the GPU was never initialised.
    pub not_running: Vec<Origin>,
    /// Files on disk under the firmware path. `Absent` when the folder for the module's version
    /// was looked for and holds none.
    pub files: Observed<Vec<GspFile>>,
    /// Paths of single files that were looked for and are not there.
    pub missing: Vec<Seen<String>>,
    /// What a report says of a GSP that stopped answering, where no log line shows it.
    pub silence_told: Vec<Seen<String>>,
}
