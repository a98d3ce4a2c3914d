//! Where a child is stuck: two looks at its threads a moment apart, and one at the thread that
//! tells most.

use std::time::Instant;

use facts::Errno;
use facts::parse::task_stat::{self, TaskStat};
use facts::wire::Stuck;

use crate::proc_task;
use crate::sys::process::clock_ticks_per_second;
use crate::trace::memory::{Care, Memory};

/// One look at the threads of a process.
#[derive(Debug, Clone)]
pub(super) struct Sample {
    at: Instant,
    threads: Vec<Look>,
}

/// One look at a thread.
#[derive(Debug, Clone)]
struct Look {
    stat: TaskStat,
    /// How often it went off a processor so far.
    switches: Option<u64>,
}

/// Looks at the threads now.
pub(super) fn sample(pid: u32) -> Sample {
    let look = |tid| {
        let status = proc_task::file(pid, tid, "status").unwrap_or_default();
        let switches = task_stat::status(&status).switches;
        Some(Look { stat: proc_task::stat(pid, tid)?, switches })
    };
    let threads = proc_task::threads(pid).into_iter().filter_map(look).collect();
    Sample { at: Instant::now(), threads }
}

/// True when every thread is stopped by a signal.
pub(super) fn is_stopped(sample: &Sample) -> bool {
    !sample.threads.is_empty() && sample.threads.iter().all(|look| look.stat.state == 'T')
}

/// Joins two looks to what a reader wants to know.
pub(super) fn stuck(pid: u32, first: &Sample, second: &Sample) -> Stuck {
    // One for all threads: where a read is not answered, no further one is made.
    let mut memory = Memory::default();
    let looks = second.threads.iter();
    let mut candidates: Vec<Thread> =
        looks.map(|look| look_closer(pid, look, first, &mut memory)).collect();
    candidates.sort_by_key(Thread::telling);
    let Some(thread) = candidates.pop() else {
        let not_readable = vec!["/proc of the child".to_owned()];
        return Stuck { pid, tid: pid, state: "?".to_owned(), not_readable, ..Stuck::default() };
    };
    let (user_share, system_share) = shares(&candidates, &thread, first, second);
    let mut found = Stuck {
        pid,
        tid: thread.tid,
        name: Some(thread.stat.name),
        state: thread.stat.state.to_string(),
        call: thread.call,
        system_share,
        user_share,
        switches: thread.switches,
        asleep_s: proc_task::asleep_s(pid, thread.tid).filter(|_| thread.stat.state != 'R'),
        descriptors: nodes_of(pid),
        not_readable: thread.not_readable,
        ..Stuck::default()
    };
    read_kernel_side(&mut found);
    found
}

