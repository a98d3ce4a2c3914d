//! One child on its way from start to end.

use std::ffi::{CString, OsString};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use facts::Errno;
use facts::wire::{End, Outcome, Record, Stuck};

use super::records::{self, Unpacked, size_text};
use super::sample::{self, Sample};
use super::{ChildSpec, Finished, GRACE, KILL_WAIT, SAMPLE_INTERVAL, Waiting};
use crate::sys::process::{self, Ended, Signal};
use crate::sys::{pipe, spawn};

/// Most bytes taken from one pipe at one look, so that a flood does not starve the other children.
const READ_AT_ONCE: usize = 1 << 20;
/// How much of the end of standard error is kept.
const STDERR_TAIL_BYTES: usize = 4096;

/// What a look at a child found.
pub(super) enum Step {
    /// It goes on.
    Goes,
    /// It is done with.
    Done(Ending),
}

/// How a child came to be done with.
#[derive(Clone, Copy)]
pub(super) enum Ending {
    /// It has ended and was reaped.
    Ended(Ended),
    /// SIGKILL was sent and it is still there.
    Abandoned,
}

/// Why the supervisor ended a child.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EndedFor {
    Deadline,
    Flood,
    /// Nobody waits for it any more.
    NoUse,
}

/// Where a child is on its way.
enum Phase {
    Running,
    /// The first of two looks was taken; the second follows at the deadline.
    Sampled(Sample),
    /// SIGTERM was sent.
    Terminated(Instant),
    /// SIGKILL was sent.
    Killed(Instant),
}

/// A running child.
pub(super) struct Child {
    spec: ChildSpec,
    pid: u32,
    started: Instant,
    deadline: Instant,
    pidfd: Option<OwnedFd>,
    output: Stream,
    errors: Stream,
    phase: Phase,
    ended_for: Option<EndedFor>,
    last_sample: Option<Sample>,
    stuck: Option<Stuck>,
    notes: Vec<String>,
}

/// The reading end of a pipe and what came through it.
struct Stream {
    file: Option<File>,
    bytes: Vec<u8>,
    /// Bytes that came, those that were dropped among them.
    total: usize,
}

impl Child {
    /// Starts a child that may take its own limit, or what is left if that is less.
    pub(super) fn start(spec: &ChildSpec, left: Duration) -> Result<Child, Errno> {
        let output = pipe::pipe()?;
        // Standard error only explains; where descriptors are short it goes without.
        let errors = pipe::pipe().ok();
        let pid =
            spawn_image(spec, output.write.as_fd(), errors.as_ref().map(|p| p.write.as_fd()))?;
        drop(output.write);
        let errors = errors.map(|errors| errors.read);
        let started = Instant::now();
        Ok(Child {
            spec: spec.clone(),
            pid,
            started,
            deadline: started + spec.limit.min(left),
            pidfd: process::pidfd(pid).ok(),
            output: Stream::new(Some(output.read)),
            errors: Stream::new(errors),
            phase: Phase::Running,
            ended_for: None,
            last_sample: None,
            stuck: None,
            notes: Vec::new(),
        })
    }

    /// For a status line.
    pub(super) fn waiting(&self, now: Instant) -> Waiting {
        Waiting {
            probe: self.spec.probe.clone(),
            trial: self.spec.trial,
            elapsed: now.saturating_duration_since(self.started),
            limit: self.deadline.saturating_duration_since(self.started),
        }
    }

    /// True when no descriptor tells of its end.
    pub(super) fn is_blind(&self) -> bool {
        self.pidfd.is_none()
    }

    /// When to look again, whatever the descriptors say.
    pub(super) fn next_look(&self) -> Instant {
        match self.phase {
            Phase::Running => self.deadline.checked_sub(SAMPLE_INTERVAL).unwrap_or(self.deadline),
            Phase::Sampled(_) => self.deadline,
            Phase::Terminated(at) => at + GRACE,
            Phase::Killed(at) => at + KILL_WAIT,
        }
    }

