//! Tracing a process that runs already.

use std::time::{Duration, Instant};

use facts::Errno;
use facts::parse::task_syscall::{self, InCall};

use super::Options;
use super::event::Event;
use super::image;
use super::refusal::Refusal;
use super::summary::{Ended, Summary};
use super::tracer::{self, Mode, Tracer};
use crate::proc_task;
use crate::sys::ptrace::{self, Stop};

/// How often the threads are listed until there is no new one: each may make others meanwhile.
const ROUNDS: usize = 8;
/// How long letting go may take. A thread that the kernel holds is let go when the tracer ends.
const DETACH_LIMIT: Duration = Duration::from_millis(500);

/// Attaches to a process, traces it until it ends or the deadline passes, and lets it go.
pub(super) fn trace(
    pid: u32,
    options: Options,
    sink: &mut dyn FnMut(&Event<'_>),
) -> Result<Summary, Refusal> {
    if pid == std::process::id() {
        return Err(Refusal::new("gpudx cannot trace itself"));
    }
    let mut tracer = Tracer::new(pid, Mode::EveryCall, options, sink);
    attach(pid, &mut tracer)?;
    tracer::prepare();
    tracer.tell(&Event::Started { pid, launched: false });
    for remark in image::remarks(pid) {
        tracer.note(remark);
    }
    for tid in tracer.tasks.ids() {
        tell_where(pid, tid, &mut tracer);
    }
    for tid in tracer.tasks.ids() {
        // A thread that is gone tells so itself.
        let _ = ptrace::interrupt(tid);
    }
    let ended = tracer.serve();
    if matches!(ended, Ended::Deadline | Ended::Asked) {
        tracer.look_at_stacks();
        tracer.tell_unreturned();
        let_go(&mut tracer);
    }
    Ok(tracer.finish(ended, Vec::new()))
}

fn attach(pid: u32, tracer: &mut Tracer<'_>) -> Result<(), Refusal> {
    for _ in 0..ROUNDS {
        let known = tracer.tasks.ids();
        let new: Vec<u32> = threads(pid).into_iter().filter(|tid| !known.contains(tid)).collect();
        if new.is_empty() && !known.is_empty() {
            break;
        }
        for tid in new {
            match ptrace::seize(tid, false) {
                Ok(()) => tracer.tasks.add(tid, pid),
                // A thread may have ended since it was listed.
                Err(Errno(libc::ESRCH)) if tid != pid => {}
                Err(errno) if known.is_empty() && tid == pid => {
                    return Err(Refusal::of(pid, errno));
                }
                // A thread that was made meanwhile by one that is traced is traced already.
                Err(_) => {}
            }
        }
    }
    if tracer.tasks.ids().is_empty() {
        return Err(Refusal::of(pid, Errno(libc::ESRCH)));
    }
    Ok(())
}

/// All threads of a process, the leader first.
fn threads(pid: u32) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let names = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut threads: Vec<u32> = names.collect();
    threads.sort_by_key(|tid| (*tid != pid, *tid));
    threads
}

/// Tells the driver call that a thread is in. One that the kernel holds there never stops for the
/// tracer, and /proc is all that there is to see of it.
fn tell_where(pid: u32, tid: u32, tracer: &mut Tracer<'_>) {
    let line = proc_task::file(pid, tid, "syscall").unwrap_or_default();
    if let Some(call) = task_syscall::parse(&line).and_then(InCall::call) {
        tracer.found_inside(tid, call.number.into(), call.arguments);
    }
}

/// Lets all threads go. A request to detach needs a stopped thread.
fn let_go(tracer: &mut Tracer<'_>) {
    for tid in tracer.tasks.ids() {
        if tracer.tasks.is_held(tid) && ptrace::detach(tid, 0).is_ok() {
            tracer.tasks.remove(tid);
        } else {
            // One that is gone tells so itself.
            let _ = ptrace::interrupt(tid);
        }
    }
    let deadline = Instant::now() + DETACH_LIMIT;
    while !tracer.tasks.ids().is_empty() {
        match ptrace::stop_before(deadline) {
            Ok(Some((tid, stop))) => {
                let signal = if let Stop::Signal(signal) = stop { signal } else { 0 };
                if !matches!(stop, Stop::Exited(_) | Stop::Killed(_)) {
                    // One that SIGKILL took meanwhile needs no letting go.
                    let _ = ptrace::detach(tid, signal);
                }
                tracer.tasks.remove(tid);
            }
            Ok(None) | Err(_) => return,
        }
    }
}
