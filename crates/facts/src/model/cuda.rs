//! CUDA's answers: each trial of cuInit or of a call after it, from the probe or from the input.

use crate::observed::{Observed, Origin, Seen};
use crate::version::CudaVersion;

/// How far a trial came. The order is the order in which the probe goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// dlopen of libcuda.so.1.
    Load,
    /// cuInit.
    Init,
    /// cuDriverGetVersion.
    Version,
    /// cuDeviceGetCount.
    Count,
    /// Name, UUID, PCI address, capability of each device.
    Device,
    /// Creating a context.
    Context,
    /// Allocating memory.
    Allocation,
    /// Copies there and back, compared.
    Copy,
    /// A kernel from embedded PTX, its result compared.
    Kernel,
    /// Freeing what was taken.
    Free,
}

/// How a trial ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrialResult {
    /// The stage's call returned this code of cuda.h (the runtime's codes are the same numbers
    /// where they mean the same); 0 is success.
    Code(i64),
    /// It did not return; `killable` tells whether SIGKILL ended the process, if known.
    Hung {
        /// Whether SIGKILL ended it.
        killable: Option<bool>,
    },
    /// The process was ended by this signal inside the driver library.
    Crashed(Option<i32>),
    /// It failed, and the input does not say with which code.
    Failed,
    /// The data that came back was wrong.
    WrongResult,
}

/// One trial.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// The stage at which it ended (the last one for a success).
    pub stage: Stage,
    /// How it ended.
    pub result: TrialResult,
    /// `Some(true)` when the process is known to be a fresh one, `Some(false)` when it was forked
    /// from one that had initialised CUDA, `None` when the input does not say.
    pub fresh_process: Option<bool>,
    /// uvm_disable_hmm at that time, when the input shows it before the trial.
    pub hmm_disabled: Option<bool>,
    /// Duration in seconds, if measured.
    pub seconds: Option<f64>,
    /// True when it ran under a tracer.
    pub traced: bool,
    /// What was tried, in words: `cuInit`, `torch.cuda.is_available()`.
    pub what: String,
    /// Something that was changed for this trial and that matters for reading it (`with
    /// uvm_disable_hmm=1`, `as root`, `with --gpus all`).
    pub under: Option<String>,
    /// Where this was read.
    pub origin: Origin,
}

impl Trial {
    /// A trial of which no more is known.
    pub fn new(stage: Stage, result: TrialResult, what: &str, origin: Origin) -> Trial {
        Trial {
            stage,
            result,
            fresh_process: None,
            hmm_disabled: None,
            seconds: None,
            traced: false,
            what: what.to_owned(),
            under: None,
            origin,
        }
    }

    /// True when everything that was tried worked.
    pub fn ok(&self) -> bool {
        self.result == TrialResult::Code(0)
    }

    /// The code of a failure that returned.
    pub fn failure_code(&self) -> Option<i64> {
        match self.result {
            TrialResult::Code(code) => Some(code).filter(|code| *code != 0),
            TrialResult::Hung { .. }
            | TrialResult::Crashed(_)
            | TrialResult::Failed
            | TrialResult::WrongResult => None,
        }
    }
}

/// A device as CUDA lists it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CudaDevice {
    /// Ordinal within the visible set.
    pub ordinal: u32,
    /// Name.
    pub name: Option<String>,
    /// UUID.
    pub uuid: Option<String>,
    /// PCI address as text.
    pub pci: Option<String>,
    /// Compute capability, major and minor.
    pub capability: Option<(u32, u32)>,
}

/// How long a start of CUDA spent in one kind of driver call, by a trace that shows times.
#[derive(Debug, Clone, PartialEq)]
pub struct CallTime {
    /// The call: `UVM_REGISTER_GPU`, `open /dev/nvidia0`.
    pub call: String,
    /// Seconds of each call, in order; UVM_REGISTER_GPU is called once for each GPU.
    pub seconds: Vec<f64>,
}

impl CallTime {
    /// Seconds of all of them.
    pub fn total_s(&self) -> f64 {
        self.seconds.iter().sum()
    }
}

/// CUDA.
#[derive(Debug, Clone, Default)]
pub struct Cuda {
    /// The trials, in order.
    pub trials: Vec<Trial>,
    /// How many devices it counts.
    pub count: Observed<u32>,
    /// The devices.
    pub devices: Vec<Seen<CudaDevice>>,
    /// cuDriverGetVersion.
    pub driver_api: Observed<CudaVersion>,
    /// Where the time of a traced start went, the longest first.
    pub call_times: Vec<Seen<CallTime>>,
    /// Where a text tells that the program which hangs is busy, in no system call.
    pub busy_told: Option<Origin>,
    /// UVM calls that failed, with their names and status, as a trace shows them.
    pub uvm_failures: Vec<Seen<(String, String)>>,
}

impl Cuda {
    /// The trials that count as they are: not under a changed condition.
    pub fn plain(&self) -> impl Iterator<Item = &Trial> {
        self.trials.iter().filter(|trial| trial.under.is_none())
    }

    /// The trials of a fresh (or unknown) process that failed with this code at start-up, that is
    /// in cuInit or counting devices.
    pub fn init_failures(&self, code: i64) -> impl Iterator<Item = &Trial> {
        self.plain().filter(move |trial| {
            trial.failure_code() == Some(code)
                && matches!(trial.stage, Stage::Init | Stage::Version | Stage::Count)
        })
    }

    /// The trials in which cuInit did not return.
    pub fn hangs(&self) -> impl Iterator<Item = &Trial> {
        self.plain().filter(|trial| matches!(trial.result, TrialResult::Hung { .. }))
    }

    /// The trials in which everything worked at least through cuInit.
    pub fn successes(&self) -> impl Iterator<Item = &Trial> {
        self.plain().filter(|trial| trial.ok() || trial.stage > Stage::Init)
    }
}
