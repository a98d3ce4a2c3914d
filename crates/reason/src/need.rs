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
    /// Remapped rows and memory errors as NVML counts them.
    RemappedRows,
    /// The recovery action that the driver asks for.
    RecoveryAction,
    /// The PCIe link of a GPU at work.
    LinkAtWork,
    /// Power state of the GPU.
    PowerState,
    /// State of Confidential Computing.
    ConfCompute,
    /// Licence state of a vGPU.
    VgpuLicense,
    /// Versions on both sides of a vGPU.
    VgpuVersions,
    /// Processes that hold device nodes.
    NodeHolders,
    /// Creating a context, an allocation and a kernel.
    CudaContext,
    /// Whether the driver offers peer access, pair by pair.
    PeerStatus,
    /// A peer copy whose result is compared.
    PeerCopy,
    /// How GPUs are linked.
    Topology,
    /// Access control of the ports above the GPUs.
    AccessControl,
    /// What the IOMMU does with the GPUs' addresses.
    IommuMode,
    /// Whether this is a guest.
    Hypervisor,
    /// State of each NVLink.
    NvLinks,
    /// The fabric manager's log.
    FabricLog,
    /// Devices and modules of InfiniBand, through which newer switches are managed.
    Infiniband,
    /// Compute mode of each GPU, and the processes on it.
    ComputeMode,
    /// MIG mode and MIG devices.
    MigDevices,
    /// Whether an MPS daemon runs, and its pipe folder.
    MpsDaemon,
    /// What loading the module says.
    ModuleLoad,
    /// The log of the module's build.
    BuildLog,
    /// Whether Secure Boot is on.
    SecureBoot,
    /// The kernel's shared virtual addressing.
    KernelSva,
    /// Time since boot.
    Uptime,
    /// cuInit with the GPUs of one family alone.
    OneFamily,
    /// Limits of the failing process.
    Limits,
    /// Size of /dev/shm.
    SharedMemorySize,
    /// The program without what is preloaded into it.
    WithoutPreload,
    /// Packages of a Linux driver.
    DriverPackages,
    /// How many GPUs the program sees, and which index it asks for.
    DeviceIndex,
    /// How long the driver takes to start.
    StartTime,
    /// Mounts of the driver's libraries.
    LibraryMounts,
    /// Mounts around the process.
    Mounts,
    /// The user namespace's id map.
    UserNamespace,
    /// Denials of SELinux, AppArmor and Landlock.
    PolicyLog,
    /// The CDI spec.
    CdiSpec,
    /// How the engine is packaged, and whether it runs without root.
    EngineKind,
    /// Reloads of systemd on the host.
    UnitReloads,
    /// The device policy and the user of a service's unit.
    UnitDevices,
    /// The container toolkit's configuration.
    ToolkitConfig,
    /// The log of the driver's pod.
    DriverPod,
    /// How long the GPUs take to come up.
    HookTiming,
    /// The GL extensions of Flatpak.
    FlatpakExtensions,
    /// The driver versions that this gVisor knows.
    GvisorVersions,
    /// Whether /proc is mounted.
    ProcMounted,
    /// Whether a thread may write its own name.
    OwnName,
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
            Need::StuckStack => "where the stuck task sleeps, as root: cat /proc/PID/task/*/stack",
            Need::FreshProcess => {
                "cuInit in a fresh process: python3 -c 'import ctypes; print(ctypes.CDLL(\"libcuda.so.1\").cuInit(0))'"
            }
            Need::CudaInit => "what cuInit answers: run gpudx where the program runs",
            Need::Nvml => "whether NVML answers: nvidia-smi -L",
            Need::GspRunning => "whether GSP firmware runs: nvidia-smi -q | grep GSP",
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
            Need::UnitDevices => {
                "the unit's devices: systemctl show UNIT -p DevicePolicy,DeviceAllow,PrivateDevices,User"
            }
            Need::Container => "the kind of container: cat /proc/1/cgroup; systemd-detect-virt",
            Need::EngineRequest => "how the container was started: its command line or spec",
            Need::Seccomp => "the seccomp mode: grep Seccomp /proc/self/status",
            Need::Environment => {
                "the failing process's environment: env | grep -E 'CUDA|NVIDIA|LD_'"
            }
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
            Need::ModuleLoad => "what loading the module says, as root: modprobe nvidia",
            Need::BuildLog => {
                "the build's log: dkms status; tail -40 /var/lib/dkms/nvidia/*/build/make.log"
            }
            Need::SecureBoot => "whether Secure Boot is on: mokutil --sb-state",
            Need::KernelSva => {
                "the kernel's shared virtual addressing: grep SVA /boot/config-$(uname -r)"
            }
            Need::Uptime => "the time since boot: uptime",
            Need::OneFamily => {
                "cuInit with one family of GPUs alone: CUDA_VISIBLE_DEVICES=INDICES, for each family"
            }
            Need::RemappedRows => {
                "remapped rows and memory errors: nvidia-smi -q -d ROW_REMAPPER,ECC"
            }
            Need::RecoveryAction => {
                "what recovery the driver asks for: nvidia-smi -q | grep 'Recovery Action'"
            }
            Need::LinkAtWork => {
                "the link while a program works on the GPU: nvidia-smi --query-gpu=pstate,pcie.link.gen.current,pcie.link.gen.max,pcie.link.width.current,pcie.link.width.max --format=csv"
            }
            Need::PowerState => {
                "the GPU's power state: cat /sys/bus/pci/devices/BDF/power_state /sys/bus/pci/devices/BDF/power/runtime_status"
            }
            Need::ConfCompute => {
                "Confidential Computing: nvidia-smi conf-compute -f; nvidia-smi conf-compute -grs"
            }
            Need::VgpuLicense => {
                "the vGPU's licence: nvidia-smi -q | grep -A2 'Licensed Product'; journalctl -u nvidia-gridd -b"
            }
            Need::VgpuVersions => {
                "both sides of the vGPU, on its host: journalctl -u nvidia-vgpu-mgr | grep -i 'driver version'"
            }
            Need::NodeHolders => "who holds the GPU: fuser -v /dev/nvidia*",
            Need::Limits => "the failing process's limits: cat /proc/PID/limits",
            Need::SharedMemorySize => "the size of /dev/shm where the program runs: df -h /dev/shm",
            Need::WithoutPreload => {
                "the program without preloaded libraries: env -u LD_PRELOAD PROGRAM; cat /etc/ld.so.preload"
            }
            Need::DriverPackages => {
                "packages of a Linux driver: dpkg -l | grep -E 'libnvidia-compute|nvidia-driver|libcuda1'"
            }
            Need::DeviceIndex => {
                "how many GPUs the program sees: python3 -c 'import torch; print(torch.cuda.device_count())'"
            }
            Need::StartTime => "how long the driver takes to start: time nvidia-smi",
            Need::LibraryMounts => {
                "whether the driver's libraries are mounted or the image's: grep -E 'libcuda|libnvidia-ml' /proc/self/mountinfo"
            }
            Need::CudaContext => "a context, an allocation and a kernel: gpudx check --context",
            Need::PeerStatus => "whether the driver offers peer access: nvidia-smi topo -p2p r",
            Need::PeerCopy => "a peer copy that is verified: simpleP2P of the CUDA samples",
            Need::Topology => "how the GPUs are linked: nvidia-smi topo -m",
            Need::AccessControl => {
                "access control above the GPUs, as root: lspci -vvv | grep -E '^[0-9a-f]|Bus:|ACSCtl'"
            }
            Need::IommuMode => {
                "what the IOMMU does: cat /sys/kernel/iommu_groups/*/type | sort | uniq -c; cat /proc/cmdline"
            }
            Need::Hypervisor => "whether this is a guest: systemd-detect-virt",
            Need::NvLinks => "each NVLink's state: nvidia-smi nvlink --status",
            Need::FabricLog => "the fabric manager's log: journalctl -u nvidia-fabricmanager -b",
            Need::Infiniband => {
                "InfiniBand: ls /sys/class/infiniband; lsmod | grep -E 'mlx5_ib|ib_umad'"
            }
            Need::ComputeMode => {
                "compute modes and processes: nvidia-smi --query-gpu=index,compute_mode --format=csv; nvidia-smi pmon -c 1"
            }
            Need::MigDevices => "MIG mode and instances: nvidia-smi -L; nvidia-smi mig -lgi",
            Need::MpsDaemon => {
                "MPS: ps -C nvidia-cuda-mps-control; ls -l ${CUDA_MPS_PIPE_DIRECTORY:-/tmp/nvidia-mps}"
            }
            Need::Mounts => "the mounts: grep /dev /proc/self/mountinfo",
            Need::UserNamespace => "the id map: cat /proc/self/uid_map",
            Need::PolicyLog => {
                "the policy's denials, as root: ausearch -m avc -ts recent, or dmesg | grep -E 'avc|apparmor'"
            }
            Need::CdiSpec => {
                "the CDI spec: ls -l /etc/cdi /run/cdi; grep -A3 nvidia-uvm /etc/cdi/nvidia.yaml"
            }
            Need::EngineKind => {
                "the engine: docker info | grep -E 'Context|Root Dir|Cgroup|rootless'; snap list docker"
            }
            Need::UnitReloads => {
                "whether systemd re-read its units since the container started: journalctl -b | grep -i reload"
            }
            Need::ToolkitConfig => {
                "the toolkit's configuration: cat /etc/nvidia-container-runtime/config.toml"
            }
            Need::DriverPod => {
                "the driver pod: kubectl logs -n gpu-operator -l app=nvidia-driver-daemonset"
            }
            Need::HookTiming => "how long the GPUs take to come up: time nvidia-smi, twice",
            Need::FlatpakExtensions => "Flatpak's extensions: flatpak list --runtime | grep nvidia",
            Need::GvisorVersions => {
                "the drivers that gVisor knows: runsc nvproxy list-supported-drivers"
            }
            Need::ProcMounted => "whether /proc is mounted: ls /proc/self",
            Need::OwnName => "whether a thread may name itself: sh -c 'echo x > /proc/self/comm'",
        }
    }
}
