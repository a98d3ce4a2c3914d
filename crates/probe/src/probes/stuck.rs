//! Tasks of the whole machine that do not get on: asleep in state D, or long in a call of the
//! driver's. Two looks a moment apart tell those that hang from those that are merely busy.
//!
//! First everything that cannot block; then, for the few that are left, the parameters of their
//! calls, which are read by threads that are given up after a moment: a task that hangs may hold
//! the lock of its own memory. What it brings are the same files that a person would print.

use std::time::{Duration, Instant};

use facts::Errno;
use facts::parse::strace::driver_call::{self, Node};
use facts::parse::task_stat::{self, TaskStat};
use facts::parse::task_syscall::{self, SystemCall};

use super::Options;
use crate::child::report::{Report, hexadecimal};
use crate::proc_task::{self, MACHINE};
use crate::sys::process::clock_ticks_per_second;
use crate::trace::memory::{Care, Memory};

/// Time between the two looks. The processor time of a task is counted in hundredths of a second.
const APART: Duration = Duration::from_millis(250);
/// Most processes, and most threads of all of them, that are looked at.
const PROCESSES_LIMIT: usize = 20_000;
const THREADS_LIMIT: usize = 50_000;
/// Most tasks that are told of.
const TOLD_LIMIT: usize = 48;
/// How often the second look is put off while a task that runs got too little time to tell what
/// it does with it, and how much, in clock ticks, is enough.
const LONGER: usize = 3;
const TELLING_TICKS: u64 = 20;
/// Least part of the time between the looks that a task must have worked to count as busy, on a
/// machine where many others want the processors too.
const BUSY: f64 = 0.05;
/// Most bytes that are read of a path.
const PATH_BYTES: usize = 256;
/// Most reads of memory that may be given up; each leaves a thread waiting until the probe ends.
const GIVEN_UP_LIMIT: usize = 3;

/// A process with what it holds.
struct Process {
    pid: u32,
    /// Descriptors that lead to nodes of the driver.
    nodes: Result<Vec<(u64, String)>, Errno>,
}

impl Process {
    fn holds_nodes(&self) -> bool {
        self.nodes.as_ref().is_ok_and(|nodes| !nodes.is_empty())
    }
}

/// One look at a thread.
struct Look {
    at: Instant,
    pid: u32,
    stat: TaskStat,
    /// The files that change from look to look, as they were.
    texts: [String; 2],
    syscall: Option<String>,
}

/// The files of [`Look::texts`].
const LOOKED_AT: [&str; 2] = ["stat", "status"];

/// Looks twice and tells.
pub(super) fn run(report: &mut Report, _: &Options) {
    let scan = Scan::make();
    let mut found = Vec::new();
    for _ in 0..=LONGER {
        std::thread::sleep(APART);
        found = scan.second_look();
        let tells = |(before, now): &(&Look, Look)| {
            now.stat.state != 'R' || now.ticks().saturating_sub(before.ticks()) >= TELLING_TICKS
        };
        if found.iter().all(tells) {
            break;
        }
    }
    found.sort_by_key(|(_, now)| (now.stat.state != 'D', now.stat.id));
    let left_out = found.len().saturating_sub(TOLD_LIMIT);
    found.truncate(TOLD_LIMIT);
    for (before, now) in &found {
        tell(report, before, now);
        descriptors(report, now, scan.process(now.pid));
    }
    let found: Vec<Look> = found.into_iter().map(|(_, now)| now).collect();
    unseen(report, &scan, &found, left_out);
    parameters(report, &found);
}

