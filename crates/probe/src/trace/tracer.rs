//! One trace: whom it follows, and what is done at each stop.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::event::{Event, Unreturned};
use super::image;
use super::memory::{Care, Memory, Whose};
use super::places::StatusPlaces;
use super::summary::{Ended, InFlight, Summary};
use super::tasks::{Entered, Tasks, Thread};
use super::telling::Seen;
use super::{Options, awake};
use crate::sys::ptrace::{self, At, Resume, Stop, Woken};

/// Longest wait between two looks, should a signal be missed.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// How often requests to end are looked for while one stop follows the other.
const REQUEST_INTERVAL: Duration = Duration::from_millis(100);
/// How long the target may take to end by itself when the tracer is asked to end: a terminal's
/// interrupt reaches both.
const GRACE: Duration = Duration::from_millis(300);

/// Which stops a thread makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Those that its filter asks for.
    Filter,
    /// All system calls.
    EveryCall,
}

/// One trace.
pub(super) struct Tracer<'a> {
    pub(super) mode: Mode,
    pub(super) root: u32,
    pub(super) options: Options,
    pub(super) started: Instant,
    pub(super) tasks: Tasks,
    pub(super) memory: Memory,
    /// The driver branch, by which layouts differ.
    pub(super) branch: Option<u32>,
    pub(super) places: StatusPlaces,
    pub(super) summary: Summary,
    /// The handles of RM's clients that calls have named.
    pub(super) clients: BTreeSet<u32>,
    /// The calls that are entered now were entered before the trace began.
    pub(super) finds: bool,
    pub(super) noted: BTreeSet<String>,
    /// What was seen at the stop that is being served.
    pub(super) untold: Vec<Seen>,
    pub(super) sink: &'a mut dyn FnMut(&Event<'_>),
}

