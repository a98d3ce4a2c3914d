//! The typed snapshot of one machine, by layer. Plain data: extractors fill it, causes read it.

pub mod cuda;
pub mod engine;
pub mod experiment;
pub mod fabric;
pub mod firmware;
pub mod framework;
pub mod health;
pub mod host;
pub mod library;
pub mod log;
pub mod module;
pub mod module_message;
pub mod node;
pub mod nvml;
pub mod p2p;
pub mod pci;
pub mod platform;
pub mod power;
pub mod probe_run;
pub mod process;
pub mod sandbox;
pub mod share;
pub mod task;

pub use cuda::Cuda;
pub use experiment::Experiment;
pub use fabric::Fabric;
pub use firmware::Firmware;
pub use framework::Framework;
pub use host::Host;
pub use library::Library;
pub use log::KernelLog;
pub use module::Module;
pub use node::Nodes;
pub use nvml::Nvml;
pub use p2p::P2p;
pub use pci::Pci;
pub use platform::Platform;
pub use power::Power;
pub use probe_run::ProbeRun;
pub use process::Process;
pub use sandbox::Sandbox;
pub use share::Share;
pub use task::Task;

use crate::observed::Origin;

/// Everything that is known about one machine, as far as one input tells. The largest parts lie on
/// the heap, so that gpudx gets by where a limit leaves little stack.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// The machine: name, distribution, kernel, virtualisation, container.
    pub host: Box<Host>,
    /// The PCI bus.
    pub pci: Pci,
    /// Power states of the GPUs and what switches them.
    pub power: Power,
    /// The machine around the GPU: guests, confidential computing, vGPU.
    pub platform: Platform,
    /// The kernel modules, loaded and on disk.
    pub module: Box<Module>,
    /// GSP firmware, running and on disk.
    pub firmware: Firmware,
    /// Kernel log lines that a signature knows, and those that name the driver and are unknown.
    pub log: KernelLog,
    /// Device nodes.
    pub node: Nodes,
    /// Container and policy around the process.
    pub sandbox: Box<Sandbox>,
    /// Driver libraries.
    pub library: Box<Library>,
    /// Environment and limits of the process.
    pub process: Process,
    /// NVML's answers.
    pub nvml: Nvml,
    /// CUDA's answers.
    pub cuda: Cuda,
    /// NVSwitch, NVLink, fabric manager.
    pub fabric: Fabric,
    /// Traffic between GPUs.
    pub p2p: P2p,
    /// Sharing: processes, MIG, MPS.
    pub share: Share,
    /// Frameworks and toolkits.
    pub framework: Framework,
    /// Experiments, in the order in which they were listed: runs that change one thing.
    pub experiments: Vec<Experiment>,
    /// Every probe run, with its outcome.
    pub probes: Vec<ProbeRun>,
    /// Tasks of the machine that do not get on, those of probes aside.
    pub tasks: Vec<Task>,
    /// Notes about the input itself that a reader must know, such as "this strace watched only
    /// the wrapper".
    pub notes: Vec<Note>,
    /// What the parsers could not make sense of.
    pub complaints: Vec<Complaint>,
    /// File items that were cut out of pasted texts, for what only all files together tell.
    pub(crate) cut_files: Vec<crate::raw::RawItem>,
    /// What was read of single tasks, until all of it is known.
    pub(crate) task_parts: crate::extract::tasks::Parts,
    /// True when the input says anything about a GPU or its driver at all.
    pub mentions_gpu: bool,
    /// True when gpudx itself looked at the machine, so that what it did not find is not there.
    pub live: bool,
}

impl Facts {
    /// The probe runs for which nothing was changed: how the machine is, experiments apart.
    pub fn unchanged_runs(&self) -> impl Iterator<Item = &ProbeRun> {
        self.probes.iter().filter(|run| !run.is_experiment())
    }
}

/// A remark about the input, shown with the diagnosis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The remark, one sentence.
    pub text: String,
    /// What it is about.
    pub origin: Origin,
}

/// A piece of input that a parser kept without understanding it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complaint {
    /// What is wrong with it, in a few words.
    pub problem: String,
    /// Where it stands.
    pub origin: Origin,
}
