//! The kernel modules: loaded, on disk, their parameters and what they registered.

use std::collections::BTreeMap;

use super::module_message::{DkmsRow, ModuleMessage};
use super::pci::PciAddress;
use crate::observed::{Observed, Origin, Seen};
use crate::version::DriverVersion;

/// Which of the two builds of the kernel module it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Flavour {
    /// NVIDIA's open kernel modules (`Open Kernel Module`, licence `Dual MIT/GPL`).
    Open,
    /// The proprietary modules (licence `NVIDIA`).
    Proprietary,
}

impl Flavour {
    /// The name as the terminal shows it.
    pub fn name(self) -> &'static str {
        match self {
            Flavour::Open => "open",
            Flavour::Proprietary => "proprietary",
        }
    }
}

/// Version and flavour of the loaded `nvidia` module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NvrmVersion {
    /// Driver version.
    pub version: DriverVersion,
    /// Flavour, if the source tells.
    pub flavour: Option<Flavour>,
}

/// A line of /proc/modules or lsmod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedModule {
    /// Name, with underscores.
    pub name: String,
    /// Users, if the source tells.
    pub use_count: Option<u32>,
    /// `Live`, `Loading` or `Unloading`, if the source tells.
    pub state: Option<String>,
}

/// A module file on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleFile {
    /// Its name, such as `nvidia`.
    pub name: String,
    /// Path.
    pub path: String,
    /// Release of the kernel whose folder holds it.
    pub kernel: Option<String>,
    /// Driver version from `.modinfo`.
    pub version: Option<DriverVersion>,
    /// Flavour by licence.
    pub flavour: Option<Flavour>,
    /// `vermagic`'s kernel release.
    pub vermagic: Option<String>,
    /// Where this was read.
    pub origin: Origin,
}

/// A line of /proc/devices' character section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CharMajor {
    /// Major number.
    pub major: u32,
    /// Name, such as `nvidia-uvm`.
    pub name: String,
}

/// /proc/driver/nvidia/gpus/BDF/information.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GpuInformation {
    /// PCI address.
    pub address: Option<PciAddress>,
    /// Model name.
    pub model: Option<String>,
    /// UUID; `GPU-????????-…` for a GPU that was never initialised.
    pub uuid: Option<String>,
    /// Device minor, the N of /dev/nvidiaN.
    pub minor: Option<u32>,
    /// GSP firmware version, `N/A` when GSP is off or the GPU was never initialised.
    pub gpu_firmware: Option<String>,
    /// Whether NVreg_ExcludedGpus names it.
    pub excluded: Option<bool>,
    /// Interrupt; 0 when the GPU was never opened.
    pub irq: Option<u32>,
    /// VBIOS version.
    pub video_bios: Option<String>,
}