impl<'a> Tracer<'a> {
    /// A trace of a process that is attached to already.
    pub(super) fn new(
        root: u32,
        mode: Mode,
        options: Options,
        sink: &'a mut dyn FnMut(&Event<'_>),
    ) -> Tracer<'a> {
        Tracer {
            mode,
            root,
            options,
            started: Instant::now(),
            tasks: Tasks::default(),
            memory: Memory::default(),
            branch: loaded_branch(),
            places: StatusPlaces::default(),
            summary: Summary::new(),
            clients: BTreeSet::new(),
            finds: false,
            noted: BTreeSet::new(),
            untold: Vec::new(),
            sink,
        }
    }

    /// Serves stops until nobody is left, the deadline passes, or somebody asks to end.
    pub(super) fn serve(&mut self) -> Ended {
        let mut deadline = self.options.deadline.map(|limit| self.started + limit);
        let mut ends_as = Ended::Deadline;
        let mut root_ended = None;
        let mut looked_for_requests = self.started;
        self.catch_up();
        loop {
            let limit = match awake::look(|| ptrace::next_stop().transpose()) {
                Some(Ok((tid, stop))) => {
                    root_ended = root_ended.or(self.end_of_root(tid, stop));
                    self.serve_stop(tid, stop);
                    Duration::ZERO
                }
                None => {
                    let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
                    left.unwrap_or(LOOK_INTERVAL).min(LOOK_INTERVAL)
                }
                Some(Err(_)) => return root_ended.unwrap_or(Ended::Gone),
            };
            if !limit.is_zero() || looked_for_requests.elapsed() >= REQUEST_INTERVAL {
                looked_for_requests = Instant::now();
                if ptrace::wait(limit) == Woken::Request && ends_as != Ended::Asked {
                    ends_as = Ended::Asked;
                    deadline = Some(Instant::now() + GRACE);
                }
            }
            if self.tasks.is_empty() {
                return root_ended.unwrap_or(Ended::Gone);
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return ends_as;
            }
        }
    }

    fn end_of_root(&self, tid: u32, stop: Stop) -> Option<Ended> {
        match stop {
            Stop::Exited(status) if tid == self.root => Some(Ended::Exited(status)),
            Stop::Killed(signal) if tid == self.root => Some(Ended::Killed(signal)),
            _ => None,
        }
    }

    /// Does what a stop calls for, lets the thread go on, and tells what was seen.
    pub(super) fn serve_stop(&mut self, tid: u32, stop: Stop) {
        self.look_at_stop(tid, stop);
        self.catch_up();
    }

    fn look_at_stop(&mut self, tid: u32, stop: Stop) {
        match stop {
            Stop::Exited(_) | Stop::Killed(_) => return self.gone(tid),
            Stop::Executed(former) => self.executed(tid, former),
            Stop::Filtered | Stop::SystemCall => self.system_call(tid),
            Stop::Interrupted => self.interrupted(tid),
            Stop::Cloned | Stop::GroupStopped | Stop::Signal(_) => {}
        }
        let signal = if let Stop::Signal(signal) = stop { signal } else { 0 };
        let thread = self.tasks.thread(tid);
        if thread.held {
            return;
        }
        let how = match (stop, self.mode) {
            (Stop::GroupStopped, _) => Resume::Listen,
            (_, Mode::Filter) if !thread.awaits_exit() => Resume::Run,
            _ => Resume::ToSystemCall,
        };
        // A thread that SIGKILL took meanwhile is gone, and tells so itself.
        let _ = ptrace::resume(tid, how, signal);
    }

    fn gone(&mut self, tid: u32) {
        if let Some(entered) = self.tasks.remove(tid).and_then(|thread| thread.entered) {
            self.unreturned(entered, Unreturned::ProcessEnded);
        }
    }

    fn unreturned(&mut self, entered: Entered, why: Unreturned) {
        let elapsed = entered.since.elapsed();
        let held = self.options.hold == Some(entered.call.sequence);
        let why = if held { Unreturned::Held } else { why };
        self.tell(&Event::Unreturned(&entered.call, elapsed, why));
        self.summary.in_flight.push(InFlight { call: entered.call, elapsed });
    }

    /// An exec by another thread than the leader takes over the leader's number.
    fn executed(&mut self, tid: u32, former: u32) {
        if let Some(entered) = self.tasks.executed(tid, former) {
            self.unreturned(entered, Unreturned::ProcessEnded);
        }
        self.memory.renew(tid);
        for remark in image::remarks(tid) {
            self.note(remark);
        }
    }

    /// A call that was found when attaching and that the interruption broke off is started anew
    /// and so entered anew.
    fn interrupted(&mut self, tid: u32) {
        let thread = self.tasks.thread(tid);
        if thread.entered.as_ref().is_some_and(|entered| entered.call.found_inside) {
            thread.entered = None;
        }
    }

    fn system_call(&mut self, tid: u32) {
        // One that is gone tells so itself.
        let Ok(at) = ptrace::at(tid) else { return };
        let thread = self.tasks.thread(tid);
        match at {
            // Kernels before 4.8 tell of the entry after the filter has told of it.
            At::Entry(..) if thread.awaits_exit() => {}
            At::Entry(number, arguments) => self.enter(tid, number, arguments),
            At::Exit(result) => {
                if std::mem::take(&mut thread.loading) {
                    self.loaded(tid, result);
                } else if let Some(entered) = thread.entered.take() {
                    self.leave(tid, entered, result);
                }
            }
            At::Foreign => {
                self.note(format!("thread {tid} makes 32-bit calls, which are not decoded"));
            }
        }
    }

    /// How a thread's memory is to be read.
    pub(super) fn whose(&self, tid: u32, process: u32) -> Whose {
        // One that was attached to may hold its memory lock since before.
        let alone = self.mode == Mode::Filter && self.tasks.is_alone(process);
        let care = if alone { Care::Direct } else { Care::Careful };
        Whose { process, thread: tid, care }
    }

    pub(super) fn say_blocked(&mut self, process: u32) {
        if self.memory.is_blocked(process) {
            self.note(format!(
                "the memory of process {process} cannot be read: a call holds its memory lock, so \
                 further calls lack their details"
            ));
        }
    }

    /// Tells of the calls that are still going on, and the end.
    pub(super) fn finish(mut self, ended: Ended, left_behind: Vec<u32>) -> Summary {
        self.tell_unreturned();
        self.summary.ended = ended;
        self.summary.left_behind = left_behind;
        self.summary.elapsed = self.started.elapsed();
        self.catch_up();
        (self.sink)(&Event::Ended(&self.summary));
        self.summary
    }

    /// Tells of the calls that are still going on.
    pub(super) fn tell_unreturned(&mut self) {
        self.catch_up();
        for entered in self.tasks.take_entered() {
            self.unreturned(entered, Unreturned::TraceEnded);
        }
    }
}

impl Thread {
    /// True when the exit of the call that it is in is to be seen.
    fn awaits_exit(&self) -> bool {
        self.entered.is_some() || self.loading
    }
}

/// Reads the tables of names beside what else is done, while the target still starts: its first call
/// to the driver shall not have to wait for them.
pub(super) fn prepare() {
    awake::prepare();
    let read = || {
        nvabi::control::by_command(0).is_some()
            | nvabi::class::by_id(0).is_some()
            | nvabi::nv_status::by_code(0).is_some()
            | nvabi::uvm::by_request(0).is_some()
            | nvabi::ioctl::decode_request(0).is_some()
            | nvabi::struct_layout::size("NVOS54_PARAMETERS", 0).is_some()
    };
    // Where no thread is to be had, they are read at that call.
    let _ = std::thread::Builder::new().spawn(read);
}

/// The branch of the loaded module. The kernel itself answers this read, not the driver.
fn loaded_branch() -> Option<u32> {
    branch_of(&std::fs::read_to_string("/sys/module/nvidia/version").ok()?)
}

/// The branch of a version: `580` of `580.159.04`.
pub(super) fn branch_of(version: &str) -> Option<u32> {
    version.split('.').next()?.trim().parse().ok()
}
