//! What the tracer tells, as it happens.

use std::sync::Arc;
use std::time::Duration;

use facts::Errno;
use facts::parse::strace::driver_call;

use super::summary::Summary;

/// A call to the driver that was entered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Its number among the driver calls of this trace, from 1.
    pub sequence: u64,
    /// When it was entered, from the start of the trace.
    pub at: Duration,
    /// The process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// The process's name.
    pub process: Arc<str>,
    /// The call in words: `open`, `close`, `mmap`, `UVM_REGISTER_GPU`,
    /// `RM_CONTROL NV0000_CTRL_CMD_…`, or the request's number in hexadecimal.
    pub name: String,
    /// The node, such as `/dev/nvidia-uvm`.
    pub node: Arc<str>,
    /// The descriptor that it is made on; an open has none yet.
    pub descriptor: Option<u32>,
    /// The whole request of an ioctl; `None` for the other calls.
    pub request: Option<u32>,
    /// What an mmap asks for.
    pub mapping: Option<Mapping>,
    /// The RM control command or class, when there is one and it could be read.
    pub object: Option<u32>,
    /// The client handle and the object or its parent, for calls of the resource manager.
    pub handles: Option<(u32, u32)>,
    /// The GPU that the call names, as its UUID.
    pub gpu: Option<String>,
    /// False when the number is in no table.
    pub known: bool,
    /// The library that the driver's library called with this request and that has not handed it
    /// on, or not the answer. Then the call was not seen but is told by the thread's stack.
    pub interposer: Option<Arc<str>>,
    /// True when the thread was already in the call when it was attached to.
    pub found_inside: bool,
}

/// What an mmap of a node asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mapping {
    /// The length in bytes.
    pub length: u64,
    /// The offset in bytes, by which the driver tells what is to be mapped.
    pub offset: u64,
    /// `PROT_…`, as it came.
    pub protection: u64,
    /// `MAP_…`, as it came.
    pub flags: u64,
}

/// What a call came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The system call returned this: a descriptor for an open, an address for an mmap, 0 for most
    /// others.
    Returned(i64),
    /// The system call itself failed.
    Failed(Errno),
    /// The kernel broke the call off for a signal and starts it anew.
    Interrupted,
}

/// The answer to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// How long it took.
    pub elapsed: Duration,
    /// What the system call returned.
    pub outcome: Outcome,
    /// The NV_STATUS in the parameters, where it is known to stand and could be read.
    pub status: Option<u32>,
    /// The module's version, where the call tells it.
    pub version: Option<String>,
    /// True when gpudx gave this answer, as it was told to, and the driver did not see the call.
    pub injected: bool,
}

impl Answer {
    /// True when the system call failed or the status is an error. Warnings (0x10000 and above)
    /// and a call that is started anew are none.
    pub fn failed(&self) -> bool {
        const FIRST_WARNING: u32 = 0x1_0000;
        let status = self.status.is_some_and(|status| status != 0 && status < FIRST_WARNING);
        status || matches!(self.outcome, Outcome::Failed(_))
    }

    /// The answer in one word: a status (`NV_OK`), else an errno, else what was returned.
    pub fn word(&self) -> String {
        match (self.status, self.outcome) {
            (Some(status), _) => driver_call::status_name(status),
            (None, Outcome::Failed(errno)) => errno.to_string(),
            (None, Outcome::Interrupted) => "interrupted".to_owned(),
            (None, Outcome::Returned(value)) if value > i64::from(u32::MAX) => {
                format!("= {value:#x}")
            }
            (None, Outcome::Returned(value)) => format!("= {value}"),
        }
    }
}

/// Why a call counts as not returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreturned {
    /// The process ended while it was in it.
    ProcessEnded,
    /// The trace ended first.
    TraceEnded,
    /// gpudx held it, as it was told to; the driver did not see it.
    Held,
    /// A library between the program and the driver holds it.
    Interposed,
}

/// One event.
#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    /// The target runs under the tracer.
    Started {
        /// Its process id.
        pid: u32,
        /// Whether it was launched, and not attached to.
        launched: bool,
    },
    /// A call was entered.
    Entered(&'a Call),
    /// A call returned.
    Returned(&'a Call, &'a Answer),
    /// A call did not return; how long it had been going on.
    Unreturned(&'a Call, Duration, Unreturned),
    /// A process opened one of the driver's libraries.
    Library {
        /// The process.
        pid: u32,
        /// The file, with links followed: its name has the version.
        path: &'a str,
    },
    /// Something that a reader of the trace must know.
    Note(&'a str),
    /// The end.
    Ended(&'a Summary),
}