    /// The descriptors that tell when something has happened.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let streams = [&self.output, &self.errors].into_iter();
        let streams = streams.filter_map(|stream| stream.file.as_ref().map(AsFd::as_fd));
        streams.chain(self.pidfd.as_ref().map(AsFd::as_fd))
    }

    /// Takes what has come, notices an end, and acts on the time.
    pub(super) fn look(&mut self, now: Instant) -> Step {
        self.take_output();
        if let Ok(Some(ended)) = process::peek_end(self.pid) {
            self.clean_up();
            return Step::Done(Ending::Ended(ended));
        }
        if self.is_flooding() && self.ended_for.is_none() {
            self.ended_for = Some(EndedFor::Flood);
            self.kill(now);
        }
        if now >= self.next_look() && self.advance(now) {
            return Step::Done(Ending::Abandoned);
        }
        Step::Goes
    }

    /// One step further; true when there is none left.
    fn advance(&mut self, now: Instant) -> bool {
        match std::mem::replace(&mut self.phase, Phase::Running) {
            Phase::Running => {
                let first = sample::sample(self.pid);
                if sample::is_stopped(&first) {
                    self.notes.push("stopped itself".to_owned());
                }
                self.phase = Phase::Sampled(first);
            }
            Phase::Sampled(first) => {
                let second = sample::sample(self.pid);
                self.stuck = Some(sample::stuck(self.pid, &first, &second));
                self.notes.extend(sample::waited_for(self.pid));
                self.last_sample = Some(second);
                self.ended_for = self.ended_for.or(Some(EndedFor::Deadline));
                process::signal_group(self.pid, Signal::Terminate);
                self.phase = Phase::Terminated(now);
            }
            Phase::Terminated(_) => self.kill(now),
            Phase::Killed(at) => {
                self.phase = Phase::Killed(at);
                self.look_a_last_time();
                return true;
            }
        }
        false
    }

    /// Sends SIGKILL to the child's group.
    pub(super) fn kill(&mut self, now: Instant) {
        self.ended_for = self.ended_for.or(Some(EndedFor::NoUse));
        process::signal_group(self.pid, Signal::Kill);
        self.phase = Phase::Killed(now);
    }

    /// A child that SIGKILL did not end: only the threads that could not be ended are left, so
    /// where it is now is surer than where it was at its deadline. The shares and the call stay,
    /// where the later look has none.
    fn look_a_last_time(&mut self) {
        let now = sample::sample(self.pid);
        let before = self.last_sample.take().unwrap_or_else(|| now.clone());
        let mut last = sample::stuck(self.pid, &before, &now);
        if let Some(first) = self.stuck.take() {
            last.call = last.call.or(first.call);
            last.user_share = first.user_share;
            last.system_share = first.system_share;
        }
        self.stuck = Some(last);
    }

    fn take_output(&mut self) {
        self.output.take(self.spec.output_limit_bytes);
        self.errors.take_tail();
    }

    fn is_flooding(&self) -> bool {
        self.output.total.max(self.errors.total) > self.spec.output_limit_bytes
    }

    /// The child has ended but is not reaped yet, so its number still names its group: ends what it
    /// left behind there, and takes what is in the pipes. What it wrote is there already; the end
    /// of the pipe is not waited for.
    fn clean_up(&mut self) {
        self.take_output();
        if self.output.file.is_some() || self.errors.file.is_some() {
            self.notes.push("pipe still held by a grandchild".to_owned());
        }
        process::signal_group(self.pid, Signal::Kill);
        let _ = process::reap(self.pid);
    }

    /// The result.
    pub(super) fn finish(mut self, ending: Ending) -> Finished {
        let seconds = self.started.elapsed().as_secs_f64();
        let taken_at = seconds_since_epoch();
        if let Some(errno) = failed_exec(&self.output.bytes) {
            let end = super::not_started(Some(errno), &format!("could not be started: {errno}"));
            return without_output(&self.spec, end);
        }
        let mut unpacked = records::unpack(&self.output.bytes, taken_at);
        unpacked.begin_with(&self.spec.notes);
        let (outcome, code) = self.outcome(ending, &unpacked);
        if matches!(outcome, Outcome::TimedOut | Outcome::Unkillable) {
            unpacked.add_timed_out_file();
        }
        self.explain(outcome);
        if !self.errors.bytes.is_empty() {
            let value = String::from_utf8_lossy(&self.errors.bytes).into_owned();
            unpacked.push(&Record::Note { key: "stderr".to_owned(), value });
        }
        let end = End {
            outcome,
            code,
            seconds: (seconds * 1e6).round() / 1e6,
            pid: Some(self.pid),
            stuck: self.stuck.filter(|_| !self.spec.traced),
            notes: self.notes,
            traced: self.spec.traced,
        };
        finished(&self.spec, end, unpacked, taken_at)
    }

    fn outcome(&self, ending: Ending, unpacked: &Unpacked) -> (Outcome, Option<i32>) {
        let ended = match ending {
            Ending::Abandoned => return (Outcome::Unkillable, None),
            Ending::Ended(ended) => ended,
        };
        let whole = unpacked.done && unpacked.unreadable == 0;
        match (self.ended_for, ended) {
            (Some(EndedFor::Deadline | EndedFor::NoUse), _) => (Outcome::TimedOut, None),
            (None, Ended::Signaled(signal)) => (Outcome::Crashed, Some(signal)),
            (None, Ended::ReapedElsewhere) if whole => (Outcome::Returned, None),
            (Some(EndedFor::Flood), _) | (None, Ended::ReapedElsewhere) => {
                (Outcome::Malformed, None)
            }
            (None, Ended::Exited(status)) if whole => (Outcome::Returned, Some(status)),
            (None, Ended::Exited(status)) => (Outcome::Malformed, Some(status)),
        }
    }

    /// Adds particulars that the outcome alone does not tell.
    fn explain(&mut self, outcome: Outcome) {
        let limit = self.deadline.saturating_duration_since(self.started).as_secs_f64();
        match self.ended_for {
            Some(EndedFor::Deadline) => self.notes.push(format!("limit {limit:.1} s")),
            Some(EndedFor::Flood) => {
                let limit = size_text(self.spec.output_limit_bytes);
                self.notes.push(format!("output cut at {limit}"));
            }
            Some(EndedFor::NoUse) | None => {}
        }
        if outcome == Outcome::Unkillable {
            self.notes.push(format!("process {} is left behind", self.pid));
        }
    }
}