/// Tells both looks, and what one look is enough for, as files that a person would print.
fn tell(report: &mut Report, before: &Look, now: &Look) {
    let (pid, tid) = (now.pid, now.stat.id);
    for look in [before, now] {
        for (name, text) in LOOKED_AT.iter().zip(&look.texts) {
            report.item(&format!("/proc/{pid}/task/{tid}/{name}"), text.as_bytes(), false);
        }
    }
    let apart = now.at.saturating_duration_since(before.at);
    report.note("looks-apart-s", format!("{tid} {:.3}", apart.as_secs_f64()));
    if let Some(seconds) = proc_task::asleep_s(pid, tid).filter(|_| now.stat.state != 'R') {
        report.note("asleep-s", format!("{tid} {seconds}"));
    }
    for name in ["wchan", "syscall", "stack"] {
        let path = format!("/proc/{pid}/task/{tid}/{name}");
        match proc_task::file(pid, tid, name) {
            Ok(text) => report.item(&path, text.as_bytes(), false),
            Err(errno) => report.failed_item(&path, errno),
        }
    }
}

/// The tasks that may matter, at the first look.
struct Scan {
    processes: Vec<Process>,
    first: Vec<Look>,
}

impl Scan {
    /// This program's own processes are left out: what hangs in them is told by those who wait for
    /// them.
    fn make() -> Scan {
        let (own, parent) = (std::process::id(), std::os::unix::process::parent_id());
        let mut scan = Scan { processes: Vec::new(), first: Vec::new() };
        let Ok(entries) = std::fs::read_dir("/proc") else { return scan };
        let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let mut pids: Vec<u32> = pids.take(PROCESSES_LIMIT).collect();
        pids.sort_unstable();
        let mut threads = 0;
        for pid in pids.into_iter().filter(|pid| *pid != own && *pid != parent) {
            if proc_task::stat(pid, pid).is_none_or(|stat| stat.parent == parent) {
                continue;
            }
            let process = Process { pid, nodes: proc_task::driver_descriptors(pid) };
            let tids = proc_task::threads(pid);
            threads += tids.len();
            let looks = tids.into_iter().filter_map(|tid| Look::of(pid, tid));
            let holds = process.holds_nodes();
            scan.first.extend(looks.filter(|look| holds || look.stat.state == 'D'));
            scan.processes.push(process);
            if threads > THREADS_LIMIT {
                break;
            }
        }
        scan
    }

    /// The tasks that did not get on since the first look, as they are now.
    fn second_look(&self) -> Vec<(&Look, Look)> {
        let again = |before: &Look| Look::of(before.pid, before.stat.id);
        let pairs = self.first.iter().filter_map(|before| Some((before, again(before)?)));
        pairs.filter(|(before, now)| hangs(before, now, self)).collect()
    }

    fn process(&self, pid: u32) -> Option<&Process> {
        self.processes.iter().find(|process| process.pid == pid)
    }
}

impl Look {
    fn of(pid: u32, tid: u32) -> Option<Look> {
        let [stat, status] = LOOKED_AT.map(|name| proc_task::file(pid, tid, name));
        let texts = [stat.ok()?, status.unwrap_or_default()];
        let stat = task_stat::stat(&texts[0])?;
        let syscall = proc_task::file(pid, tid, "syscall").ok();
        Some(Look { at: Instant::now(), pid, stat, texts, syscall })
    }

    /// The processor time that it has used.
    fn ticks(&self) -> u64 {
        self.stat.user_ticks.saturating_add(self.stat.system_ticks)
    }

    fn call(&self) -> Option<SystemCall> {
        task_syscall::parse(self.syscall.as_deref()?)?.call()
    }
}

/// Whether a task did not get on between the looks.
fn hangs(before: &Look, now: &Look, scan: &Scan) -> bool {
    let same_life = before.stat.started_ticks == now.stat.started_ticks;
    if !same_life || before.stat.state != now.stat.state {
        return false;
    }
    let holds = || scan.process(now.pid).is_some_and(Process::holds_nodes);
    match now.stat.state {
        'D' => true,
        'R' => holds() && busy_share(before, now) >= BUSY,
        'S' | 't' | 'T' => before.syscall == now.syscall && holds() && in_driver_call(now),
        _ => false,
    }
}

fn busy_share(before: &Look, now: &Look) -> f64 {
    let used = u32::try_from(now.ticks().saturating_sub(before.ticks())).map_or(0.0, f64::from);
    let apart = now.at.saturating_duration_since(before.at);
    used / clock_ticks_per_second() / apart.as_secs_f64().max(f64::EPSILON)
}

