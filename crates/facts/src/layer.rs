//! The layers of the stack, bottom to top, as the terminal lists them.

use std::fmt;

/// One layer of the NVIDIA stack. The order is the order of dependence: a fault in one blocks
/// those after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// The device on the PCI bus: identifiers, links, BARs, power state, the driver bound to it.
    Pci,
    /// The GPU itself: memory, Xids, reset state.
    Gpu,
    /// The machine around the GPU: hypervisor, passthrough, confidential computing.
    Platform,
    /// The Linux kernel: release, configuration, signatures, competing drivers.
    Kernel,
    /// The `nvidia` kernel module.
    Module,
    /// The `nvidia_uvm` kernel module.
    Uvm,
    /// The GSP firmware that the module hands to the GPU.
    Firmware,
    /// The device nodes under /dev.
    Node,
    /// Containers, cgroups, namespaces, seccomp and other policy around the process.
    Sandbox,
    /// The user-space driver libraries, `libcuda.so.1` and `libnvidia-ml.so.1`.
    Library,
    /// The management library's answers.
    Nvml,
    /// The process: environment and limits.
    Process,
    /// Sharing of a GPU: compute mode, MPS, MIG.
    Share,
    /// NVSwitch and NVLink fabric.
    Fabric,
    /// Peer-to-peer copies.
    P2p,
    /// CUDA itself: what cuInit and the calls after it answered.
    Cuda,
    /// Frameworks and toolkits on top.
    Framework,
}

impl Layer {
    /// All layers, bottom to top.
    pub const ALL: [Layer; 17] = [
        Layer::Pci,
        Layer::Gpu,
        Layer::Platform,
        Layer::Kernel,
        Layer::Module,
        Layer::Uvm,
        Layer::Firmware,
        Layer::Node,
        Layer::Sandbox,
        Layer::Library,
        Layer::Nvml,
        Layer::Process,
        Layer::Share,
        Layer::Fabric,
        Layer::P2p,
        Layer::Cuda,
        Layer::Framework,
    ];

    /// The lower-case name, as it stands before the dot of a cause id.
    pub fn name(self) -> &'static str {
        match self {
            Layer::Pci => "pci",
            Layer::Gpu => "gpu",
            Layer::Platform => "platform",
            Layer::Kernel => "kernel",
            Layer::Module => "module",
            Layer::Uvm => "uvm",
            Layer::Firmware => "firmware",
            Layer::Node => "node",
            Layer::Sandbox => "sandbox",
            Layer::Library => "library",
            Layer::Nvml => "nvml",
            Layer::Process => "process",
            Layer::Share => "share",
            Layer::Fabric => "fabric",
            Layer::P2p => "p2p",
            Layer::Cuda => "cuda",
            Layer::Framework => "framework",
        }
    }

    /// The layer of that name, or `None`.
    pub fn from_name(name: &str) -> Option<Layer> {
        Layer::ALL.into_iter().find(|layer| layer.name() == name)
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_the_list_is_in_order() {
        assert!(Layer::ALL.is_sorted());
        for layer in Layer::ALL {
            assert_eq!(Layer::from_name(layer.name()), Some(layer));
        }
    }
}
