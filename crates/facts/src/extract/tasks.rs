//! Single tasks: pieces of /proc, of `ps` and of the kernel log become one picture of each task.
//!
//! A live look and a pasted one have the same pieces: files below /proc/PID, links of its
//! descriptors. The probe adds what only a program can read, the parameters of an ioctl and the
//! time between two looks.

mod gather;
mod watchdog;

use std::collections::BTreeMap;

use self::gather::Part;
pub(crate) use self::gather::Parts;
use crate::model::{Facts, Task};
use crate::parse::numbered;
use crate::parse::strace::driver_call::Node;
use crate::parse::task_syscall::{Around, InCall, Machine};
use crate::raw::RawItem;
use crate::wire::Stuck;

/// Clock ticks in a second, as /proc counts them on every machine with a driver (USER_HZ).
const TICKS_PER_SECOND: f64 = 100.0;
/// How many frames from the top tell that two tasks wait for the same.
const TOP_FRAMES: usize = 3;

/// Reads stacks that were pasted without the command that printed them. Only the file of a task
/// begins its lines so; the kernel log has them without.
pub(super) fn loose(item: &RawItem, text: &str, facts: &mut Facts) {
    let is_frame = |line: &str| line.trim_start().starts_with("[<0>] ");
    let lines: Vec<(u32, &str)> = numbered(text).collect();
    for run in lines.chunk_by(|(_, one), (_, other)| is_frame(one) == is_frame(other)) {
        if let [(number, first), _, ..] = run
            && is_frame(first)
        {
            let stack: Vec<&str> = run.iter().map(|(_, line)| *line).collect();
            let origin = item.origin_at(*number, first);
            facts.task_parts.stack_of_nobody(&stack.join("\n"), &origin);
        }
    }
}

/// Makes tasks of what was gathered. Call it once, when all items are known.
pub(super) fn conclude(facts: &mut Facts) {
    let parts = std::mem::take(&mut facts.task_parts);
    let machine = Machine::of(facts.host.arch.value().map_or("", String::as_str));
    let uptime_s = facts.host.uptime_s.value().copied();
    let mut tasks: Vec<Task> =
        parts.tasks.iter().filter_map(|part| task(part, &parts, machine, uptime_s)).collect();
    watchdog::add(facts, &mut tasks);
    same_places(facts, &mut tasks);
    facts.mentions_gpu |= tasks.iter().any(|task| task.stuck.concerns_driver());
    facts.tasks = tasks;
}

fn task(part: &Part, parts: &Parts, machine: Machine, uptime_s: Option<u64>) -> Option<Task> {
    let last = part.looks.last();
    let state = last.map(|look| look.state).or(part.state);
    if state.is_none() && part.stack.is_empty() && part.syscall.is_none() {
        return None;
    }
    let empty = BTreeMap::new();
    let links = parts.links.get(&part.process).unwrap_or(&empty);
    let (call, runs) = call(part, parts, links, machine);
    let id = |text: &str| text.parse().unwrap_or(0);
    let (user_share, system_share) = shares(part, parts.interval_s.get(&part.task).copied());
    let state = state.or(runs.then_some('R'));
    let stuck = Stuck {
        pid: id(&part.process),
        tid: id(&part.task),
        name: part.name.clone().or_else(|| last.map(|look| look.name.clone())),
        state: state.map_or("?".to_owned(), |state| state.to_string()),
        wchan: part.wchan.clone(),
        stack: part.stack.clone(),
        call,
        system_share,
        user_share,
        switches: match part.switches.as_slice() {
            [first, .., last] => last.checked_sub(*first),
            _ => None,
        },
        asleep_s: parts.asleep_s.get(&part.task).copied(),
        kill_pending: part.kill_pending,
        age_s: last.zip(uptime_s).and_then(|(look, uptime_s)| age(look.started_ticks, uptime_s)),
        descriptors: driver_nodes(links),
        same_place: Vec::new(),
        not_readable: part.refused.clone(),
    };
    Some(Task { stuck, watched_s: None, from_log: false, origin: part.origin.clone()? })
}

