//! Symptoms: what is wrong as the user meets it. A diagnosis must explain every one.

use facts::Origin;

mod derive;
mod driver_side;
mod hardware;
mod peers;
mod process;
mod slow;
mod stuck;
pub use derive::derive;
pub(crate) use derive::{named_cuda_code, named_nvml_code};
pub(crate) use peers::links_down;

/// The kinds of symptom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SymptomId {
    /// cuInit answers an error.
    CudaInitFails,
    /// cuInit does not return.
    CudaInitHangs,
    /// The process dies inside the driver library.
    CudaInitCrashes,
    /// cuInit takes much longer than it should.
    CudaInitSlow,
    /// cuInit works; a context, allocation, copy or kernel does not.
    CudaContextFails,
    /// NVML answers an error.
    NvmlFails,
    /// NVML, or a query through it, does not return.
    NvmlHangs,
    /// There is no driver to talk to.
    DriverAbsent,
    /// Fewer GPUs than there are on the bus.
    GpuMissing,
    /// The kernel reports a fault of a GPU.
    GpuFaulted,
    /// The container engine refuses to start, or gives no GPU.
    ContainerRefused,
    /// Peer access is not offered.
    P2pAbsent,
    /// Peer copies are offered and do not arrive.
    P2pBroken,
    /// The framework says that there is no GPU.
    FrameworkNoGpu,
    /// The framework has no code for the GPU, or code that cannot run.
    FrameworkNoCode,
}

impl SymptomId {
    /// All of them.
    pub const ALL: [SymptomId; 15] = [
        SymptomId::CudaInitFails,
        SymptomId::CudaInitHangs,
        SymptomId::CudaInitCrashes,
        SymptomId::CudaInitSlow,
        SymptomId::CudaContextFails,
        SymptomId::NvmlFails,
        SymptomId::NvmlHangs,
        SymptomId::DriverAbsent,
        SymptomId::GpuMissing,
        SymptomId::GpuFaulted,
        SymptomId::ContainerRefused,
        SymptomId::P2pAbsent,
        SymptomId::P2pBroken,
        SymptomId::FrameworkNoGpu,
        SymptomId::FrameworkNoCode,
    ];

    /// The id in JSON and on the terminal.
    pub fn name(self) -> &'static str {
        match self {
            SymptomId::CudaInitFails => "cuda.init-fails",
            SymptomId::CudaInitHangs => "cuda.init-hangs",
            SymptomId::CudaInitCrashes => "cuda.init-crashes",
            SymptomId::CudaInitSlow => "cuda.init-slow",
            SymptomId::CudaContextFails => "cuda.context-fails",
            SymptomId::NvmlFails => "nvml.fails",
            SymptomId::NvmlHangs => "nvml.hangs",
            SymptomId::DriverAbsent => "driver.absent",
            SymptomId::GpuMissing => "gpu.missing",
            SymptomId::GpuFaulted => "gpu.faulted",
            SymptomId::ContainerRefused => "container.refused",
            SymptomId::P2pAbsent => "p2p.absent",
            SymptomId::P2pBroken => "p2p.broken",
            SymptomId::FrameworkNoGpu => "framework.no-gpu",
            SymptomId::FrameworkNoCode => "framework.no-code",
        }
    }

    /// What it means, as a sentence without its full stop.
    pub fn meaning(self) -> &'static str {
        match self {
            SymptomId::CudaInitFails => "cuInit answers an error",
            SymptomId::CudaInitHangs => "cuInit does not return",
            SymptomId::CudaInitCrashes => "the process dies inside the driver library",
            SymptomId::CudaInitSlow => "cuInit takes much longer than it should",
            SymptomId::CudaContextFails => {
                "cuInit works; a context, an allocation, a copy or a kernel does not"
            }
            SymptomId::NvmlFails => "NVML, and so nvidia-smi, answers an error",
            SymptomId::NvmlHangs => "NVML, or a query through it, does not return",
            SymptomId::DriverAbsent => "there is no driver to talk to",
            SymptomId::GpuMissing => "there are fewer GPUs than on the bus",
            SymptomId::GpuFaulted => "the kernel reports a fault of a GPU",
            SymptomId::ContainerRefused => "the container engine refuses to start, or gives no GPU",
            SymptomId::P2pAbsent => "access from GPU to GPU is not offered",
            SymptomId::P2pBroken => "copies from GPU to GPU are offered and do not arrive",
            SymptomId::FrameworkNoGpu => "the framework says that there is no GPU",
            SymptomId::FrameworkNoCode => {
                "the framework has no code for the GPU, or code that cannot run"
            }
        }
    }

    /// The symptom of that id.
    pub fn from_name(name: &str) -> Option<SymptomId> {
        SymptomId::ALL.into_iter().find(|symptom| symptom.name() == name)
    }
}

/// A symptom that this machine shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symptom {
    /// Which.
    pub id: SymptomId,
    /// The code that came with it, such as 3 for cuInit.
    pub code: Option<i64>,
    /// One line: `cuInit answers 3 (CUDA_ERROR_NOT_INITIALIZED)`.
    pub summary: String,
    /// Where it was seen.
    pub origin: Origin,
    /// Ids of the causes that explain it, best first. Empty: unexplained, and shown as such.
    pub explained_by: Vec<&'static str>,
}
