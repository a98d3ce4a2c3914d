//! The rows. Each group's safe rows stand before those that can hang.

use super::{Group, Kind, Redaction, Wanted};
use crate::layer::Layer;

const fn passive(kind: Kind, layer: Layer, pattern: &'static str) -> Wanted {
    Wanted::new(kind, Group::Passive, layer, pattern)
}

const fn driver(kind: Kind, pattern: &'static str) -> Wanted {
    Wanted::new(kind, Group::ProcDriver, Layer::Module, pattern)
}

const fn pci(kind: Kind, pattern: &'static str) -> Wanted {
    Wanted::new(kind, Group::Pci, Layer::Pci, pattern).limit_kib(4)
}

const fn log(pattern: &'static str) -> Wanted {
    let row = Wanted::new(Kind::Log, Group::KernelLog, Layer::Kernel, pattern);
    row.limit_kib(8 << 10).hides(Redaction::LogLines)
}

const fn sandbox(kind: Kind, pattern: &'static str) -> Wanted {
    Wanted::new(kind, Group::Sandbox, Layer::Sandbox, pattern)
}

const fn process(pattern: &'static str) -> Wanted {
    Wanted::new(Kind::File, Group::Process, Layer::Process, pattern)
}

const fn elf(layer: Layer, pattern: &'static str) -> Wanted {
    Wanted::new(Kind::Elf, Group::Libraries, layer, pattern)
}

const fn library(pattern: &'static str) -> Wanted {
    elf(Layer::Library, pattern)
}

const fn toolkit(pattern: &'static str) -> Wanted {
    Wanted::new(Kind::File, Group::Frameworks, Layer::Framework, pattern)
}

use Kind::{Dir, File, Link, Node};
use Layer::{Firmware, Kernel, Library, Module, Pci, Platform, Uvm};

