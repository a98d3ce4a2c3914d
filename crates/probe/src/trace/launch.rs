//! Tracing a program from its start.

use std::ffi::{CString, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

use facts::Errno;

use super::event::Event;
use super::refusal::Refusal;
use super::summary::{Ended, Summary};
use super::tracer::{self, Mode, Tracer};
use super::{Options, awake, image};
use crate::sys::ptrace::{self, Stop};
use crate::sys::traced::{self, Told};

/// How long the start may take. The child has only to wake up and to execute.
const START_LIMIT: Duration = Duration::from_secs(10);
/// How long SIGKILL may take.
const KILL_LIMIT: Duration = Duration::from_secs(1);

/// Starts the program under the tracer and traces it to its end.
pub(super) fn trace(
    command: &[OsString],
    options: Options,
    sink: &mut dyn FnMut(&Event<'_>),
) -> Result<Summary, Refusal> {
    let pid = start(command)?;
    let mut tracer = Tracer::new(pid.number, Mode::Filter, options, sink);
    if let Some(errno) = pid.no_filter {
        tracer.mode = Mode::EveryCall;
        tracer.note(format!("no seccomp filter can be set ({errno}): every system call stops"));
    }
    tracer.tell(&Event::Started { pid: pid.number, launched: true });
    tracer.tasks.add(pid.number, pid.number);
    tracer.serve_stop(pid.number, Stop::Executed(pid.number));
    let ended = tracer.serve();
    let left_behind = match ended {
        Ended::Deadline | Ended::Asked => end(&mut tracer),
        Ended::Exited(_) | Ended::Killed(_) | Ended::Gone => Vec::new(),
    };
    Ok(tracer.finish(ended, left_behind))
}

/// A program that has just been executed and is stopped.
struct Started {
    number: u32,
    no_filter: Option<Errno>,
}

fn start(command: &[OsString]) -> Result<Started, Refusal> {
    let name = command.first().ok_or_else(|| Refusal::new("there is no command to trace"))?;
    let shown = name.display();
    let program = image::find(name)
        .ok_or_else(|| Refusal::new(format!("{shown}: no such program in the folders of PATH")))?;
    let text = |word: &OsString| CString::new(word.as_bytes()).ok();
    let arguments: Option<Vec<CString>> = command.iter().map(text).collect();
    let arguments = arguments.ok_or_else(|| Refusal::new("an argument holds a zero byte"))?;
    let environment: Vec<CString> = std::env::vars_os()
        .filter_map(|(name, value)| {
            CString::new([name.as_bytes(), b"=", value.as_bytes()].concat()).ok()
        })
        .collect();
    let waiting = traced::start(&program, &arguments, &environment)
        .map_err(|errno| Refusal::new(format!("no process can be made: {errno}")))?;
    let number = waiting.pid;
    if let Err(errno) = ptrace::seize(number, true) {
        // Dropping its pipe ends it.
        return Err(Refusal::of(number, errno));
    }
    let report = waiting.go();
    // The program's execution takes longer than this.
    tracer::prepare();
    let told = until_executed(number, &report)
        .ok_or_else(|| Refusal::new(format!("{shown} did not start in time")))?;
    match told.no_exec {
        Some(errno) => Err(Refusal::new(format!("{shown} cannot be run: {errno}"))),
        None => Ok(Started { number, no_filter: told.no_filter }),
    }
}

/// Waits until the child has executed the program or has failed to; `None` when it does neither.
fn until_executed(pid: u32, report: &OwnedFd) -> Option<Told> {
    let deadline = Instant::now() + START_LIMIT;
    loop {
        match awake::look(|| ptrace::next_stop().transpose()) {
            Some(Ok((tid, Stop::Executed(_)))) if tid == pid => return Some(traced::told(report)),
            Some(Ok((tid, Stop::Exited(_) | Stop::Killed(_)))) if tid == pid => {
                let mut told = traced::told(report);
                told.no_exec = told.no_exec.or(Some(Errno::EIO));
                return Some(told);
            }
            Some(Ok((tid, stop))) => {
                let signal = if let Stop::Signal(signal) = stop { signal } else { 0 };
                // One that is gone tells so itself.
                let _ = ptrace::resume(tid, ptrace::Resume::Run, signal);
            }
            None => {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() || ptrace::wait(left) == ptrace::Woken::Request {
                    ptrace::kill(pid);
                    return None;
                }
            }
            Some(Err(_)) => return Some(Told { no_exec: Some(Errno::EIO), ..Told::default() }),
        }
    }
}

/// Ends what was launched, with all that it has started; tells who SIGKILL does not end.
fn end(tracer: &mut Tracer<'_>) -> Vec<u32> {
    tracer.look_at_stacks();
    tracer.tell_unreturned();
    let deadline = Instant::now() + KILL_LIMIT;
    for process in tracer.tasks.processes() {
        ptrace::kill(process);
    }
    while !tracer.tasks.processes().is_empty() {
        match ptrace::stop_before(deadline) {
            Ok(Some((tid, stop))) => {
                // What was made while the others were being killed.
                if !tracer.tasks.processes().contains(&tid) {
                    ptrace::kill(tid);
                }
                tracer.serve_stop(tid, stop);
            }
            Ok(None) => break,
            Err(_) => return Vec::new(),
        }
    }
    tracer.tasks.processes().into_iter().collect()
}