/// Whether a sleeping task is in a call on a node of the driver. Waiting for events of one, by
/// `poll`, is what every idle program does.
fn in_driver_call(look: &Look) -> bool {
    let Some(call) = look.call() else { return false };
    let on_node = |name: &str| {
        let by_descriptor = ["ioctl", "read", "write", "close"].contains(&name);
        let link = proc_task::descriptor(look.pid, call.arguments[0]);
        by_descriptor && link.as_deref().and_then(Node::of).is_some()
    };
    call.name(MACHINE).is_some_and(on_node)
}

/// Tells what the process's descriptors lead to: the driver's nodes, and what the call is on.
fn descriptors(report: &mut Report, look: &Look, process: Option<&Process>) {
    let Some(process) = process else { return };
    let mut tell = |number: u64, target: &str| {
        report.item(&format!("/proc/{}/fd/{number}", look.pid), target.as_bytes(), false);
    };
    match &process.nodes {
        Ok(nodes) => nodes.iter().for_each(|(number, target)| tell(*number, target)),
        Err(errno) => {
            let path = format!("/proc/{}/task/{}/fd", look.pid, look.stat.id);
            report.failed_item(&path, *errno);
            return;
        }
    }
    if let Some(call) = look.call()
        && let Some(target) = proc_task::descriptor(look.pid, call.arguments[0])
        && Node::of(&target).is_none()
    {
        tell(call.arguments[0], &target);
    }
}

/// Says what another user would have seen.
fn unseen(report: &mut Report, scan: &Scan, found: &[Look], left_out: usize) {
    let closed = scan.processes.iter().filter(|process| process.nodes.is_err()).count();
    if closed > 0 {
        report.note(
            "unseen",
            format!(
                "the descriptors of {closed} processes of other users could not be read: as root, \
                 those that hold nodes of the driver and are long in a call of it would be seen \
                 as well"
            ),
        );
    }
    if found.iter().any(|look| proc_task::file(look.pid, look.stat.id, "stack").is_err()) {
        report.note(
            "unseen",
            "the kernel stacks of stuck tasks could not be read: root on the host reads \
             /proc/PID/task/*/stack, and who holds a lock shows there",
        );
    }
    if left_out > 0 {
        report.note("unseen", format!("{left_out} more tasks do not get on"));
    }
}

/// Tells the parameters of ioctls and the paths of opens. What is not answered is given up.
fn parameters(report: &mut Report, found: &[Look]) {
    let mut memory = Memory::default();
    let mut given_up = 0;
    for look in found {
        let Some(call) = look.call() else { continue };
        let mut fetch = |address: u64, length: usize| {
            if given_up >= GIVEN_UP_LIMIT {
                return None;
            }
            let bytes = memory.read(look.pid, Care::Careful, address, length);
            match &bytes {
                Some(bytes) => {
                    let hex = hexadecimal(bytes);
                    report.note("memory", format!("{} {address:#x} {hex}", look.stat.id));
                }
                None if memory.is_blocked(look.pid) => {
                    given_up += 1;
                    let path = format!("/proc/{}/task/{}/mem", look.pid, look.stat.id);
                    report.failed_item(&path, Errno(libc::ETIMEDOUT));
                }
                None => {}
            }
            bytes
        };
        match call.name(MACHINE) {
            Some("ioctl") => {
                let target = proc_task::descriptor(look.pid, call.arguments[0]);
                let Some(node) = target.as_deref().and_then(Node::of) else { continue };
                let request = u32::try_from(call.arguments[1] & u64::from(u32::MAX)).unwrap_or(0);
                let length = driver_call::naming_bytes(&node, request);
                let first = fetch(call.arguments[2], length).unwrap_or_default();
                // One that carries its parameters elsewhere reads them there.
                driver_call::asked(&node, request, &first, &mut fetch);
            }
            Some("openat" | "newfstatat" | "statx") => {
                fetch(call.arguments[1], PATH_BYTES);
            }
            Some("open") => {
                fetch(call.arguments[0], PATH_BYTES);
            }
            _ => {}
        }
    }
}