/// The kernel modules.
#[derive(Debug, Clone, Default)]
pub struct Module {
    /// The loaded nvidia module's own version line. `Absent` when /proc/driver/nvidia/version is
    /// not there.
    pub nvrm: Observed<NvrmVersion>,
    /// Where a report says that the GPU wants the open modules and that the others refuse it.
    pub open_wanted_told: Option<Origin>,
    /// The flavour as a report tells it, where nothing shows it.
    pub flavour_told: Observed<Flavour>,
    /// The version that the module itself answers to NV_ESC_CHECK_VERSION_STR in query mode.
    pub version_query: Observed<DriverVersion>,
    /// Loaded modules whose names matter (nvidia*, nouveau, vfio*, …), by name. A module that is
    /// `Absent` here was looked for in a whole list.
    pub loaded: BTreeMap<String, Observed<LoadedModule>>,
    /// NVreg parameters, by name without `NVreg_`.
    pub params: BTreeMap<String, Seen<String>>,
    /// uvm_disable_hmm as the running module has it.
    pub uvm_disable_hmm: Observed<bool>,
    /// Other parameters of nvidia_uvm, by name.
    pub uvm_params: BTreeMap<String, Seen<String>>,
    /// `options` lines of modprobe.d, `(module, option, origin)`.
    pub options: Vec<(String, String, Origin)>,
    /// Character majors, by name. One that is `Absent` was looked for in a whole list or with a
    /// filter that would have shown it.
    pub majors: BTreeMap<String, Observed<CharMajor>>,
    /// Module files on disk, for the running kernel and others. `Absent` when the folders were
    /// listed and hold none.
    pub on_disk: Observed<Vec<ModuleFile>>,
    /// True when a listing of them was shown in part, so that a file that is not in it may be there.
    pub on_disk_in_part: bool,
    /// What /proc/driver/nvidia/gpus tells of each GPU.
    pub gpus: Vec<Seen<GpuInformation>>,
    /// The folders of /proc/driver/nvidia/gpus: the GPUs that the module has attached to. `Seen`
    /// and empty when it is loaded and drives none.
    pub gpu_folders: Observed<Vec<PciAddress>>,
    /// /proc/driver/nvidia/gpus/BDF/power: values by name, `Heading: Name` for those below one.
    pub gpu_power: BTreeMap<PciAddress, BTreeMap<String, Seen<String>>>,
    /// Single-value files of /sys/module, by `NAME/FILE`, such as `nvidia/taint` or
    /// `nvidia_uvm/version`.
    pub sysfs: BTreeMap<String, Observed<String>>,
    /// Modules that modprobe.d or the kernel command line keeps from loading: name and origin.
    pub kept_out: Vec<(String, Origin)>,
    /// The physical address ranges named `nvidia-uvm-hmm` in /proc/iomem, first and last byte
    /// (zeros for readers without CAP_SYS_ADMIN): HMM is on for a registered GPU. `Absent` when
    /// the whole file holds none.
    pub hmm_ranges: Observed<Vec<(u64, u64)>>,
    /// GPUs that the driver itself lists (NV_ESC_CARD_INFO).
    pub card_info: Observed<Vec<PciAddress>>,
    /// What building and loading the module said, in order, each message once.
    pub messages: Vec<Seen<ModuleMessage>>,
    /// What a report says of a kernel module that is not NVIDIA's own build.
    pub patched_told: Option<Seen<String>>,
    /// The rows of `dkms status` that are NVIDIA's driver.
    pub dkms: Vec<Seen<DkmsRow>>,
}

/// The modules whose presence or absence matters to a cause.
pub const MODULES_OF_INTEREST: [&str; 12] = [
    "nvidia",
    "nvidia_uvm",
    "nvidia_modeset",
    "nvidia_drm",
    "nvidia_peermem",
    "nvidia_fs",
    "nouveau",
    "nova_core",
    "vfio_pci",
    "mlx5_ib",
    "ib_umad",
    "bbswitch",
];

/// The names of character majors that matter to a cause; see facts on /proc/devices: up to 535
/// major 195 is `nvidia-frontend`, from 545 on `nvidia`, `nvidiactl` and `nvidia-modeset`.
pub const MAJORS_OF_INTEREST: [&str; 8] = [
    "nvidia",
    "nvidia-frontend",
    "nvidiactl",
    "nvidia-modeset",
    "nvidia-uvm",
    "nvidia-caps",
    "nvidia-nvswitch",
    "nvidia-caps-imex-channels",
];

impl Module {
    /// Enters a message, each once and not more than a reader could use.
    pub fn hear(&mut self, message: ModuleMessage, origin: Origin) {
        const LIMIT: usize = 256;
        let known = self.messages.iter().any(|seen| seen.value == message);
        if !known && self.messages.len() < LIMIT {
            self.messages.push(Seen::new(message, origin));
        }
    }

    /// The loaded module of that name (with underscores).
    pub fn loaded(&self, name: &str) -> Observed<&LoadedModule> {
        self.loaded.get(name).map_or(Observed::default(), Observed::as_ref)
    }

    /// The character major of that name.
    pub fn major(&self, name: &str) -> Observed<u32> {
        self.majors.get(name).cloned().unwrap_or_default().map(|major| major.major)
    }

    /// The module's version: what it answers itself, or its version line.
    pub fn version(&self) -> Option<Seen<DriverVersion>> {
        if let Some(seen) = self.version_query.as_seen() {
            return Some(seen.clone());
        }
        let nvrm = self.nvrm.as_seen()?;
        Some(Seen::new(nvrm.value.version.clone(), nvrm.origin.clone()))
    }

    /// The flavour of the loaded module.
    pub fn flavour(&self) -> Option<Seen<Flavour>> {
        let own = self.nvrm.as_seen().and_then(|nvrm| {
            nvrm.value.flavour.map(|flavour| Seen::new(flavour, nvrm.origin.clone()))
        });
        own.or_else(|| self.flavour_told.as_seen().cloned())
    }
}
