//! Questions that several causes ask of tasks that do not get on, probes and others alike.

use facts::model::ProbeRun;
use facts::model::log::LogEvent;
use facts::model::task::{Hang, Task, in_driver};
use facts::wire::Stuck;
use facts::{Facts, Origin};

/// A task and where it was found.
#[derive(Debug, Clone)]
pub struct Place<'a> {
    /// Who it is: `cuinit`, `python3 (pid 812)`.
    pub who: String,
    /// Where it stands.
    pub stuck: &'a Stuck,
    /// Where this was read.
    pub origin: &'a Origin,
}

/// Tasks other than probes that are inside the driver. Those that the kernel log alone tells of
/// are left out: causes read the log themselves.
pub fn tasks(facts: &Facts) -> impl Iterator<Item = Place<'_>> {
    inside(facts).map(of_task)
}

fn inside(facts: &Facts) -> impl Iterator<Item = &Task> {
    facts.tasks.iter().filter(|task| !task.from_log && task.stuck.is_in_driver())
}

/// Those of them that hang for certain, or that somebody has looked at because they hang. On a live
/// machine a task may be seen in the middle of a call that takes a second.
pub fn hung_tasks(facts: &Facts) -> impl Iterator<Item = Place<'_>> {
    inside(facts).filter(|task| task.surely_hangs() || long(facts, task)).map(of_task)
}

/// Longer than the slowest call of a sound driver takes: starting a GPU, or 45 s for an answer of
/// the GSP.
const LONG_S: f64 = 60.0;

fn long(facts: &Facts, task: &Task) -> bool {
    let asleep = task.stuck.state == "D";
    asleep && (!facts.live || task.stuck.asleep_s.is_some_and(|seconds| seconds >= LONG_S))
}

fn of_task(task: &Task) -> Place<'_> {
    Place { who: task.stuck.who(), stuck: &task.stuck, origin: &task.origin }
}

/// Where a probe was found when it was given up.
fn of_run(run: &ProbeRun) -> Option<Place<'_>> {
    Some(Place { who: run.probe.clone(), stuck: run.stuck.as_ref()?, origin: &run.origin })
}

/// Who spins in the kernel: a probe, or another task inside the driver.
pub fn spinning(facts: &Facts) -> Option<Place<'_>> {
    let spins = |hang| hang == Some(Hang::SpinsInKernel);
    let own = facts.unchanged_runs().find(|run| run.hung() && spins(run.hang()));
    own.and_then(of_run).or_else(|| tasks(facts).find(|place| spins(Hang::of(place.stuck))))
}

/// Probes that did not end by themselves, with where they were.
pub fn probes(facts: &Facts) -> impl Iterator<Item = Place<'_>> {
    facts.unchanged_runs().filter(|run| run.hung()).filter_map(of_run)
}

/// The probe of cuInit that hung, with what its samples say of the way it hangs.
pub fn cuinit(facts: &Facts) -> Option<(Place<'_>, Hang)> {
    let run = facts.probes.iter().find(|run| run.probe == "cuinit" && run.hung())?;
    Some((of_run(run)?, run.hang()?))
}

/// cuInit, where it waits for somebody at the other end of a socket, and the call that it waits in.
/// libcuda has one to the daemon of MPS only.
pub fn cuinit_on_socket(facts: &Facts) -> Option<(Place<'_>, String)> {
    let of_cuda = |run: &&ProbeRun| ["cuinit", "strace"].contains(&run.probe.as_str());
    let runs = facts.probes.iter().filter(of_cuda).filter(|run| run.hung());
    runs.filter_map(of_run).find_map(|place| {
        let call = place.stuck.call.clone().unwrap_or_default();
        let waits = SOCKET_CALLS.iter().any(|name| call.starts_with(name))
            || (call.starts_with("read") && call.contains("socket"))
            || place.stuck.wchan.as_deref().is_some_and(|wchan| wchan.starts_with("unix_"));
        waits.then_some((place, call))
    })
}

/// Calls that wait for the other end of a socket.
const SOCKET_CALLS: [&str; 5] = ["recvmsg", "recvfrom", "connect", "sendmsg", "sendto"];

