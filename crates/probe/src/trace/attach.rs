//! Tracing a process that runs already.

use std::time::{Duration, Instant};

use facts::Errno;

use super::Options;
use super::event::Event;
use super::image;
use super::refusal::Refusal;
use super::summary::{Ended, Summary};
use super::tracer::{Mode, Tracer};
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
    tracer.tell(&Event::Started { pid, launched: false });
    for remark in image::remarks(pid) {
        tracer.note(remark);
    }
    for tid in tracer.thread_ids() {
        tell_where(pid, tid, &mut tracer);
    }
    for tid in tracer.thread_ids() {
        // A thread that is gone tells so itself.
        let _ = ptrace::interrupt(tid);
    }
    let ended = tracer.serve();
    if matches!(ended, Ended::Deadline | Ended::Asked) {
        tracer.tell_unreturned();
        let_go(&mut tracer);
    }
    Ok(tracer.finish(ended, Vec::new()))
}

fn attach(pid: u32, tracer: &mut Tracer<'_>) -> Result<(), Refusal> {
    for _ in 0..ROUNDS {
        let known = tracer.thread_ids();
        let new: Vec<u32> = threads(pid).into_iter().filter(|tid| !known.contains(tid)).collect();
        if new.is_empty() && !known.is_empty() {
            break;
        }
        for tid in new {
            match ptrace::seize(tid, false) {
                Ok(()) => tracer.add(tid, pid),
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
    if tracer.thread_ids().is_empty() {
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
    let line = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/syscall"));
    let Ok(line) = line else { return };
    let mut words = line.split_ascii_whitespace();
    let number = words.next().and_then(|word| word.parse::<i64>().ok());
    let mut arguments =
        words.filter_map(|word| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok());
    let three = (arguments.next(), arguments.next(), arguments.next());
    if let (Some(libc::SYS_ioctl), (Some(fd), Some(request), Some(address))) = (number, three) {
        tracer.found_inside(tid, fd, request, address);
    }
}

/// Lets all threads go. A request to detach needs a stopped thread.
fn let_go(tracer: &mut Tracer<'_>) {
    for tid in tracer.thread_ids() {
        if tracer.is_held(tid) && ptrace::detach(tid, 0).is_ok() {
            tracer.remove(tid);
        } else {
            // One that is gone tells so itself.
            let _ = ptrace::interrupt(tid);
        }
    }
    let deadline = Instant::now() + DETACH_LIMIT;
    while !tracer.thread_ids().is_empty() {
        match ptrace::next_stop() {
            Ok(Some((tid, stop))) => {
                let signal = if let Stop::Signal(signal) = stop { signal } else { 0 };
                if !matches!(stop, Stop::Exited(_) | Stop::Killed(_)) {
                    // One that SIGKILL took meanwhile needs no letting go.
                    let _ = ptrace::detach(tid, signal);
                }
                tracer.remove(tid);
            }
            Ok(None) => {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return;
                }
                ptrace::wait(left);
            }
            Err(_) => return,
        }
    }
}
