//! The traced threads, and what is done at each of their stops.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use facts::Errno;
use facts::parse::strace::driver_call::{self, Asked, Node};

use super::Options;
use super::event::{Answer, Call, Event, Outcome, Unreturned};
use super::image;
use super::memory::{Care, Memory};
use super::summary::{Ended, InFlight, Summary};
use crate::sys::ptrace::{self, Resume, Stop, Woken};

/// Longest wait between two looks, should a signal be missed.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// How long the target may take to end by itself when the tracer is asked to end: a terminal's
/// interrupt reaches both.
const GRACE: Duration = Duration::from_millis(300);
/// The errnos by which the kernel says within itself that a call is to be started anew
/// (include/linux/errno.h).
const RESTARTS: std::ops::RangeInclusive<i64> = 512..=516;
/// Bytes of NV_ESC_CHECK_VERSION_STR's parameters.
const VERSION_BYTES: usize = 72;

/// Which stops a thread makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Those that its filter asks for.
    Filter,
    /// All system calls.
    EveryCall,
}

/// A traced thread.
#[derive(Debug, Default)]
struct Thread {
    process: u32,
    entered: Option<Entered>,
    /// In mode [`Mode::EveryCall`]: the next stop at a system call is an exit.
    inside: bool,
    /// It is kept stopped at the entry of its call.
    held: bool,
}

/// A driver call that a thread is in.
#[derive(Debug)]
struct Entered {
    call: Call,
    since: Instant,
    ioctl: Option<Ioctl>,
    stands_in: bool,
}

/// What is needed to read an ioctl's answer.
#[derive(Debug)]
struct Ioctl {
    node: Node,
    request: u32,
    asked: Asked,
    address: u64,
}

