//! The trace: what the driver was asked, what it answered, and where it stopped.
//!
//! Each call to a node of the driver is recorded when it is *entered* and again when it returns,
//! so that the call that never returns is there too. A launched program stops only at `ioctl` and
//! the calls that open files, by a seccomp filter; one that was attached to stops at every system
//! call, since a filter cannot be put on it from outside.
//!
//! A launched program ends with the tracer (`PTRACE_O_EXITKILL`): it could not go on without, for
//! the filter refuses its calls when nobody traces it. One that was attached to goes on untraced
//! when the tracer ends, however that ends.
//!
//! Descriptors are looked up in /proc at each call instead of being followed through dup, fork,
//! exec and sockets. No wait here is without a limit: a task that the kernel holds never stops,
//! and memory is read in a way that a held memory lock cannot block.

mod attach;
mod event;
mod image;
mod json;
mod launch;
pub(crate) mod memory;
mod refusal;
mod summary;
mod tracer;

use std::ffi::OsString;
use std::time::Duration;

pub use event::{Answer, Call, Event, Outcome, Unreturned};
pub use json::{SCHEMA, line as json_line};
pub use refusal::Refusal;
pub use summary::{Ended, InFlight, NodeTotal, Summary, Total};

/// Whom to trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A program to be started: its name or path, and its arguments.
    Launch(Vec<OsString>),
    /// A running process with all its threads, by its number.
    Attach(u32),
}

/// How to trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// End after this time: a launched program is killed, an attached one let go.
    pub deadline: Option<Duration>,
    /// Hold the driver call of this number, counted from 1: it never enters the driver. What a
    /// program does when the driver does not answer can be seen so.
    pub hold: Option<u64>,
}

/// Traces a target until it ends or the deadline passes, and tells `sink` of each event at once.
/// Signals that ask this process to end are held back meanwhile; they end the tracing.
pub fn run(
    target: &Target,
    options: Options,
    sink: &mut dyn FnMut(&Event<'_>),
) -> Result<Summary, Refusal> {
    crate::sys::process::keep_children_waitable();
    let before = crate::sys::ptrace::hold_signals();
    let traced = match target {
        Target::Launch(command) => launch::trace(command, options, sink),
        Target::Attach(pid) => attach::trace(*pid, options, sink),
    };
    crate::sys::ptrace::restore_signals(&before);
    traced
}