/// The driver's nodes that a process holds open, each once.
fn nodes_of(pid: u32) -> Vec<String> {
    let held = proc_task::driver_descriptors(pid).unwrap_or_default();
    let mut nodes: Vec<String> = held.into_iter().map(|(_, node)| node).collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

/// A thread with what its `syscall` says.
struct Thread {
    tid: u32,
    leads: bool,
    stat: TaskStat,
    /// Clock ticks used between the looks: user, system.
    used: (u64, u64),
    /// How often it went off a processor between the looks.
    switches: Option<u64>,
    call: Option<String>,
    not_readable: Vec<String>,
}

impl Thread {
    /// How much the thread tells: the leader is often innocent, a call on a driver's node is what
    /// is looked for, and a task in state D comes before one that works and one that sleeps.
    fn telling(&self) -> u32 {
        let call = self.call.as_deref().unwrap_or("");
        let on_driver = call.contains(" on /dev/nvidia") || call.contains("/proc/driver/nvidia");
        let state = match self.stat.state {
            'D' => 4,
            'R' if self.used != (0, 0) => 3,
            'R' => 2,
            'Z' | 'X' => 0,
            _ => 1,
        };
        u32::from(on_driver) * 16 + state * 2 + u32::from(self.leads)
    }
}

fn look_closer(pid: u32, look: &Look, first: &Sample, memory: &mut Memory) -> Thread {
    let (stat, tid) = (look.stat.clone(), look.stat.id);
    let before = first.threads.iter().find(|before| before.stat.id == tid);
    let used = before.map_or((0, 0), |before| {
        (
            stat.user_ticks.saturating_sub(before.stat.user_ticks),
            stat.system_ticks.saturating_sub(before.stat.system_ticks),
        )
    });
    let switched = before.and_then(|before| look.switches?.checked_sub(before.switches?));
    let mut not_readable = Vec::new();
    // The call may be the very one that holds the memory lock.
    let mut read = |address, length| memory.read(pid, Care::Careful, address, length);
    let call = match proc_task::file(pid, tid, "syscall") {
        Ok(line) => proc_task::call_in_words(&line, pid, &mut read),
        Err(errno) => {
            not_readable.push(format!("syscall ({errno}): needs the right to trace the child"));
            None
        }
    };
    Thread { tid, leads: tid == pid, stat, used, switches: switched, call, not_readable }
}

/// User and system time of all threads as shares of the time between the looks, at most 1.
fn shares(
    others: &[Thread],
    thread: &Thread,
    first: &Sample,
    second: &Sample,
) -> (Option<f64>, Option<f64>) {
    let seconds = second.at.duration_since(first.at).as_secs_f64();
    if seconds <= 0.0 {
        return (None, None);
    }
    let all = || others.iter().chain([thread]);
    let share = |ticks: u64| {
        let ticks = u32::try_from(ticks).map_or(f64::MAX, f64::from);
        let share = ticks / clock_ticks_per_second() / seconds;
        Some((share.min(1.0) * 100.0).round() / 100.0)
    };
    (share(all().map(|thread| thread.used.0).sum()), share(all().map(|thread| thread.used.1).sum()))
}

/// Reads the function that the thread waits in and its kernel stack.
fn read_kernel_side(found: &mut Stuck) {
    match proc_task::file(found.pid, found.tid, "wchan") {
        // "0" means that it does not wait, or that the reader may not know.
        Ok(name) => found.wchan = Some(name.trim().to_owned()).filter(|name| name != "0"),
        Err(errno) => found.not_readable.push(format!("wchan ({errno})")),
    }
    match proc_task::file(found.pid, found.tid, "stack") {
        Ok(text) => found.stack = task_stat::stack(&text),
        Err(Errno::ENOENT) => found.not_readable.push("stack: this kernel has none".to_owned()),
        Err(errno) => found.not_readable.push(format!(
            "stack ({errno}): needs CAP_SYS_ADMIN in the initial user namespace, that is root on the host"
        )),
    }
}

/// What a child that waits for a child of its own waits for, such as a nvidia-modprobe that is
/// itself stuck; only where the kernel lists children.
pub(super) fn waited_for(pid: u32) -> Vec<String> {
    let children = proc_task::file(pid, pid, "children").unwrap_or_default();
    let describe = |child: u32| {
        let name = proc_task::name(child)?;
        let state = proc_task::stat(child, child)?.state;
        let wchan = proc_task::file(child, child, "wchan").unwrap_or_default();
        Some(format!("it has started {name} (pid {child}, state {state}, wchan {})", wchan.trim()))
    };
    let children = children.split_ascii_whitespace().filter_map(|word| word.parse().ok());
    children.filter_map(describe).take(4).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_in_the_driver_tells_more_than_a_sleeping_leader() {
        let thread = |tid, state, call: Option<&str>| Thread {
            tid,
            leads: tid == 1,
            stat: task_stat::stat(&format!("{tid} (x) {state} 1 1 1 0 -1 0 0 0 0 0 0 0 0 0"))
                .unwrap(),
            used: (0, 0),
            switches: None,
            call: call.map(str::to_owned),
            not_readable: Vec::new(),
        };
        let leader = thread(1, 'S', Some("futex"));
        let blocked = thread(2, 'D', None);
        let in_driver = thread(3, 'S', Some("ioctl UVM_INITIALIZE on /dev/nvidia-uvm"));
        assert!(leader.telling() < blocked.telling());
        assert!(blocked.telling() < in_driver.telling());
    }
}
