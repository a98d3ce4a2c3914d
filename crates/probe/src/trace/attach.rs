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
    let line = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/syscall"));
    let Ok(line) = line else { return };
    if let Some((number, arguments)) = in_call(&line) {
        tracer.found_inside(tid, number, arguments);
    }
}

/// The call and its arguments in a line of /proc/PID/syscall: the number in decimal, then six
/// arguments in hexadecimal, the stack and the place. A thread that runs, or waits in no call, has
/// none.
fn in_call(line: &str) -> Option<(u64, [u64; 6])> {
    let mut words = line.split_ascii_whitespace();
    let number = words.next()?.parse().ok()?;
    let mut arguments = [0; 6];
    for argument in &mut arguments {
        *argument = u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
    }
    Some((number, arguments))
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
        match ptrace::next_stop() {
            Ok(Some((tid, stop))) => {
                let signal = if let Stop::Signal(signal) = stop { signal } else { 0 };
                if !matches!(stop, Stop::Exited(_) | Stop::Killed(_)) {
                    // One that SIGKILL took meanwhile needs no letting go.
                    let _ = ptrace::detach(tid, signal);
                }
                tracer.tasks.remove(tid);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_call_of_a_thread_is_read_from_its_line() {
        let line = "16 0x3 0xc020462a 0x7ffd0010 0x0 0x8 0x0 0x7ffd0000 0x7f0011\n";
        assert_eq!(in_call(line), Some((16, [3, 0xc020_462a, 0x7ffd_0010, 0, 8, 0])));
        for line in ["running\n", "-1 0x7ffd0000 0x7f0011\n", "", "16 0x3\n"] {
            assert_eq!(in_call(line), None, "{line}");
        }
    }
}
