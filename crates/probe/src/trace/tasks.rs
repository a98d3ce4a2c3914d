//! The traced threads and the processes that they belong to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use facts::parse::strace::driver_call::{Asked, Node};

use super::event::Call;
use super::injection::Injected;
use crate::sys::descriptors::Descriptors;

/// Most folders of descriptors that are kept open, below the usual limit of open files.
const OPEN_LIMIT: usize = 512;

/// A traced thread.
#[derive(Debug, Default)]
pub(super) struct Thread {
    pub(super) process: u32,
    /// The driver call that it is in.
    pub(super) entered: Option<Entered>,
    /// It is opening one of the driver's libraries.
    pub(super) loading: bool,
    /// It is kept stopped at the entry of its call.
    pub(super) held: bool,
    /// The last call of the driver's that it made and when it returned.
    pub(super) last: Option<(String, Instant)>,
    descriptors: Option<Descriptors>,
}

/// A traced process.
#[derive(Debug, Default)]
struct Process {
    threads: usize,
    /// It has executed a program under the tracer, so that its memory is nobody else's.
    own_memory: bool,
    /// It has called the driver, or loaded its library.
    concerned: bool,
    name: Option<Arc<str>>,
}

/// A driver call that a thread is in.
#[derive(Debug)]
pub(super) struct Entered {
    pub(super) call: Call,
    pub(super) since: Instant,
    pub(super) ioctl: Option<Ioctl>,
    pub(super) stands_in: bool,
    /// The call is left undone, and this is answered.
    pub(super) injected: Option<Injected>,
}

/// What is needed to read an ioctl's answer.
#[derive(Debug)]
pub(super) struct Ioctl {
    pub(super) node: Node,
    pub(super) request: u32,
    pub(super) asked: Asked,
    pub(super) address: u64,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    threads: BTreeMap<u32, Thread>,
    processes: BTreeMap<u32, Process>,
    open: usize,
}

impl Tasks {
    /// Takes a thread of a process in.
    pub(super) fn add(&mut self, tid: u32, process: u32) {
        self.remove(tid);
        self.threads.insert(tid, Thread { process, ..Thread::default() });
        self.processes.entry(process).or_default().threads += 1;
    }

    /// The thread, taken in if it is new: a new one may stop before its maker tells of it.
    pub(super) fn thread(&mut self, tid: u32) -> &mut Thread {
        if !self.threads.contains_key(&tid) {
            self.add(tid, process_of(tid));
        }
        self.threads.entry(tid).or_default()
    }

    /// Forgets a thread, and gives what was known of it.
    pub(super) fn remove(&mut self, tid: u32) -> Option<Thread> {
        let thread = self.threads.remove(&tid)?;
        self.open -= usize::from(thread.descriptors.is_some());
        if let Some(process) = self.processes.get_mut(&thread.process) {
            process.threads -= 1;
            if process.threads == 0 {
                self.processes.remove(&thread.process);
            }
        }
        Some(thread)
    }

    /// A thread executed a program and took over the number of its process. Gives the driver call
    /// that the process's first thread was in.
    pub(super) fn executed(&mut self, tid: u32, former: u32) -> Option<Entered> {
        self.remove(former);
        let replaced = self.remove(tid);
        self.add(tid, tid);
        if let Some(process) = self.processes.get_mut(&tid) {
            process.own_memory = true;
            process.name = None;
        }
        replaced?.entered
    }

    /// True when nobody but this one thread can hold the lock of the process's memory.
    pub(super) fn is_alone(&self, process: u32) -> bool {
        self.processes
            .get(&process)
            .is_some_and(|process| process.threads == 1 && process.own_memory)
    }

    /// The process's name.
    pub(super) fn name(&mut self, process: u32) -> Arc<str> {
        let read = || {
            let name = std::fs::read_to_string(format!("/proc/{process}/comm"));
            name.map_or_else(|_| process.to_string(), |name| name.trim().to_owned()).into()
        };
        match self.processes.get_mut(&process) {
            Some(known) => Arc::clone(known.name.get_or_insert_with(read)),
            None => read(),
        }
    }

    /// A process has to do with the driver.
    pub(super) fn concern(&mut self, process: u32) {
        if let Some(process) = self.processes.get_mut(&process) {
            process.concerned = true;
        }
    }

    /// The threads that are in no call of the driver's, of processes that have to do with it.
    pub(super) fn outside_driver(&self) -> Vec<u32> {
        let concerned =
            |process: &u32| self.processes.get(process).is_some_and(|process| process.concerned);
        let outside = |thread: &Thread| thread.entered.is_none() && concerned(&thread.process);
        self.threads.iter().filter(|(_, thread)| outside(thread)).map(|(tid, _)| *tid).collect()
    }

    /// The folder of a thread's descriptors: the one that is kept open, or else a new one.
    pub(super) fn descriptors(&mut self, tid: u32) -> Result<Look<'_>, facts::Errno> {
        let room = self.open < OPEN_LIMIT;
        let thread = self.threads.entry(tid).or_default();
        if thread.descriptors.is_none() {
            let descriptors = Descriptors::of(tid)?;
            if !room {
                return Ok(Look::Once(descriptors));
            }
            self.open += 1;
            thread.descriptors = Some(descriptors);
        }
        thread.descriptors.as_ref().map(Look::Kept).ok_or(facts::Errno::EIO)
    }

    /// The threads' numbers.
    pub(super) fn ids(&self) -> Vec<u32> {
        self.threads.keys().copied().collect()
    }

    /// The processes' numbers.
    pub(super) fn processes(&self) -> BTreeSet<u32> {
        self.processes.keys().copied().collect()
    }

    /// The calls that are going on, taken out.
    pub(super) fn take_entered(&mut self) -> Vec<Entered> {
        self.threads.values_mut().filter_map(|thread| thread.entered.take()).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.threads.is_empty()
    }

    /// True for a thread that is kept stopped.
    pub(super) fn is_held(&self, tid: u32) -> bool {
        self.threads.get(&tid).is_some_and(|thread| thread.held)
    }
}

/// A folder of descriptors that is kept open, or one for this look only.
pub(super) enum Look<'a> {
    Kept(&'a Descriptors),
    Once(Descriptors),
}

impl std::ops::Deref for Look<'_> {
    type Target = Descriptors;

    fn deref(&self) -> &Descriptors {
        match self {
            Look::Kept(descriptors) => descriptors,
            Look::Once(descriptors) => descriptors,
        }
    }
}

/// The process that a thread belongs to.
fn process_of(tid: u32) -> u32 {
    let status = std::fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
    line.and_then(|value| value.trim().parse().ok()).unwrap_or(tid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_alone_with_one_thread_after_an_exec() {
        let mut tasks = Tasks::default();
        tasks.add(10, 10);
        assert!(!tasks.is_alone(10), "it may share its maker's memory");
        tasks.executed(10, 10);
        assert!(tasks.is_alone(10));
        tasks.add(11, 10);
        assert!(!tasks.is_alone(10));
        tasks.executed(10, 11);
        assert!(tasks.is_alone(10), "the others are gone");
        assert_eq!(tasks.ids(), [10]);
        tasks.remove(10);
        assert!(tasks.is_empty() && tasks.processes().is_empty());
    }
}
