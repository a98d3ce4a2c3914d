//! The trace: what the driver was asked, what it answered, and where it stopped.
//!
//! Each call to a node of the driver is recorded when it is *entered* and again when it returns,
//! so that the call that never returns is there too. A launched program stops only at the calls
//! that open, map, close or ask a node, by a seccomp filter; one that was attached to stops at
//! every system call, since a filter cannot be put on it from outside. What turns out at the entry
//! to be no business of the driver's goes on without a second stop.
//!
//! A launched program ends with the tracer (`PTRACE_O_EXITKILL`): it could not go on without, for
//! the filter refuses its calls when nobody traces it. One that was attached to goes on untraced
//! when the tracer ends, however that ends.
//!
//! What a descriptor leads to is looked up in /proc at each call, which costs about a microsecond.
//! So `dup`, `fork`, `exec`, descriptors that come through a socket or are taken from another
//! process, and closed and reopened ones need no stop of their own and are never mistaken. `close`
//! stops (below descriptor 1024) because closing a node runs the driver, which may not come back.
//! No wait here is without a limit: a task that the kernel holds never stops, and memory is read in
//! a way that a held memory lock cannot block.

mod attach;
mod awake;
mod enter;
mod event;
mod image;
mod injection;
mod interposed;
mod json;
mod launch;
mod leave;
pub(crate) mod memory;
mod places;
mod refusal;
mod stack;
mod summary;
mod tasks;
mod telling;
mod tracer;

use std::ffi::OsString;
use std::time::Duration;

pub use event::{Answer, Call, Event, Mapping, Outcome, Unreturned};
pub use injection::{Injected, Injection};
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
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Options {
    /// End after this time: a launched program is killed, an attached one let go.
    pub deadline: Option<Duration>,
    /// Hold the driver call of this number, counted from 1: it never enters the driver. What a
    /// program does when the driver does not answer can be seen so.
    pub hold: Option<u64>,
    /// Answer these driver calls in the driver's stead.
    pub fail: Vec<Injection>,
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