impl Stream {
    fn new(end: Option<OwnedFd>) -> Stream {
        Stream { file: end.map(File::from), bytes: Vec::new(), total: 0 }
    }

    /// Takes what is there, up to the limit; what comes beyond it is counted and dropped.
    fn take(&mut self, limit: usize) {
        self.read(|bytes, chunk| {
            let room = limit.saturating_sub(bytes.len());
            bytes.extend_from_slice(chunk.get(..room).unwrap_or(chunk));
        });
    }

    /// Takes what is there and keeps its end.
    fn take_tail(&mut self) {
        self.read(|bytes, chunk| {
            bytes.extend_from_slice(chunk);
            let surplus = bytes.len().saturating_sub(STDERR_TAIL_BYTES);
            bytes.drain(..surplus);
        });
    }

    /// Reads until there is nothing more for now. At the end of the pipe the file is closed.
    fn read(&mut self, mut keep: impl FnMut(&mut Vec<u8>, &[u8])) {
        let Some(file) = &mut self.file else { return };
        let mut buffer = [0_u8; 16 * 1024];
        let mut left = READ_AT_ONCE;
        while left > 0 {
            match file.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => {
                    keep(&mut self.bytes, buffer.get(..count).unwrap_or_default());
                    self.total += count;
                    left = left.saturating_sub(count);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => break,
            }
        }
        if left > 0 {
            self.file = None;
        }
    }
}

/// The result of a child that never ran.
pub(super) fn without_output(spec: &ChildSpec, end: End) -> Finished {
    let mut unpacked = Unpacked::default();
    unpacked.begin_with(&spec.notes);
    finished(spec, end, unpacked, seconds_since_epoch())
}

fn finished(spec: &ChildSpec, end: End, mut unpacked: Unpacked, taken_at: Option<u64>) -> Finished {
    unpacked.push(&Record::End(Box::new(end.clone())));
    let items = unpacked.into_items(&spec.probe, spec.trial, taken_at);
    Finished { probe: spec.probe.clone(), trial: spec.trial, end, items }
}

/// The errno of an exec that failed, which is all that such a child writes.
fn failed_exec(output: &[u8]) -> Option<Errno> {
    let errno = output.strip_prefix(&[spawn::EXEC_FAILED_MARK])?.first_chunk()?;
    Some(Errno(i32::from_le_bytes(*errno)))
}

fn seconds_since_epoch() -> Option<u64> {
    SystemTime::now().duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs())
}

fn spawn_image(
    spec: &ChildSpec,
    stdout: BorrowedFd<'_>,
    stderr: Option<BorrowedFd<'_>>,
) -> Result<u32, Errno> {
    let program = spec.program.clone().unwrap_or_else(own_binary);
    let program = CString::new(program.into_os_string().into_vec()).map_err(|_| Errno::EINVAL)?;
    let arguments: Option<Vec<CString>> = [OsString::from("gpudx")]
        .iter()
        .chain(&spec.arguments)
        .map(|argument| CString::new(argument.as_bytes()).ok())
        .collect();
    let image = spawn::Image {
        program: &program,
        arguments: &arguments.ok_or(Errno::EINVAL)?,
        environment: &environment(&spec.environment, &spec.without),
        stdout,
        stderr,
    };
    spawn::spawn(&image)
}

/// This process's variables with some set anew and some left out. Names and values need not be
/// UTF-8.
fn environment(set: &[(OsString, OsString)], without: &[OsString]) -> Vec<CString> {
    let inherited = std::env::vars_os()
        .filter(|(name, _)| !set.iter().any(|(other, _)| other == name) && !without.contains(name));
    let line = |(name, value): (OsString, OsString)| {
        CString::new([name.as_bytes(), b"=", value.as_bytes()].concat()).ok()
    };
    inherited.chain(set.iter().cloned()).filter_map(line).collect()
}

/// The binary that runs now. The link of /proc leads to it even after it was replaced by an
/// upgrade; without /proc, the name that it was started by has to do.
fn own_binary() -> PathBuf {
    let link = Path::new("/proc/self/exe");
    if std::fs::symlink_metadata(link).is_ok() {
        return link.to_owned();
    }
    let started_as = std::env::args_os().next().map(PathBuf::from).unwrap_or_default();
    if started_as.components().count() > 1 {
        return started_as;
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let mut candidates = std::env::split_paths(&folders).map(|folder| folder.join(&started_as));
    candidates.find(|path| path.is_file()).unwrap_or(started_as)
}
