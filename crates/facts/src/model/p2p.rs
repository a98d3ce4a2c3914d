//! Traffic between GPUs: what the driver advertises, what arrives, and what stands in the way.

use super::pci::PciAddress;
use crate::observed::{Observed, Seen};

/// Something that was changed for one run and that tells causes apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PeerSwitch {
    /// Peer copies were off: `NCCL_P2P_DISABLE=1`, `NCCL_P2P_LEVEL=LOC`.
    P2pOff,
    /// NVLink multicast was off: `NCCL_NVLS_ENABLE=0`.
    MulticastOff,
    /// A framework's own all-reduce was off: `--disable-custom-all-reduce`.
    CustomAllReduceOff,
    /// NCCL's shared memory was off: `NCCL_SHM_DISABLE=1`.
    SharedMemoryOff,
    /// The IOMMU was off: `intel_iommu=off`, `amd_iommu=off`, VT-d off in the firmware.
    IommuOff,
    /// The IOMMU did not translate: `iommu=pt`.
    IommuPassthrough,
    /// The redirect bits of ACS were cleared: `setpci … ECAP_ACS+6.w=0000`.
    AcsOff,
    /// An NVLink bridge was taken out, or put in properly.
    BridgeChanged,
    /// The driver was of another version.
    OtherDriver,
    /// NCCL was told the PCIe tree: `NCCL_TOPO_FILE`.
    TopologyFile,
}

/// How a run that moves data between GPUs ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PeerResult {
    /// It ran to its end, and its data was right as far as it looked.
    Completed,
    /// It did not end.
    Hung,
    /// It ended with an error, or is said not to work.
    Failed,
    /// The data that arrived was wrong.
    WrongData,
}

/// One run of a collective or of a peer copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerRun {
    /// What ran, in words: `NCCL`, `all_reduce_perf`, `a peer copy`.
    pub what: String,
    /// How it ended.
    pub result: PeerResult,
    /// What had been changed for it; empty for a run as things are.
    pub under: Vec<PeerSwitch>,
}

/// The access control (ACS) of one port, as `lspci -vvv` prints it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortAccess {
    /// The port, if the input tells.
    pub port: Option<PciAddress>,
    /// Whether a GPU hangs below this port, where the input holds enough of the tree to say.
    pub above_gpu: Option<bool>,
    /// Requests or completions between peers are sent up to the root complex.
    pub redirects: bool,
    /// The flags as printed.
    pub flags: String,
}

/// What the IOMMU does with a device's addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IommuMode {
    /// It translates them.
    Translated,
    /// It passes them through (identity domains).
    Passthrough,
    /// It is off.
    Off,
}

/// What is known of traffic between GPUs, beside NVML's two matrices.
#[derive(Debug, Clone, Default)]
pub struct P2p {
    /// What CUDA answers to "can this device access that one": pair as printed, answer.
    pub access: Vec<Seen<(String, bool)>>,
    /// Words of the driver's peer matrix (`CNS`, `GNS`, `NS`, …) that a report quotes alone.
    pub words: Vec<Seen<String>>,
    /// Runs, in order.
    pub runs: Vec<Seen<PeerRun>>,
    /// Ports with their access control.
    pub ports: Vec<Seen<PortAccess>>,
    /// What a report says of the IOMMU, where nothing shows it.
    pub iommu_told: Observed<IommuMode>,
    /// NCCL connects GPUs by peer copies (`via P2P/…`).
    pub nccl_uses_p2p: Observed<()>,
    /// NCCL or a framework gives up peer copies or GPUDirect RDMA by itself, in its words.
    pub given_up: Vec<Seen<String>>,
    /// What NCCL warns of (`NCCL WARN …`), without the prefix.
    pub nccl_warnings: Vec<Seen<String>>,
    /// Bandwidth between GPUs is said to be low.
    pub slow: Vec<Seen<String>>,
    /// GPUs of another kind are said to do it in the same machine.
    pub other_gpus_work: Vec<Seen<String>>,
    /// A report says that it is about a virtual machine.
    pub guest_told: Observed<()>,
}

impl P2p {
    /// The runs as things are, with nothing changed for them.
    pub fn plain_runs(&self) -> impl Iterator<Item = &Seen<PeerRun>> {
        self.runs.iter().filter(|run| run.value.under.is_empty())
    }

    /// The first run as things are that did not do what it should.
    pub fn broken(&self) -> Option<&Seen<PeerRun>> {
        self.plain_runs().find(|run| run.value.result != PeerResult::Completed)
    }

    /// The first run that completed under one of these conditions and no other.
    pub fn completed_under(&self, switches: &[PeerSwitch]) -> Option<&Seen<PeerRun>> {
        self.under(switches, |result| result == PeerResult::Completed)
    }

    /// The first run that did not do what it should under one of these conditions.
    pub fn broken_under(&self, switches: &[PeerSwitch]) -> Option<&Seen<PeerRun>> {
        self.under(switches, |result| result != PeerResult::Completed)
    }

    fn under(
        &self,
        switches: &[PeerSwitch],
        fits: impl Fn(PeerResult) -> bool,
    ) -> Option<&Seen<PeerRun>> {
        self.runs.iter().find(|run| {
            let named = run.value.under.iter().any(|switch| switches.contains(switch));
            named && fits(run.value.result)
        })
    }
}
