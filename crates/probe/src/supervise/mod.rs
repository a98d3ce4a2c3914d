//! Children with a deadline.
//!
//! Whatever touches the driver runs in a child that can be given up. The supervisor waits on
//! descriptors with a timeout, never on a process: pipes and pidfds of all children stand in one
//! `poll`. A child goes through *running*, then at its deadline *sampled* (where is it stuck?),
//! *asked to end*, *killed*, and where SIGKILL does not help either it is *abandoned* and
//! reported. A child that ends while something it started still holds its pipe is not waited for:
//! what matters is the process, not the end of the pipe.

mod child;
pub(crate) mod records;
mod sample;
mod spec;

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use facts::Errno;
use facts::wire::{End, Outcome};

use self::child::{Child, Step};
pub use self::spec::{CHILD_WORD, ChildSpec, Finished};
use crate::sys::{pipe, process};

/// Time between the two looks at a child that did not end, to see whether it works or waits.
pub(crate) const SAMPLE_INTERVAL: Duration = Duration::from_millis(100);
/// Time between SIGTERM and SIGKILL.
pub(crate) const GRACE: Duration = Duration::from_millis(100);
/// Time after SIGKILL before a child counts as unkillable.
pub(crate) const KILL_WAIT: Duration = Duration::from_millis(300);

/// How often a child without a pidfd is looked at.
const BLIND_INTERVAL: Duration = Duration::from_millis(5);

/// A child that is still waited for, for a status line.
#[derive(Debug, Clone)]
pub struct Waiting {
    /// Name of the probe.
    pub probe: String,
    /// Trial.
    pub trial: u32,
    /// Time since it was started.
    pub elapsed: Duration,
    /// Time that it may take.
    pub limit: Duration,
}

/// Runs children side by side. Dropping it ends those that still run.
pub struct Supervisor {
    deadline: Instant,
    queue: VecDeque<ChildSpec>,
    running: Vec<Child>,
    finished: VecDeque<Finished>,
}

impl Supervisor {
    /// A supervisor whose children all have ended, or been given up, shortly after the deadline:
    /// at most 0.4 s, the time that it takes to learn that a child cannot be killed. The kernel
    /// kills the children when the thread that starts them ends.
    pub fn new(deadline: Instant) -> Supervisor {
        process::keep_children_waitable();
        Supervisor {
            deadline,
            queue: VecDeque::new(),
            running: Vec::new(),
            finished: VecDeque::new(),
        }
    }

    /// Starts a child, or queues it while there are no descriptors left for one more.
    pub fn start(&mut self, spec: ChildSpec) {
        self.queue.push_back(spec);
        self.launch();
    }

    /// True when nothing runs, waits to run, or waits to be taken.
    pub fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.running.is_empty() && self.finished.is_empty()
    }

    /// The children that still run, the first started first.
    pub fn waiting(&self) -> impl Iterator<Item = Waiting> {
        let now = Instant::now();
        self.running.iter().map(move |child| child.waiting(now))
    }

    /// The next child that is done with, after at most `patience`; `None` when none is by then.
    pub fn next_finished(&mut self, patience: Duration) -> Option<Finished> {
        let until = Instant::now() + patience;
        loop {
            if let Some(finished) = self.finished.pop_front() {
                return Some(finished);
            }
            self.launch();
            let now = Instant::now();
            if self.running.is_empty() || now >= until {
                return self.finished.pop_front();
            }
            self.turn(now, until);
        }
    }

    /// Runs until all children are done with.
    pub fn finish_all(&mut self) -> Vec<Finished> {
        let mut all = Vec::new();
        while !self.is_idle() {
            all.extend(self.next_finished(SAMPLE_INTERVAL));
        }
        all
    }

    /// Waits once for any descriptor or point in time that matters, and lets each child take note.
    fn turn(&mut self, now: Instant, until: Instant) {
        let wake = self.running.iter().map(Child::next_look).fold(until, Instant::min);
        let mut patience = wake.saturating_duration_since(now);
        if self.running.iter().any(Child::is_blind) {
            patience = patience.min(BLIND_INTERVAL);
        }
        let fds: Vec<BorrowedFd<'_>> = self.running.iter().flat_map(Child::descriptors).collect();
        pipe::wait_readable(&fds, patience);
        let now = Instant::now();
        let mut still_running = Vec::with_capacity(self.running.len());
        for mut child in self.running.drain(..) {
            match child.look(now) {
                Step::Goes => still_running.push(child),
                Step::Done(end) => self.finished.push_back(child.finish(end)),
            }
        }
        self.running = still_running;
    }

    /// Starts what is queued as long as that is possible.
    fn launch(&mut self) {
        while let Some(spec) = self.queue.pop_front() {
            let now = Instant::now();
            let left = self.deadline.saturating_duration_since(now);
            if left.is_zero() {
                let end = not_started(None, "no time was left before the overall deadline");
                self.finished.push_back(child::without_output(&spec, end));
                continue;
            }
            match Child::start(&spec, left) {
                Ok(child) => self.running.push(child),
                Err(errno) if is_shortage(errno) && !self.running.is_empty() => {
                    self.queue.push_front(spec);
                    return;
                }
                Err(errno) => {
                    let end = not_started(Some(errno), &format!("could not be started: {errno}"));
                    self.finished.push_back(child::without_output(&spec, end));
                }
            }
        }
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.queue.clear();
        for child in &mut self.running {
            child.kill(Instant::now());
        }
        while !self.running.is_empty() {
            let now = Instant::now();
            self.turn(now, now + KILL_WAIT);
        }
    }
}

/// True for an errno that may be gone when another child has ended.
fn is_shortage(errno: Errno) -> bool {
    matches!(errno, Errno::EMFILE | Errno::EAGAIN | Errno::ENOMEM | Errno(libc::ENFILE))
}

fn not_started(errno: Option<Errno>, note: &str) -> End {
    End {
        outcome: Outcome::NotStarted,
        code: errno.map(|errno| errno.0),
        seconds: 0.0,
        pid: None,
        stuck: None,
        notes: vec![note.to_owned()],
        traced: false,
    }
}
