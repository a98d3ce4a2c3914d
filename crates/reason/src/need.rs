//! Observations that have not been made and would decide something.

/// An observation. Each cause names those it lacks; the next step is the one that separates most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Need {
    /// The running value of uvm_disable_hmm.
    UvmDisableHmm,
    /// HMM settings of the kernel's configuration.
    KernelHmmConfig,
    /// The kernel log.
    KernelLog,
    /// Kernel stack of the stuck task.
    StuckStack,
    /// cuInit in a fresh process.
    FreshProcess,
    /// What cuInit answers.
    CudaInit,
    /// Whether NVML answers.
    Nvml,
    /// GSP firmware version as the GPU reports it.
    GspRunning,
    /// Sections of the GSP firmware file.
    GspSections,
    /// Whether the firmware file for the module's version is on disk.
    GspFile,
    /// Version and path of the libcuda that is mapped.
    LibcudaMapped,
    /// Version of the loaded module.
    ModuleVersion,
    /// Flavour of the loaded module.
    ModuleFlavour,
    /// List of loaded modules.
    ModulesLoaded,
    /// Module files on disk for the running kernel.
    ModulesOnDisk,
    /// Numbers in /proc/devices.
    CharMajors,
    /// Listing of the device nodes.
    NodeListing,
    /// Errno of opening each node from where the program runs.
    NodeOpen,
    /// NVIDIA devices on the PCI bus.
    PciDevices,
    /// Container and cgroup membership.
    Container,
    /// The container engine's command line.
    EngineRequest,
    /// Seccomp mode and the micro-probes.
    Seccomp,
    /// Environment of the failing process.
    Environment,
    /// State of the fabric manager.
    FabricManager,
    /// Fabric state of the GPUs.
    FabricState,
    /// The framework's CUDA version.
    FrameworkCuda,
    /// The framework's architecture list.
    FrameworkArch,
    /// The GPU's model or compute capability.
    GpuModel,
    /// The CUDA version that the driver supports.
    DriverCuda,
    /// The toolkit's version.
    ToolkitVersion,
    /// Creating a context, an allocation and a kernel.
    CudaContext,
}

impl Need {
    /// What to observe and with which command, in one line.
    pub fn observe(self) -> &'static str {
        match self {
            Need::UvmDisableHmm => {
                "whether HMM is off: cat /sys/module/nvidia_uvm/parameters/uvm_disable_hmm"
            }
            Need::KernelHmmConfig => {
                "the kernel's HMM support: grep -E 'HMM_MIRROR|DEVICE_PRIVATE' /boot/config-$(uname -r)"
            }
            Need::KernelLog => "the kernel log, as root: dmesg | grep -iE 'nvrm|nvidia|xid'",
            Need::StuckStack => {
                "where the stuck task sleeps, as root: cat /proc/PID/task/*/stack"
            }
            Need::FreshProcess => {
                "cuInit in a fresh process: python3 -c 'import ctypes; print(ctypes.CDLL(\"libcuda.so.1\").cuInit(0))'"
            }
            Need::CudaInit => "what cuInit answers: run gpudx where the program runs",
            Need::Nvml => "whether NVML answers: nvidia-smi -L",
            Need::GspRunning => {
                "whether GSP firmware runs: nvidia-smi -q | grep GSP"
            }
            Need::GspSections => {
                "which chips the firmware file carries: gpudx firmware /lib/firmware/nvidia/*/gsp_*.bin"
            }
            Need::GspFile => "the firmware folder: ls -l /lib/firmware/nvidia/",
            Need::LibcudaMapped => {
                "which libcuda is loaded, and its version: ldconfig -p | grep libcuda; readlink -f of it"
            }
            Need::ModuleVersion => "the loaded module's version: cat /proc/driver/nvidia/version",
            Need::ModuleFlavour => {
                "open or proprietary module: cat /proc/driver/nvidia/version, or modinfo -F license nvidia"
            }
            Need::ModulesLoaded => "the loaded modules: lsmod | grep -iE 'nvidia|nouveau|vfio'",
            Need::ModulesOnDisk => "the module on disk: modinfo nvidia | head -4",
            Need::CharMajors => "the majors the kernel gave: grep nvidia /proc/devices",
            Need::NodeListing => "the device nodes: ls -l /dev/nvidia*",
            Need::NodeOpen => "whether each node opens from here: run gpudx inside the container",
            Need::PciDevices => "the PCI bus: lspci -nnk -d 10de:",
            Need::Container => "the kind of container: cat /proc/1/cgroup; systemd-detect-virt",
            Need::EngineRequest => "how the container was started: its command line or spec",
            Need::Seccomp => "the seccomp mode: grep Seccomp /proc/self/status",
            Need::Environment => "the failing process's environment: env | grep -E 'CUDA|NVIDIA|LD_'",
            Need::FabricManager => "the fabric manager: systemctl status nvidia-fabricmanager",
            Need::FabricState => "the GPUs' fabric state: nvidia-smi -q | grep -A3 Fabric",
            Need::FrameworkCuda => {
                "the framework's CUDA: python3 -c 'import torch; print(torch.version.cuda)'"
            }
            Need::FrameworkArch => {
                "the framework's architectures: python3 -c 'import torch; print(torch.cuda.get_arch_list())'"
            }
            Need::GpuModel => "the GPU's model: nvidia-smi -L",
            Need::DriverCuda => "the CUDA version that the driver supports: nvidia-smi | head -4",
            Need::ToolkitVersion => "the toolkit: nvcc --version",
            Need::CudaContext => {
                "a context, an allocation and a kernel: gpudx check --context"
            }
        }
    }
}