/// Who may hold what the others wait for: a task that is in the driver, in state D or R, elsewhere
/// than at least two others which share a place.
pub fn suspected_holder(facts: &Facts) -> Option<(Place<'_>, usize)> {
    let all: Vec<Place<'_>> = tasks(facts).chain(probes(facts)).collect();
    let waiting = all.iter().max_by_key(|place| place.stuck.same_place.len())?;
    let waiters = waiting.stuck.same_place.len() + 1;
    if waiters < 2 {
        return None;
    }
    let apart = |place: &&Place<'_>| {
        place.stuck.same_place.is_empty()
            && ["D", "R"].contains(&place.stuck.state.as_str())
            && place.stuck.stack.iter().any(|frame| in_driver(frame))
    };
    all.iter().find(apart).cloned().map(|holder| (holder, waiters))
}

/// How far from the moment at which a task fell asleep a line of the log still belongs to it, in
/// seconds.
const NEAR_S: f64 = 300.0;
/// Most lines that are told of one task.
const LINES_LIMIT: usize = 4;

/// What the kernel log says about a task, or about the GPUs near the time at which it hangs.
pub fn log_near<'a>(facts: &'a Facts, task: &Task) -> Vec<&'a LogEvent> {
    let own = |event: &&LogEvent| {
        let pid = event.get("pid").and_then(|pid| pid.parse().ok());
        pid.is_some_and(|pid: u32| pid == task.stuck.tid || pid == task.stuck.pid)
    };
    let watchdog: Vec<&LogEvent> = facts.log.with("HUNG_TASK").filter(own).collect();
    let uptime = facts.host.uptime_s.value().and_then(|seconds| u32::try_from(*seconds).ok());
    let fell_asleep = || {
        let uptime = f64::from(uptime.filter(|_| facts.live)?);
        Some(uptime - task.stuck.asleep_s.unwrap_or(0.0))
    };
    let at = watchdog.first().and_then(|event| event.time_s).or_else(fell_asleep);
    let near = |event: &&LogEvent| {
        event.time_s.zip(at).is_some_and(|(time, at)| (time - at).abs() <= NEAR_S)
    };
    let xids = facts.log.with("XID").filter(near);
    watchdog.iter().copied().take(1).chain(xids).take(LINES_LIMIT).collect()
}

#[cfg(test)]
mod tests {
    use facts::raw::{ItemName, RawItem, RawSet};

    use super::*;

    fn facts(items: &[(&str, &str)]) -> Facts {
        let item = |(path, text): &(&str, &str)| {
            RawItem::new(ItemName::File((*path).to_owned()), text.as_bytes())
        };
        let mut set: RawSet = items.iter().map(item).collect();
        set.live = true;
        facts::extract(&set)
    }

    const WAITS: &str = "[<0>] down_read+0x1/0x2\n[<0>] os_acquire_rwlock_read+0x1/0x2 [nvidia]\n";
    const HOLDS: &str = "[<0>] msleep+0x1/0x2\n[<0>] RmShutdownAdapter+0x1/0x2 [nvidia]\n";

    #[test]
    fn who_may_hold_the_lock() {
        let stat =
            |pid: u32| format!("{pid} (python3) D 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 9 0");
        let stats = [stat(7), stat(8), stat(9)];
        let all = facts(&[
            ("/proc/7/stat", &stats[0]),
            ("/proc/7/stack", WAITS),
            ("/proc/8/stat", &stats[1]),
            ("/proc/8/stack", WAITS),
            ("/proc/9/stat", &stats[2]),
            ("/proc/9/stack", HOLDS),
        ]);
        let (holder, waiters) = suspected_holder(&all).unwrap();
        assert_eq!((holder.stuck.pid, waiters), (9, 2));
        assert_eq!(hung_tasks(&all).count(), 0, "a live look may catch a call that ends");
        let alone = facts(&[("/proc/9/stat", &stats[2]), ("/proc/9/stack", HOLDS)]);
        assert!(suspected_holder(&alone).is_none());
    }

    #[test]
    fn lines_of_the_log_that_belong_to_a_task() {
        let log = "<3>[  10.0] NVRM: Xid (PCI:0000:01:00): 31, pid=1\n\
            <3>[ 900.0] NVRM: Xid (PCI:0000:01:00): 119, pid=7\n\
            <3>[1000.0] INFO: task python3:7 blocked for more than 120 seconds.\n";
        let all = facts(&[
            ("/proc/7/stat", "7 (python3) D 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 9 0"),
            ("/dev/kmsg", log),
        ]);
        let lines = log_near(&all, &all.tasks[0]);
        let signatures: Vec<&str> = lines.iter().map(|event| event.signature).collect();
        assert_eq!(signatures, ["HUNG_TASK", "XID"]);
        assert_eq!(lines[1].get("xid"), Some("119"));
    }
}