/// One trace.
pub(super) struct Tracer<'a> {
    pub(super) mode: Mode,
    pub(super) root: u32,
    options: Options,
    started: Instant,
    threads: BTreeMap<u32, Thread>,
    names: BTreeMap<u32, Arc<str>>,
    memory: Memory,
    branch: Option<u32>,
    summary: Summary,
    noted: BTreeSet<String>,
    sink: &'a mut dyn FnMut(&Event<'_>),
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
            threads: BTreeMap::new(),
            names: BTreeMap::new(),
            memory: Memory::default(),
            branch: loaded_branch(),
            summary: Summary::new(),
            noted: BTreeSet::new(),
            sink,
        }
    }

    /// Tells an event.
    pub(super) fn tell(&mut self, event: &Event<'_>) {
        (self.sink)(event);
    }

    /// Tells a remark, once.
    pub(super) fn note(&mut self, text: String) {
        if !self.noted.contains(&text) {
            (self.sink)(&Event::Note(&text));
            self.noted.insert(text);
        }
    }

    /// Takes a thread in.
    pub(super) fn add(&mut self, tid: u32, process: u32) {
        self.threads.insert(tid, Thread { process, ..Thread::default() });
    }

    /// The threads that are traced.
    pub(super) fn thread_ids(&self) -> Vec<u32> {
        self.threads.keys().copied().collect()
    }

    /// The processes that are traced.
    pub(super) fn processes(&self) -> BTreeSet<u32> {
        self.threads.values().map(|thread| thread.process).collect()
    }

    /// Serves stops until nobody is left, the deadline passes, or somebody asks to end.
    pub(super) fn serve(&mut self) -> Ended {
        let mut deadline = self.options.deadline.map(|limit| self.started + limit);
        let mut ends_as = Ended::Deadline;
        let mut root_ended = None;
        loop {
            match ptrace::next_stop() {
                Ok(Some((tid, stop))) => {
                    root_ended = root_ended.or(self.end_of_root(tid, stop));
                    self.serve_stop(tid, stop);
                }
                Ok(None) => {
                    let now = Instant::now();
                    let left = deadline.map(|deadline| deadline.saturating_duration_since(now));
                    let limit = left.unwrap_or(LOOK_INTERVAL).min(LOOK_INTERVAL);
                    if ptrace::wait(limit) == Woken::Request && ends_as != Ended::Asked {
                        ends_as = Ended::Asked;
                        deadline = Some(Instant::now() + GRACE);
                    }
                }
                Err(_) => return root_ended.unwrap_or(Ended::Gone),
            }
            if self.threads.is_empty() {
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

    /// Does what a stop calls for and lets the thread go on.
    pub(super) fn serve_stop(&mut self, tid: u32, stop: Stop) {
        match stop {
            Stop::Exited(_) | Stop::Killed(_) => return self.gone(tid),
            Stop::Executed(former) => self.executed(tid, former),
            Stop::Filtered => self.enter(tid),
            Stop::SystemCall => self.system_call(tid),
            Stop::Interrupted => self.interrupted(tid),
            Stop::Cloned | Stop::GroupStopped | Stop::Signal(_) => {}
        }
        let signal = if let Stop::Signal(signal) = stop { signal } else { 0 };
        let thread = self.thread(tid);
        if thread.held {
            return;
        }
        let in_call = thread.entered.is_some();
        let how = match (stop, self.mode) {
            (Stop::GroupStopped, _) => Resume::Listen,
            (_, Mode::Filter) if !in_call => Resume::Run,
            _ => Resume::ToSystemCall,
        };
        // A thread that SIGKILL took meanwhile is gone, and tells so itself.
        let _ = ptrace::resume(tid, how, signal);
    }

    /// The thread, taken in if it is new: a new one may stop before its maker tells of it.
    fn thread(&mut self, tid: u32) -> &mut Thread {
        self.threads
            .entry(tid)
            .or_insert_with(|| Thread { process: process_of(tid), ..Thread::default() })
    }

    fn gone(&mut self, tid: u32) {
        if let Some(entered) = self.threads.remove(&tid).and_then(|thread| thread.entered) {
            self.unreturned(entered, Unreturned::ProcessEnded);
        }
    }

    fn unreturned(&mut self, entered: Entered, why: Unreturned) {
        let elapsed = entered.since.elapsed();
        self.tell(&Event::Unreturned(&entered.call, elapsed, why));
        self.summary.in_flight.push(InFlight { call: entered.call, elapsed });
    }

    /// An exec by another thread than the leader takes over the leader's number.
    fn executed(&mut self, tid: u32, former: u32) {
        let inside = self.threads.remove(&former).is_some_and(|thread| thread.inside);
        self.threads.insert(tid, Thread { process: tid, inside, ..Thread::default() });
        self.names.remove(&tid);
        self.memory.renew(tid);
        for remark in image::remarks(tid) {
            self.note(remark);
        }
    }

    /// A call that was found when attaching and that the interruption broke off is started anew
    /// and so entered anew.
    fn interrupted(&mut self, tid: u32) {
        let thread = self.thread(tid);
        if thread.entered.as_ref().is_some_and(|entered| entered.call.found_inside) {
            thread.entered = None;
        }
    }

    fn system_call(&mut self, tid: u32) {
        let thread = self.thread(tid);
        let was_inside = std::mem::replace(&mut thread.inside, false);
        if let Some(entered) = thread.entered.take() {
            self.leave(tid, &entered);
        } else if self.mode == Mode::EveryCall && !was_inside {
            self.thread(tid).inside = true;
            self.enter(tid);
        }
    }

    /// A thread enters a call. Those that are no business of the driver's are passed over.
    fn enter(&mut self, tid: u32) {
        let registers = match ptrace::call(tid) {
            Ok(Some(registers)) => registers,
            Ok(None) => {
                return self
                    .note(format!("thread {tid} makes 32-bit calls, which are not decoded"));
            }
            Err(_) => return,
        };
        let [first, second, third, _] = registers.arguments;
        let number = i64::try_from(registers.number).unwrap_or(-1);
        match number {
            libc::SYS_ioctl => self.enter_ioctl(tid, first, second, third),
            libc::SYS_openat | libc::SYS_openat2 => self.enter_open(tid, second),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_open => self.enter_open(tid, first),
            _ => {}
        }
    }

    fn enter_open(&mut self, tid: u32, path: u64) {
        let process = self.thread(tid).process;
        let care = self.care(tid, process);
        let Some(path) = self.memory.read_path(process, care, path) else {
            return self.say_blocked(process);
        };
        let Some(node) = Node::of(&path) else { return };
        let mut call = self.new_call(tid, process, "open".to_owned(), &node);
        call.known = true;
        self.entered(tid, Entered { call, since: Instant::now(), ioctl: None, stands_in: false });
    }

    fn enter_ioctl(&mut self, tid: u32, descriptor: u64, request: u64, address: u64) {
        let process = self.thread(tid).process;
        let Some(node) = self.node(process, descriptor) else { return };
        let care = self.care(tid, process);
        let entered = self.ioctl((tid, process), care, node, low_half(request), address);
        self.entered(tid, entered);
    }

    /// The node that a descriptor leads to.
    fn node(&mut self, process: u32, descriptor: u64) -> Option<Node> {
        let descriptor = low_half(descriptor);
        match std::fs::read_link(format!("/proc/{process}/fd/{descriptor}")) {
            Ok(link) => Node::of(link.to_str()?),
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                self.note(format!(
                    "the descriptors of process {process} cannot be read, so its ioctls are not \
                     told: it has dropped or raised its privileges; root or CAP_SYS_PTRACE may"
                ));
                None
            }
            Err(_) => None,
        }
    }

    fn ioctl(
        &mut self,
        (tid, process): (u32, u32),
        care: Care,
        node: Node,
        request: u32,
        address: u64,
    ) -> Entered {
        let length = driver_call::naming_bytes(&node, request);
        let memory = &mut self.memory;
        let bytes = memory.read(process, care, address, length).unwrap_or_default();
        let mut more = |address, length| memory.read(process, care, address, length);
        let asked = driver_call::asked(&node, request, &bytes, &mut more);
        self.say_blocked(process);
        let mut call = self.new_call(tid, process, asked.words(), &node);
        call.known = asked.known && asked.object.is_none_or(driver_call::Object::known);
        call.request = Some(request);
        call.handles = asked.handles;
        call.gpu.clone_from(&asked.gpu);
        call.object = asked.object.map(|object| match object {
            driver_call::Object::Control(number) | driver_call::Object::Class(number) => number,
        });
        let stands_in = node.stands_in;
        let ioctl = Some(Ioctl { node, request, asked, address });
        Entered { call, since: Instant::now(), ioctl, stands_in }
    }

    fn new_call(&mut self, tid: u32, process: u32, name: String, node: &Node) -> Call {
        Call {
            sequence: self.summary.calls + 1,
            at: self.started.elapsed(),
            pid: process,
            tid,
            process: self.name(process),
            name,
            node: node.path.as_str().into(),
            request: None,
            object: None,
            handles: None,
            gpu: None,
            known: false,
            found_inside: false,
        }
    }

    fn entered(&mut self, tid: u32, mut entered: Entered) {
        self.summary.entered(&entered.call);
        self.tell(&Event::Entered(&entered.call));
        let hold = self.options.hold == Some(entered.call.sequence);
        if hold {
            let text = format!("call {} is held before the driver sees it", entered.call.sequence);
            self.note(text);
        }
        // What telling took is not the call's.
        entered.since = Instant::now();
        let thread = self.thread(tid);
        thread.held = hold;
        thread.entered = Some(entered);
    }

    /// A driver call that a thread was found in when it was attached to.
    pub(super) fn found_inside(&mut self, tid: u32, descriptor: u64, request: u64, address: u64) {
        let process = self.thread(tid).process;
        let Some(node) = self.node(process, descriptor) else { return };
        // The call may be the very one that holds the memory lock.
        let ids = (tid, process);
        let mut entered = self.ioctl(ids, Care::Careful, node, low_half(request), address);
        entered.call.found_inside = true;
        self.entered(tid, entered);
    }

    fn leave(&mut self, tid: u32, entered: &Entered) {
        let elapsed = entered.since.elapsed();
        let result = ptrace::call(tid).ok().flatten().map_or(0, |registers| registers.result);
        let outcome = outcome(result);
        let answered = matches!(outcome, Outcome::Returned(_)) || entered.stands_in;
        let mut answer = Answer { elapsed, outcome, status: None, version: None };
        if let Some(ioctl) = &entered.ioctl {
            self.read_answer(tid, ioctl, answered, &mut answer);
        }
        if entered.stands_in && matches!(answer.outcome, Outcome::Failed(Errno::ENOTTY)) {
            answer.outcome = Outcome::Returned(0);
        }
        self.summary.returned(&entered.call, &answer);
        self.tell(&Event::Returned(&entered.call, &answer));
    }

    /// The status, and the version where the call tells one (which it does in failing, too).
    fn read_answer(&mut self, tid: u32, ioctl: &Ioctl, answered: bool, answer: &mut Answer) {
        let process = self.thread(tid).process;
        let care = self.care(tid, process);
        let base = ioctl.asked.carried.map_or(ioctl.address, |carried| carried.address);
        if ioctl.asked.request == "NV_ESC_CHECK_VERSION_STR" {
            let bytes = self.memory.read(process, care, base, VERSION_BYTES).unwrap_or_default();
            answer.version = driver_call::version_told(&ioctl.asked, &bytes);
            self.branch = answer.version.as_deref().and_then(branch_of).or(self.branch);
        }
        let offset =
            driver_call::status_offset(&ioctl.node, ioctl.request, &ioctl.asked, self.branch);
        if let Some(offset) = offset.filter(|_| answered) {
            let at = base.wrapping_add(offset as u64);
            let bytes = self.memory.read(process, care, at, 4).unwrap_or_default();
            answer.status = driver_call::word(&bytes, 0);
        }
    }

    /// Another thread of the process that is in a driver call may hold the memory lock.
    fn care(&self, tid: u32, process: u32) -> Care {
        let others = self.threads.iter().any(|(other, thread)| {
            *other != tid && thread.process == process && thread.entered.is_some()
        });
        if others { Care::Careful } else { Care::Direct }
    }

    fn say_blocked(&mut self, process: u32) {
        if self.memory.is_blocked(process) {
            self.note(format!(
                "the memory of process {process} cannot be read: a call holds its memory lock, so \
                 further calls lack their details"
            ));
        }
    }

    fn name(&mut self, process: u32) -> Arc<str> {
        let read = || {
            let name = std::fs::read_to_string(format!("/proc/{process}/comm"));
            name.map_or_else(|_| process.to_string(), |name| name.trim().to_owned()).into()
        };
        Arc::clone(self.names.entry(process).or_insert_with(read))
    }

    /// Tells of the calls that are still going on, and the end.
    pub(super) fn finish(mut self, ended: Ended, left_behind: Vec<u32>) -> Summary {
        self.tell_unreturned();
        self.summary.ended = ended;
        self.summary.left_behind = left_behind;
        self.summary.elapsed = self.started.elapsed();
        (self.sink)(&Event::Ended(&self.summary));
        self.summary
    }

    /// Tells of the calls that are still going on.
    pub(super) fn tell_unreturned(&mut self) {
        let threads = self.threads.values_mut();
        let entered: Vec<Entered> = threads.filter_map(|thread| thread.entered.take()).collect();
        for entered in entered {
            self.unreturned(entered, Unreturned::TraceEnded);
        }
    }

    /// True for a thread that is kept stopped.
    pub(super) fn is_held(&self, tid: u32) -> bool {
        self.threads.get(&tid).is_some_and(|thread| thread.held)
    }

    /// Forgets a thread.
    pub(super) fn remove(&mut self, tid: u32) {
        self.threads.remove(&tid);
    }
}

/// What a system call's result register says.
fn outcome(result: i64) -> Outcome {
    /// Largest errno; higher negative values are addresses.
    const LAST_ERRNO: i64 = 4095;
    match result {
        value if !(-LAST_ERRNO..0).contains(&value) => Outcome::Returned(value),
        value if RESTARTS.contains(&-value) => Outcome::Interrupted,
        value => Outcome::Failed(Errno(i32::try_from(-value).unwrap_or(i32::MAX))),
    }
}

/// The kernel takes descriptors and requests as 32 bits, whatever the upper half holds.
fn low_half(word: u64) -> u32 {
    u32::try_from(word & u64::from(u32::MAX)).unwrap_or(0)
}

/// The process that a thread belongs to.
fn process_of(tid: u32) -> u32 {
    let status = std::fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
    line.and_then(|value| value.trim().parse().ok()).unwrap_or(tid)
}

/// The branch of the loaded module. The kernel itself answers this read, not the driver.
fn loaded_branch() -> Option<u32> {
    branch_of(&std::fs::read_to_string("/sys/module/nvidia/version").ok()?)
}

fn branch_of(version: &str) -> Option<u32> {
    version.split('.').next()?.trim().parse().ok()
}
