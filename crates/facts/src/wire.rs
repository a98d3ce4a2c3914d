//! The on-disk and on-pipe form of probe records: one JSON object a line.
//!
//! A probe child writes records to its pipe; the parent adds the [`Record::End`]. The lines as
//! they are become one raw item, `probe:NAME#TRIAL`, so that a bundle replays exactly what the
//! live run saw. Consumers treat every field as optional; unknown records are kept and counted.

use serde::{Deserialize, Serialize};

/// Version of this form, written in the manifest of a bundle.
pub const WIRE_VERSION: u32 = 1;

/// Name of the probe under which experiments are recorded: runs of cuInit that change one thing.
pub const EXPERIMENT: &str = "experiment";

/// Keys of the notes that tell of an experiment.
pub mod note {
    /// What was changed, in the form of [`crate::model::experiment::Change`].
    pub const CHANGE: &str = "change";
    /// Why the experiment was worth making.
    pub const WHY: &str = "why";
    /// Why it was not made.
    pub const NOT_MADE: &str = "not-made";
    /// The driver call that the tracer saw in flight at the end of a traced run.
    pub const TRACE_IN_FLIGHT: &str = "trace-in-flight";
}

/// One line of a probe's report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "kebab-case")]
pub enum Record {
    /// A call is about to be made. One without a following [`Record::Call`] never returned.
    Enter {
        /// The call, such as `cuInit`, `open` or `nvmlDeviceGetName`.
        call: String,
        /// What it is called on: a node's path or a device index.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        on: Option<String>,
    },
    /// A call returned.
    Call {
        /// The call, as in [`Record::Enter`].
        call: String,
        /// What it was called on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        on: Option<String>,
        /// The raw return code; for system calls 0 or the positive errno.
        code: i64,
        /// Duration in milliseconds.
        #[serde(default)]
        ms: f64,
        /// What it answered, as text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        value: Option<String>,
    },
    /// A file, a link or a command's output that the child read for the parent.
    Item {
        /// The item's name; see [`crate::raw::ItemName`].
        name: String,
        /// The content, if it was read and is text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// The content in hexadecimal, if it is not text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hex: Option<String>,
        /// The errno of the failed read; `ENOENT` means absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        errno: Option<i32>,
        /// True when the content was cut at the size limit.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        partial: bool,
    },
    /// Something worth telling that is no call, as a key and a text.
    Note {
        /// The key, such as `mapped-libcuda`.
        key: String,
        /// The text.
        value: String,
    },
    /// How the child ended, written by the parent.
    End(Box<End>),
}

/// How a probe ended: one closed set, so that "it hung" and "it crashed" are never one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It ran to its end and said so.
    Returned,
    /// A signal that gpudx did not send ended it.
    Crashed,
    /// The deadline passed; it was killed and is gone.
    TimedOut,
    /// The deadline passed and SIGKILL does not end it.
    Unkillable,
    /// It could not be started.
    NotStarted,
    /// It ended, but what it wrote is not a whole report.
    Malformed,
}

impl Outcome {
    /// The name in JSON and on the terminal.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Returned => "returned",
            Outcome::Crashed => "crashed",
            Outcome::TimedOut => "timed-out",
            Outcome::Unkillable => "unkillable",
            Outcome::NotStarted => "not-started",
            Outcome::Malformed => "malformed",
        }
    }
}

/// The end of one probe run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// How it ended.
    pub outcome: Outcome,
    /// Exit status for `Returned` and `Malformed`, signal for `Crashed`, errno for `NotStarted`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// Wall time in seconds.
    pub seconds: f64,
    /// The child's process id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Where it was stuck, sampled before it was killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stuck: Option<Stuck>,
    /// Particulars: "pipe still held by a grandchild", "output cut at 16 MiB", "stopped itself".
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// True when the child ran under the tracer, which changes timing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub traced: bool,
}

/// Where a task is stuck: a child when its deadline passed, or any other task of the machine. From
/// the reads of /proc that cannot block.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Stuck {
    /// Process id.
    pub pid: u32,
    /// Thread that was stuck; the leader is often innocent.
    #[serde(default)]
    pub tid: u32,
    /// The task's name, as in /proc/PID/comm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// State letter of /proc/PID/stat: R, S, D, T, Z.
    pub state: String,
    /// Kernel function that it waits in, if it could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wchan: Option<String>,
    /// Kernel stack, innermost frame first, if it could be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stack: Vec<String>,
    /// The system call it is in, decoded: `ioctl UVM_REGISTER_GPU on /dev/nvidia-uvm`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// System time as a share of wall time over the sampling interval, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_share: Option<f64>,
    /// User time as a share of wall time over the sampling interval, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_share: Option<f64>,
    /// How often it went off a processor between the two looks; 0 for one that slept throughout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switches: Option<u64>,
    /// Seconds since it last ran on a processor, where the kernel tells (CONFIG_SCHED_DEBUG).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asleep_s: Option<f64>,
    /// True when SIGKILL was sent to it and is still pending.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kill_pending: bool,
    /// Seconds since the task was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_s: Option<f64>,
    /// Nodes of the driver that the process holds open, each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub descriptors: Vec<String>,
    /// Threads of others whose stacks have the same top frames: they wait for the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub same_place: Vec<u32>,
    /// What could not be read and which privilege would show it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_readable: Vec<String>,
}
