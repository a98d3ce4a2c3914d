//! Reads of /proc about another process that cannot block.
//!
//! `stat`, `wchan`, `syscall`, `stack` and the links under `fd` take no lock that a stuck task can
//! hold. `cmdline`, `environ`, `maps` and their like wait for the task's memory lock, which a call
//! into a driver may hold for ever, so this module has no function for them.

use std::fs::File;
use std::io::Read;

use facts::Errno;

use crate::sys::errno_of;

/// Most threads that are looked at; CUDA's own number about a dozen.
const THREADS_LIMIT: usize = 64;
/// Longest file that is read: a kernel stack of 64 frames.
const READ_LIMIT: u64 = 8 * 1024;

/// The fields of a thread's `stat` that matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TaskStat {
    /// State letter.
    pub(super) state: char,
    /// User time in clock ticks.
    pub(super) user_ticks: u64,
    /// System time in clock ticks.
    pub(super) system_ticks: u64,
}

/// The threads of a process, the leader first.
pub(super) fn threads(pid: u32) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let names = entries.flatten().take(THREADS_LIMIT).map(|entry| entry.file_name());
    names.filter_map(|name| name.to_str()?.parse().ok()).collect()
}

/// One file of a thread, such as `wchan`.
pub(super) fn file(pid: u32, tid: u32, name: &str) -> Result<String, Errno> {
    let read = || {
        let mut text = Vec::new();
        let file = File::open(format!("/proc/{pid}/task/{tid}/{name}"))?;
        file.take(READ_LIMIT).read_to_end(&mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    };
    read().map_err(|error: std::io::Error| errno_of(&error))
}

/// What a descriptor of a process leads to.
pub(super) fn descriptor(pid: u32, fd: u64) -> Option<String> {
    let link = std::fs::read_link(format!("/proc/{pid}/fd/{fd}")).ok()?;
    Some(link.to_string_lossy().into_owned())
}

/// A thread's state and times.
pub(super) fn stat(pid: u32, tid: u32) -> Option<TaskStat> {
    parse_stat(&file(pid, tid, "stat").ok()?)
}

/// A thread's name.
pub(super) fn name(pid: u32) -> Option<String> {
    file(pid, pid, "comm").ok().map(|name| name.trim().to_owned())
}

/// Reads the line of `stat`. The name in parentheses may itself hold parentheses and spaces, so
/// the fields count from the last closing one: state is the third field of the line, the times
/// are the 14th and 15th (proc_pid_stat(5)).
fn parse_stat(line: &str) -> Option<TaskStat> {
    let (_, fields) = line.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    let mut times = fields.skip(10).map(str::parse::<u64>);
    Some(TaskStat { state, user_ticks: times.next()?.ok()?, system_ticks: times.next()?.ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let line = "7 (a) S b) R 1 7 7 0 -1 4194304 12 0 0 0 31 17 0 0 20 0 1 0 99 0";
        let expected = TaskStat { state: 'R', user_ticks: 31, system_ticks: 17 };
        assert_eq!(parse_stat(line), Some(expected));
        assert_eq!(parse_stat("7 (a"), None);
    }

    #[test]
    fn this_process_can_be_looked_at() {
        let pid = std::process::id();
        assert!(threads(pid).contains(&pid));
        assert!(stat(pid, pid).is_some());
    }
}