/// The call in words, and whether the task was running when it was asked for.
fn call(
    part: &Part,
    parts: &Parts,
    links: &BTreeMap<u64, String>,
    machine: Machine,
) -> (Option<String>, bool) {
    match &part.syscall {
        Some(InCall::Call(call)) => {
            let in_uvm = part.stack.iter().any(|frame| frame.contains("[nvidia_uvm]"));
            // Where the descriptor's link is not at hand, the stack may tell whose ioctl it is.
            let descriptor = |fd: u64| {
                let by_stack =
                    || (in_uvm && links.is_empty()).then(|| "/dev/nvidia-uvm".to_owned());
                links.get(&fd).cloned().or_else(by_stack)
            };
            let mut memory = |address, length| parts.memory_at(&part.task, address, length);
            let around = &mut Around { machine, descriptor: &descriptor, memory: &mut memory };
            (Some(call.words(around)), false)
        }
        Some(InCall::Running) => (None, true),
        Some(InCall::NoCall) | None => (None, false),
    }
}

/// Least processor time, in clock ticks, that tells what it is used for: of a task that spends a
/// fifth of it in user space, a hundredth of all samples show none of that.
const TELLING_TICKS: f64 = 20.0;

/// User and system time between the first look and the last as shares of the time between them.
/// Where that is not known they are shares of the processor time used. A task that did work, but
/// too little to tell, has none.
fn shares(part: &Part, interval_s: Option<f64>) -> (Option<f64>, Option<f64>) {
    let [first, .., last] = part.looks.as_slice() else { return (None, None) };
    let ticks = |last: u64, first: u64| {
        u32::try_from(last.saturating_sub(first)).map_or(f64::MAX, f64::from)
    };
    let user = ticks(last.user_ticks, first.user_ticks);
    let system = ticks(last.system_ticks, first.system_ticks);
    if last.state == 'R' && user + system < TELLING_TICKS {
        return (None, None);
    }
    let all = match interval_s {
        Some(seconds) if seconds > 0.0 => seconds * TICKS_PER_SECOND,
        _ => user + system,
    };
    let share = |ticks: f64| {
        if all > 0.0 { Some((ticks / all).min(1.0)) } else { Some(0.0) }
            .map(|share| (share * 100.0).round() / 100.0)
    };
    (share(user), share(system))
}

fn age(started_ticks: u64, uptime_s: u64) -> Option<f64> {
    let started_s = started_ticks / 100;
    let age_s = uptime_s.checked_sub(started_s).filter(|_| started_ticks > 0)?;
    u32::try_from(age_s).ok().map(f64::from)
}

/// The driver's nodes among what descriptors lead to, each once.
fn driver_nodes(links: &BTreeMap<u64, String>) -> Vec<String> {
    let nodes = links.values().filter(|link| Node::of(link).is_some());
    let mut nodes: Vec<String> = nodes.cloned().collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

/// Enters which tasks, and probes, wait at the same place: the same frames from the top, or where
/// there are no stacks, the same function while in state D.
fn same_places(facts: &mut Facts, tasks: &mut [Task]) {
    let key = |stuck: &Stuck| -> Option<Vec<String>> {
        let name = |frame: &String| frame.split(' ').next().unwrap_or(frame).to_owned();
        if stuck.state == "R" {
            return None;
        }
        if !stuck.stack.is_empty() {
            return Some(stuck.stack.iter().take(TOP_FRAMES).map(name).collect());
        }
        stuck.wchan.clone().filter(|_| stuck.state == "D").map(|wchan| vec![wchan])
    };
    let mut places: BTreeMap<Vec<String>, Vec<u32>> = BTreeMap::new();
    let probes = facts.probes.iter().filter_map(|run| run.stuck.as_ref());
    for stuck in tasks.iter().map(|task| &task.stuck).chain(probes).filter(|stuck| stuck.tid != 0) {
        if let Some(key) = key(stuck) {
            places.entry(key).or_default().push(stuck.tid);
        }
    }
    let enter = |stuck: &mut Stuck| {
        let others = key(stuck).and_then(|key| places.get(&key));
        let others = others.into_iter().flatten().filter(|tid| **tid != stuck.tid);
        stuck.same_place = others.copied().collect();
        stuck.same_place.sort_unstable();
        stuck.same_place.dedup();
    };
    tasks.iter_mut().map(|task| &mut task.stuck).for_each(enter);
    facts.probes.iter_mut().filter_map(|run| run.stuck.as_mut()).for_each(enter);
}

#[cfg(test)]
mod tests;
