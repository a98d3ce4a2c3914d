//! Reads of /proc about another process that cannot block.
//!
//! `stat`, `status`, `wchan`, `syscall`, `stack`, `sched` and the links under `fd` take no lock
//! that a task stuck in a driver can hold. `cmdline`, `environ`, `maps` and their like wait for the
//! task's memory lock, which a call into a driver may hold for ever, so this module has no function
//! for them.

use std::fs::File;
use std::io::Read;

use facts::Errno;
use facts::parse::task_stat::{self, TaskStat};
use facts::parse::task_syscall::{self, Around, Machine};

use crate::sys::errno_of;

/// Most threads of one process that are looked at; CUDA's own number about a dozen.
pub(crate) const THREADS_LIMIT: usize = 64;
/// Longest file that is read: a kernel stack of 64 frames.
const READ_LIMIT: u64 = 8 * 1024;
/// Most descriptors of one process that are followed.
const DESCRIPTORS_LIMIT: usize = 4096;
/// Longest sleep that is told, in seconds: ten years.
const LONGEST_SLEEP_S: f64 = 3.2e8;

/// The threads of a process, the leader first.
pub(crate) fn threads(pid: u32) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let names = entries.flatten().take(THREADS_LIMIT).map(|entry| entry.file_name());
    names.filter_map(|name| name.to_str()?.parse().ok()).collect()
}

/// One file of a thread, such as `wchan`.
pub(crate) fn file(pid: u32, tid: u32, name: &str) -> Result<String, Errno> {
    let read = || {
        let mut text = Vec::new();
        let file = File::open(format!("/proc/{pid}/task/{tid}/{name}"))?;
        file.take(READ_LIMIT).read_to_end(&mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    };
    read().map_err(|error: std::io::Error| errno_of(&error))
}

/// What a descriptor of a process leads to.
pub(crate) fn descriptor(pid: u32, fd: u64) -> Option<String> {
    let link = std::fs::read_link(format!("/proc/{pid}/fd/{fd}")).ok()?;
    Some(link.to_string_lossy().into_owned())
}

/// The descriptors of a process that lead to a node of the driver, with their targets.
pub(crate) fn driver_descriptors(pid: u32) -> Result<Vec<(u64, String)>, Errno> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).map_err(|error| errno_of(&error))?;
    let numbers = entries.flatten().take(DESCRIPTORS_LIMIT);
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<u64>().ok());
    let link = |number: u64| {
        let target = descriptor(pid, number)?;
        facts::parse::strace::driver_call::Node::of(&target)?;
        Some((number, target))
    };
    Ok(numbers.filter_map(link).collect())
}

/// A thread's state and times.
pub(crate) fn stat(pid: u32, tid: u32) -> Option<TaskStat> {
    task_stat::stat(&file(pid, tid, "stat").ok()?)
}

/// A thread's name.
pub(crate) fn name(pid: u32) -> Option<String> {
    file(pid, pid, "comm").ok().map(|name| name.trim().to_owned())
}

/// Whose numbers system calls have here.
pub(crate) const MACHINE: Machine =
    if cfg!(target_arch = "aarch64") { Machine::Aarch64 } else { Machine::X86_64 };

/// The system call that a line of `syscall` names, in words; `None` where it names none.
pub(crate) fn call_in_words(
    line: &str,
    pid: u32,
    memory: &mut dyn FnMut(u64, usize) -> Option<Vec<u8>>,
) -> Option<String> {
    let call = task_syscall::parse(line)?.call()?;
    let descriptor = |fd| descriptor(pid, fd);
    Some(call.words(&mut Around { machine: MACHINE, descriptor: &descriptor, memory }))
}

/// Seconds since a thread last ran: by the scheduler's clock, against that of this thread, which
/// runs now. `None` on kernels that do not tell.
pub(crate) fn asleep_s(pid: u32, tid: u32) -> Option<f64> {
    let last_ran = |text: &str| {
        let line = text.lines().find(|line| line.starts_with("se.exec_start"))?;
        line.rsplit(':').next()?.trim().parse::<f64>().ok()
    };
    let own = std::fs::read_to_string("/proc/thread-self/sched").ok()?;
    let milliseconds = last_ran(&own)? - last_ran(&file(pid, tid, "sched").ok()?)?;
    let seconds = milliseconds / 1000.0;
    (0.0..LONGEST_SLEEP_S).contains(&seconds).then(|| (seconds * 100.0).round() / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_can_be_looked_at() {
        let pid = std::process::id();
        assert!(threads(pid).contains(&pid));
        assert!(stat(pid, pid).is_some());
        assert!(driver_descriptors(pid).is_ok());
        let mut nothing = |_, _| None;
        assert_eq!(call_in_words("running", pid, &mut nothing), None);
    }
}