/// Everything that is collected.
///
/// Left out on purpose: configuration files of containers (/etc/pve/lxc, /var/lib/lxc), which on a
/// host describe other processes than this one, and of which /etc/pve is a file system in user
/// space whose reads can hang. They are understood when a user hands them over.
pub static WANTED: &[Wanted] = &[
    // Device nodes, before anything else: driver libraries make and replace them.
    passive(Dir, Layer::Node, "/dev"),
    passive(Dir, Layer::Node, "/dev/nvidia-caps"),
    passive(Dir, Layer::Node, "/dev/nvidia-caps-imex-channels"),
    passive(Node, Layer::Node, "/dev/nvidiactl"),
    passive(Node, Layer::Node, "/dev/nvidia-uvm"),
    passive(Node, Layer::Node, "/dev/nvidia*"),
    passive(Node, Layer::Node, "/dev/nvidia-caps/*"),
    passive(Node, Layer::Node, "/dev/nvidia-caps-imex-channels/*"),
    passive(Node, Platform, "/dev/dxg"),
    passive(Link, Layer::Node, "/dev/char/195:*"),
    // Modules.
    passive(File, Module, "/proc/modules").limit_kib(512),
    passive(File, Module, "/proc/devices"),
    passive(File, Module, "/sys/module/nvidia/initstate"),
    passive(File, Module, "/sys/module/nvidia/version"),
    passive(File, Module, "/sys/module/nvidia/srcversion"),
    passive(File, Module, "/sys/module/nvidia/taint"),
    passive(File, Module, "/sys/module/nvidia/refcnt"),
    passive(File, Module, "/sys/module/nvidia/parameters/*").needs("root for some"),
    passive(File, Module, "/sys/module/nvidia_drm/parameters/*").needs("root for some"),
    passive(File, Uvm, "/sys/module/nvidia_uvm/initstate"),
    passive(File, Uvm, "/sys/module/nvidia_uvm/version"),
    passive(File, Uvm, "/sys/module/nvidia_uvm/srcversion"),
    passive(File, Uvm, "/sys/module/nvidia_uvm/taint"),
    passive(File, Uvm, "/sys/module/nvidia_uvm/refcnt"),
    passive(File, Uvm, "/sys/module/nvidia_uvm/parameters/uvm_disable_hmm"),
    passive(File, Uvm, "/sys/module/nvidia_uvm/parameters/*").needs("root for some"),
    passive(File, Uvm, "/proc/iomem").limit_kib(512).needs("CAP_SYS_ADMIN for addresses"),
    passive(File, Module, "/etc/modprobe.d/*.conf"),
    passive(File, Module, "/run/modprobe.d/*.conf"),
    passive(File, Module, "/usr/lib/modprobe.d/*.conf"),
    passive(File, Module, "/lib/modprobe.d/*.conf"),
    passive(Dir, Module, "/lib/modules"),
    passive(File, Module, "/lib/modules/*/modules.dep").limit_kib(4 << 10),
    passive(File, Module, "/var/lib/dkms/nvidia*/*/build/make.log").limit_kib(1 << 10),
    // Firmware.
    passive(Dir, Firmware, "/lib/firmware/nvidia/{driver}"),
    passive(Dir, Firmware, "/lib/firmware/updates/nvidia/{driver}"),
    passive(Dir, Firmware, "/lib/firmware/nvidia/*.*"),
    // The kernel.
    passive(File, Kernel, "/proc/sys/kernel/osrelease").limit_kib(1),
    passive(File, Kernel, "/proc/sys/kernel/arch").limit_kib(1),
    passive(File, Kernel, "/proc/version").limit_kib(4),
    passive(File, Kernel, "/proc/cmdline").limit_kib(8).hides(Redaction::CommandLine),
    passive(File, Kernel, "/proc/uptime").limit_kib(1),
    passive(File, Kernel, "/proc/config.gz").limit_kib(1 << 10),
    passive(File, Kernel, "/boot/config-{release}").limit_kib(1 << 10).needs("root on some"),
    passive(File, Kernel, "/lib/modules/{release}/config").limit_kib(1 << 10),
    passive(File, Kernel, "/sys/kernel/security/lockdown").limit_kib(1),
    passive(Dir, Kernel, "/sys/firmware/efi"),
    passive(
        File,
        Kernel,
        "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c",
    )
    .limit_kib(1),
    // The platform.
    passive(File, Platform, "/etc/os-release"),
    passive(File, Platform, "/usr/lib/os-release"),
    passive(File, Platform, "/usr/share/perl5/PVE/pvecfg.pm"),
    passive(File, Platform, "/etc/nv_tegra_release").limit_kib(4),
    passive(File, Platform, "/sys/firmware/devicetree/base/compatible").limit_kib(4),
    passive(File, Platform, "/proc/sys/kernel/hostname").limit_kib(1).hides(Redaction::HostName),
    passive(File, Platform, "/proc/cpuinfo").limit_kib(8),
    passive(File, Platform, "/sys/class/dmi/id/sys_vendor").limit_kib(1),
    passive(File, Platform, "/sys/class/dmi/id/product_name").limit_kib(1),
    passive(File, Platform, "/sys/hypervisor/type").limit_kib(1),
    passive(File, Pci, "/sys/kernel/iommu_groups/*/type").limit_kib(1),
    passive(Dir, Layer::Fabric, "/sys/class/infiniband"),
    // The PCI bus. Every device's vendor is read, so that "none of NVIDIA's" can be said.
    pci(Dir, "/sys/bus/pci/devices").limit_kib(256),
    pci(File, "/sys/bus/pci/devices/*/vendor"),
    pci(File, "/sys/bus/pci/devices/*/device").of_nvidia(),
    pci(File, "/sys/bus/pci/devices/*/class").of_nvidia(),
    pci(File, "/sys/bus/pci/devices/*/subsystem_vendor").of_nvidia(),
    pci(File, "/sys/bus/pci/devices/*/subsystem_device").of_nvidia(),
    pci(Link, "/sys/bus/pci/devices/*/driver").of_nvidia(),
    pci(File, "/sys/bus/pci/devices/*/resource").of_nvidia(),
    pci(File, "/sys/bus/pci/devices/*/numa_node").of_nvidia(),
    pci(Link, "/sys/bus/pci/devices/*/iommu_group").of_nvidia(),
    pci(File, "/sys/bus/pci/devices/*/power_state").of_nvidia(),
    pci(File, "/sys/bus/pci/devices/*/power/runtime_status").of_nvidia(),
    pci(File, "/sys/bus/pci/devices/*/aer_dev_correctable").of_nvidia(),
    pci(File, "/sys/bus/pci/devices/*/aer_dev_nonfatal").of_nvidia(),
    pci(File, "/sys/bus/pci/devices/*/aer_dev_fatal").of_nvidia(),
    pci(File, "/sys/bus/pci/devices/*/current_link_speed").of_nvidia().can_hang(),
    pci(File, "/sys/bus/pci/devices/*/current_link_width").of_nvidia().can_hang(),
    pci(File, "/sys/bus/pci/devices/*/max_link_speed").of_nvidia().can_hang(),
    pci(File, "/sys/bus/pci/devices/*/max_link_width").of_nvidia().can_hang(),
    // The driver's own files. The first four wait only for a suspend that is under way.
    driver(File, "/proc/driver/nvidia/version").limit_kib(4),
    driver(File, "/proc/driver/nvidia/params"),
    driver(File, "/proc/driver/nvidia/registry"),
    driver(Dir, "/proc/driver/nvidia/gpus"),
    driver(File, "/proc/driver/nvidia/gpus/*/information")
        .limit_kib(16)
        .hides(Redaction::Identifiers)
        .can_hang(),
    driver(File, "/proc/driver/nvidia/gpus/*/power").limit_kib(16).can_hang(),
    // The kernel log.
    log("/dev/kmsg").needs("CAP_SYSLOG where kernel.dmesg_restrict is 1"),
    log("/var/log/dmesg").needs("group adm"),
    log("/var/log/kern.log").needs("group adm"),
    // The dynamic loader.
    Wanted::new(File, Group::Libraries, Library, "/etc/ld.so.cache").limit_kib(4 << 10),
    Wanted::new(File, Group::Libraries, Library, "/etc/ld.so.preload").limit_kib(16),
    // Driver libraries where distributions, containers, WSL and toolkits keep them. Where the
    // loader really looks, its cache and the environment tell.
    library("/usr/lib/x86_64-linux-gnu/libcuda.so.1"),
    library("/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"),
    library("/usr/lib/aarch64-linux-gnu/libcuda.so.1"),
    library("/usr/lib/aarch64-linux-gnu/libnvidia-ml.so.1"),
    library("/usr/lib64/libcuda.so.1"),
    library("/usr/lib64/libnvidia-ml.so.1"),
    library("/usr/lib/libcuda.so.1"),
    library("/usr/lib/libnvidia-ml.so.1"),
    library("/usr/lib/wsl/lib/libcuda.so.1"),
    library("/usr/lib/wsl/lib/libnvidia-ml.so.1"),
    library("/usr/local/nvidia/lib64/libcuda.so.1"),
    library("/usr/local/nvidia/lib64/libnvidia-ml.so.1"),
    library("/run/opengl-driver/lib/libcuda.so.1"),
    library("/run/opengl-driver/lib/libnvidia-ml.so.1"),
    library("/run/nvidia/driver/usr/lib/x86_64-linux-gnu/libcuda.so.1"),
    library("/run/nvidia/driver/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"),
    library("/usr/local/cuda/compat/libcuda.so.1"),
    library("/usr/local/cuda-*/compat/libcuda.so.1"),
    library("/usr/local/cuda/lib64/stubs/libcuda.so"),
    library("/usr/local/cuda-*/lib64/stubs/libcuda.so"),
    // The module for the running kernel, where packages, DKMS and the installer put it.
    elf(Module, "/lib/modules/{release}/updates/dkms/nvidia.ko*"),
    elf(Module, "/lib/modules/{release}/updates/nvidia.ko*"),
    elf(Module, "/lib/modules/{release}/extra/nvidia.ko*"),
    elf(Module, "/lib/modules/{release}/extra/nvidia/nvidia.ko*"),
    elf(Module, "/lib/modules/{release}/extra/drivers/video/nvidia/nvidia.ko*"),
    elf(Module, "/lib/modules/{release}/extramodules/nvidia.ko*"),
    elf(Module, "/lib/modules/{release}/weak-updates/nvidia.ko*"),
    elf(Module, "/lib/modules/{release}/kernel/drivers/video/nvidia.ko*"),
    elf(Module, "/lib/modules/{release}/kernel/nvidia-*/nvidia.ko*"),
    // Firmware for the loaded module.
    elf(Firmware, "/lib/firmware/nvidia/{driver}/gsp*.bin*"),
    // Containers and policy.
    sandbox(File, "/proc/self/status"),
    sandbox(File, "/proc/self/cgroup"),
    sandbox(File, "/proc/self/mountinfo").limit_kib(2 << 10).hides(Redaction::Paths),
    sandbox(File, "/proc/self/uid_map"),
    sandbox(File, "/proc/self/gid_map"),
    sandbox(Link, "/proc/self/ns/pid"),
    sandbox(Link, "/proc/self/ns/cgroup"),
    sandbox(Link, "/proc/self/ns/user"),
    sandbox(File, "/proc/1/cgroup"),
    sandbox(File, "/run/systemd/container").limit_kib(1),
    sandbox(File, "/run/.containerenv").limit_kib(4),
    sandbox(File, "/.dockerenv").limit_kib(1),
    sandbox(File, "/etc/nvidia-container-runtime/config.toml"),
    sandbox(Dir, "/etc/cdi"),
    sandbox(Dir, "/run/cdi"),
    sandbox(File, "/etc/cdi/*.yaml"),
    sandbox(File, "/etc/cdi/*.json"),
    sandbox(File, "/run/cdi/*.yaml"),
    sandbox(File, "/run/cdi/*.json"),
    sandbox(File, "/sys/fs/selinux/enforce").limit_kib(1),
    sandbox(File, "/proc/self/attr/current").limit_kib(4),
    // The process.
    process("/proc/self/environ").limit_kib(2 << 10).hides(Redaction::Variables),
    process("/proc/self/limits"),
    process("/sys/fs/cgroup/pids.max").limit_kib(1),
    process("/sys/fs/cgroup/pids/pids.max").limit_kib(1),
    // Toolkits.
    toolkit("/usr/local/cuda/version.json"),
    toolkit("/usr/local/cuda-*/version.json"),
    toolkit("/usr/local/cuda/version.txt").limit_kib(4),
];
