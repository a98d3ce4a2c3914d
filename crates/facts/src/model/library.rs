//! The user-space driver libraries.

use crate::observed::{Observed, Origin, Seen};
use crate::version::DriverVersion;

/// What kind of file stands under a driver library's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LibraryKind {
    /// The driver's own library.
    Driver,
    /// A toolkit's link-time stub, which answers 34 to everything.
    Stub,
    /// A forward-compatibility library (a `compat` folder).
    Compat,
    /// WSL's own library under /usr/lib/wsl.
    Wsl,
    /// Not an ELF library that could be understood (truncated, foreign architecture).
    Broken,
}

/// One library file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LibraryFile {
    /// The name it is looked up by: `libcuda.so.1` or `libnvidia-ml.so.1`.
    pub soname: String,
    /// Path as found.
    pub path: String,
    /// Path after following links.
    pub real_path: String,
    /// Version, from the name's suffix or the file itself.
    pub version: Option<DriverVersion>,
    /// Kind.
    pub kind: LibraryKind,
    /// Where this was read.
    pub origin: Origin,
}

/// The libraries.
#[derive(Debug, Clone, Default)]
pub struct Library {
    /// The libcuda that this process would map or that the probe did map. `Absent` when the
    /// loader finds none.
    pub cuda: Observed<LibraryFile>,
    /// The same for libnvidia-ml.
    pub nvml: Observed<LibraryFile>,
    /// Every other file of those names that was found.
    pub others: Vec<LibraryFile>,
    /// The loader's error text for libcuda, if it failed.
    pub cuda_load_error: Observed<String>,
    /// The loader's error text for libnvidia-ml, if it failed.
    pub nvml_load_error: Observed<String>,
    /// `nvidia-smi` itself: `Absent` when the shell said "command not found".
    pub smi: Observed<String>,
    /// The user-space version that a tool reported (the `NVIDIA-SMI` field of the table, NVML's
    /// library version), which is libnvidia-ml's.
    pub reported: Observed<DriverVersion>,
    /// Libraries preloaded or mapped that stand between program and driver.
    pub interposers: Vec<(String, Origin)>,
    /// What a known interposer itself printed: errors and warnings of its own.
    pub interposer_complaints: Vec<Seen<String>>,
    /// A listing of /usr/lib/wsl/lib without libcuda, which the driver of Windows puts there.
    pub wsl_lacks_cuda: Option<Origin>,
    /// Packages of a Linux driver that are installed, or whose installing is told: their names.
    pub driver_packages: Vec<Seen<String>>,
    /// Installed packages with the driver's libraries or tools, by name, each with its version.
    pub package_versions: Vec<Seen<(String, DriverVersion)>>,
}
