//! Sharing of a GPU: processes on it, MIG devices, the multi-process service (MPS).

use crate::observed::{Observed, Origin, Seen};

/// A process that nvidia-smi shows on a GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuProcess {
    /// The GPU's index, if the source tells.
    pub gpu: Option<u32>,
    /// Process id as shown.
    pub pid: u32,
    /// `C`, `G`, `C+G`, `M+C`.
    pub kind: String,
    /// Name, possibly cut short.
    pub name: String,
    /// GPU memory that it holds, in MiB, if the source tells.
    pub memory_mib: Option<u64>,
}

impl GpuProcess {
    /// Whether it computes, as against drawing.
    pub fn computes(&self) -> bool {
        self.kind.contains('C')
    }

    /// Whether it is the server of MPS.
    pub fn is_mps_server(&self) -> bool {
        self.name.contains("nvidia-cuda-mps-server")
    }
}

/// How a GPU's memory is divided, as a program that got none of it tells: in MiB.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MemoryAccount {
    /// All of it.
    pub total_mib: f64,
    /// What nobody has.
    pub free_mib: f64,
    /// What the program itself has.
    pub own_mib: f64,
}

impl MemoryAccount {
    /// What is neither free nor the program's own.
    pub fn others_mib(self) -> f64 {
        (self.total_mib - self.free_mib - self.own_mib).max(0.0)
    }
}

/// A MIG device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MigDevice {
    /// Index of its GPU.
    pub gpu: Option<u32>,
    /// Profile, such as `1g.10gb`, if the source tells.
    pub profile: Option<String>,
    /// UUID, if the source tells.
    pub uuid: Option<String>,
}

/// What someone says of an experiment with MPS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MpsStatement {
    /// It works without MPS, or fails only while MPS is reachable.
    OnlyWithMps,
    /// It works with the host driver's own libcuda.
    WorksWithHostLibrary,
    /// It works when daemon and client are in one container, or share the pipe.
    WorksWhenShared,
}

/// Sharing.
#[derive(Debug, Clone, Default)]
pub struct Share {
    /// Processes on GPUs.
    pub processes: Vec<Seen<GpuProcess>>,
    /// Where nvidia-smi says that there is no process.
    pub no_processes: Option<Origin>,
    /// How a program that got no memory accounts for it.
    pub memory_account: Option<Seen<MemoryAccount>>,
    /// MIG devices. `Absent` when nvidia-smi says that there is none.
    pub mig_devices: Observed<Vec<MigDevice>>,
    /// MIG mode as a report tells it, where no listing shows it.
    pub mig_mode_told: Observed<bool>,
    /// A framework reached for a device number that CUDA does not list: its message.
    pub index_beyond_count: Vec<Seen<String>>,
    /// The MPS daemon runs (its log, its process, a statement), or does not.
    pub mps_daemon: Observed<bool>,
    /// The daemon's pipe folder as this process sees it; `Absent` when it was looked for.
    pub mps_pipe: Observed<String>,
    /// CUDA version of the daemon's binary, as its log says (`13000`).
    pub mps_cuda: Observed<u32>,
    /// Lines of the daemon's or server's log that tell of a failure.
    pub mps_failures: Vec<Seen<String>>,
    /// What is said of experiments with it.
    pub mps_statements: Vec<Seen<MpsStatement>>,
    /// Compute mode as a report tells it, where no listing shows it: `Exclusive_Process`,
    /// `Exclusive_Thread`, `Prohibited`.
    pub compute_mode_told: Observed<String>,
}
