//! Frameworks and toolkits.

use crate::observed::{Observed, Origin, Seen};
use crate::version::CudaVersion;

/// PyTorch as it is installed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Torch {
    /// Version, such as `2.10.0+cu128`.
    pub version: Option<String>,
    /// CUDA it was built with; `None` inside `Some` for a CPU-only build.
    pub cuda: Option<Option<CudaVersion>>,
    /// Architectures it has code for, such as `sm_90`.
    pub arch_list: Option<Vec<String>>,
}

/// Some other package with CUDA code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// Name, such as `vllm` or `nvidia-cuda-runtime-cu12`.
    pub name: String,
    /// Version.
    pub version: String,
    /// CUDA it is built for, if its version or tag tells.
    pub cuda: Option<CudaVersion>,
    /// The Python environment that holds it.
    pub python: Option<String>,
}

/// A message of a framework that tells something by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FrameworkMessage {
    /// The GPU's capability is not in the build: capability and supported list as printed.
    CapabilityNotCompatible {
        /// `sm_120`
        capability: String,
        /// `sm_50 sm_60 …`
        supported: Vec<String>,
    },
    /// "no kernel image is available".
    NoKernelImage,
    /// "driver is too old (found version N)".
    DriverTooOld {
        /// CUDA version that the driver supports.
        found: Option<CudaVersion>,
    },
    /// "No GPU/TPU found, falling back to CPU".
    NoAccelerator,
    /// "not compiled with CUDA enabled".
    NotCompiledWithCuda,
    /// An undefined symbol in an extension: library and symbol.
    UndefinedSymbol {
        /// The extension.
        library: String,
        /// The mangled name.
        symbol: String,
    },
    /// The compiler's CUDA differs from the one the framework was built with.
    ToolkitMismatch {
        /// Found toolkit.
        toolkit: CudaVersion,
        /// Framework's CUDA.
        framework: CudaVersion,
    },
    /// A library of another CUDA major is missing (`libcudart.so.11.0: cannot open…`).
    MissingCudaLibrary {
        /// The library.
        library: String,
    },
    /// PTX newer than the driver.
    PtxTooNew,
    /// A person tells that a program does not find the GPU.
    FindsNoGpu,
    /// "Cannot re-initialize CUDA in forked subprocess".
    ForkedSubprocess,
}

/// Frameworks and toolkits.
#[derive(Debug, Clone, Default)]
pub struct Framework {
    /// PyTorch.
    pub torch: Observed<Torch>,
    /// `torch.cuda.is_available()`.
    pub torch_available: Observed<bool>,
    /// nvcc's release, the one first on PATH.
    pub nvcc: Observed<CudaVersion>,
    /// Toolkits on disk: path and version.
    pub toolkits: Vec<Seen<(String, CudaVersion)>>,
    /// Other packages.
    pub packages: Vec<Seen<Package>>,
    /// Where a framework lists a GPU.
    pub gpu_listed: Observed<()>,
    /// Messages.
    pub messages: Vec<(FrameworkMessage, Origin)>,
}

impl Framework {
    /// Where a message was first printed or told.
    pub fn said(&self, message: &FrameworkMessage) -> Option<&Origin> {
        self.messages.iter().find(|(known, _)| known == message).map(|(_, origin)| origin)
    }
}
