//! NVML's answers, from the probe, from nvidia-smi's output or from messages.

use super::health::GpuHealth;
use super::pci::PciAddress;
use crate::observed::{Observed, Origin, Seen};
use crate::version::{CudaVersion, DriverVersion};

/// A GPU as NVML lists it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NvmlGpu {
    /// Index.
    pub index: Option<u32>,
    /// Product name.
    pub name: Option<String>,
    /// UUID.
    pub uuid: Option<String>,
    /// PCI address.
    pub address: Option<PciAddress>,
    /// PCI device id.
    pub device_id: Option<u16>,
    /// Minor, the N of /dev/nvidiaN.
    pub minor: Option<u32>,
    /// Architecture name, such as `Blackwell`.
    pub architecture: Option<String>,
    /// Compute mode: `Default`, `Exclusive_Process`, `Prohibited`.
    pub compute_mode: Option<String>,
    /// MIG mode is enabled.
    pub mig: Option<bool>,
    /// Addressing mode: `HMM`, `ATS`, `None`.
    pub addressing_mode: Option<String>,
    /// Recovery action: `None`, `Reset`, `Reboot`, …
    pub recovery_action: Option<String>,
    /// Fabric state: `Completed`, `In Progress`, `Not Started`, `Not Supported`, `N/A`.
    pub fabric_state: Option<String>,
    /// Fabric status: `Success` or an error.
    pub fabric_status: Option<String>,
    /// GSP firmware version as text; `N/A` when there is none.
    pub gsp_version: Option<String>,
    /// Persistence mode is on.
    pub persistence: Option<bool>,
    /// Memory in use and in all, in MiB.
    pub memory_mib: Option<(u64, u64)>,
    /// Virtualisation mode: `None`, `Pass-Through`, `VGPU`, …
    pub virtualization: Option<String>,
    /// vGPU licence status line.
    pub license: Option<String>,
    /// Memory errors, performance state and link.
    pub health: GpuHealth,
}

/// How one query through NVML (or a run of nvidia-smi) went.
#[derive(Debug, Clone, PartialEq)]
pub enum NvmlResult {
    /// It returned this code of nvml.h; 0 is success.
    Code(i64),
    /// It did not return in time.
    Hung,
    /// The caller crashed.
    Crashed,
}

/// One query and its result.
#[derive(Debug, Clone, PartialEq)]
pub struct NvmlQuery {
    /// The call, such as `nvmlInit_v2`, or the command, such as `nvidia-smi -q`.
    pub query: String,
    /// Device index, for calls on one.
    pub device: Option<u32>,
    /// Result.
    pub result: NvmlResult,
    /// Duration in milliseconds, if measured.
    pub ms: Option<f64>,
    /// Where this was read.
    pub origin: Origin,
}

/// NVML.
#[derive(Debug, Clone, Default)]
pub struct Nvml {
    /// What nvmlInit answered (or what nvidia-smi's message says it answered).
    pub init: Observed<NvmlResult>,
    /// Every query with its result, in order.
    pub queries: Vec<NvmlQuery>,
    /// Recovery actions that a report tells of without nvidia-smi's output: `Reset`, `Reboot`.
    pub recovery_told: Vec<Seen<String>>,
    /// Uncorrectable memory errors as programs and reports tell of them.
    pub memory_errors_told: Vec<Seen<String>>,
    /// GPUs listed.
    pub gpus: Vec<Seen<NvmlGpu>>,
    /// How many GPUs NVML counts.
    pub count: Observed<u32>,
    /// The kernel driver's version as NVML tells it.
    pub driver_version: Observed<DriverVersion>,
    /// The driver's version as a text tells it, which may be that of a package: it need not be loaded.
    pub driver_told: Observed<DriverVersion>,
    /// The CUDA version that the driver supports, as nvidia-smi shows it.
    pub cuda_version: Observed<CudaVersion>,
    /// Links between GPUs as `nvidia-smi topo -m` draws them: row, column, word (`NODE`, `PHB`, `NV18`).
    pub topology: Vec<Seen<(String, String, String)>>,
    /// Whether peer access is possible as `nvidia-smi topo -p2p` draws it: row, column, word (`OK`,
    /// `CNS`, `NS`).
    pub peer_status: Vec<Seen<(String, String, String)>>,
}

impl Nvml {
    /// True when NVML (or nvidia-smi) answered at least once with success.
    pub fn answers(&self) -> Option<&Origin> {
        if let Observed::Seen(Seen { value: NvmlResult::Code(0), origin }) = &self.init {
            return Some(origin);
        }
        None
    }

    /// The queries that did not return.
    pub fn hung(&self) -> impl Iterator<Item = &NvmlQuery> {
        self.queries.iter().filter(|query| query.result == NvmlResult::Hung)
    }
}
