//! `module.deadlock`

use facts::model::nvml::NvmlResult;
use facts::model::probe_run::ProbeRun;
use facts::model::task::Hang;
use facts::wire::{Outcome, Stuck};
use facts::{Facts, Layer, Observed, Seen};

use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::machine;
use crate::need::Need;
use crate::readings;
use crate::remedy::{Impact, Remedy};
use crate::stuck;
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "module.deadlock",
    layer: Layer::Module,
    claim: "a kernel task holds a lock of the driver and never returns",
    explanation: "The nvidia module has a few locks that every call passes. When one task sleeps for \
        ever while it holds one, every later open, ioctl and nvidia-smi sleeps behind it in state D, \
        which no signal ends, and the module cannot be unloaded. A known way there is closing the \
        last handle of a GPU while the console is busy: RmShutdownAdapter waits for the console \
        lock and keeps the RM lock meanwhile (fixed in 595). The stack of the stuck task tells the \
        holder, who sleeps on something else, from those who merely wait.",
    explains: &[
        SymptomId::CudaInitHangs,
        SymptomId::NvmlHangs,
        SymptomId::CudaInitSlow,
        SymptomId::GpuFaulted,
    ],
    specializes: &[],
    look_alikes: &[
        LookAlike {
            id: "uvm.hmm",
            tell: "the stack is in HMM code of nvidia_uvm, and NVML answers at least in part",
        },
        LookAlike {
            id: "firmware.gsp-timeout",
            tell: "Xid 119 or 120 in the kernel log; the task spins in state R and does not sleep",
        },
        LookAlike {
            id: "fabric.manager-missing",
            tell: "state R with one processor busy: libcuda asks for the fabric's state again and again",
        },
        LookAlike {
            id: "library.interposer",
            tell: "the process sleeps in user space and dies on SIGKILL at once",
        },
        LookAlike {
            id: "module.uptime-hang",
            tell: "the machine has been up for 66 days or more, and the log repeats an NVLink line",
        },
    ],
    references: &[
        "https://github.com/NVIDIA/open-gpu-kernel-modules/issues/968",
        "https://docs.kernel.org/admin-guide/sysrq.html",
        "kernel/hung_task.c",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    let hangs_at_times = readings::init_hang(facts).is_some() || facts.nvml.hung().next().is_some();
    if let Some(origin) = readings::cuda_works(facts)
        && !hangs_at_times
    {
        weighing.rules_out("cuInit answers 0", origin);
        return weighing;
    }
    hangs(facts, &mut weighing);
    spins(facts, &mut weighing);
    if weighing.support.is_empty() && readings::blocked_task(facts).is_none() {
        return weighing;
    }
    hung_task(facts, &mut weighing);
    for run in facts.unchanged_runs().filter(|run| run.hung()) {
        stuck_probe(run, &mut weighing);
    }
    for place in stuck::tasks(facts) {
        stuck_task(&place, &mut weighing);
    }
    holder(facts, &mut weighing);
    neighbours(facts, &mut weighing);
    let stack_known = facts.probes.iter().any(|run| stack_of(run).is_some())
        || stuck::tasks(facts).any(|place| !place.stuck.stack.is_empty());
    if !stack_known && facts.log.frames.is_empty() {
        weighing.needs(Need::StuckStack);
        if !facts.log.read.is_seen() {
            weighing.needs(Need::KernelLog);
        }
    }
    weighing
}

/// What hangs: a driver lock stops NVML as well, and from its first call.
fn hangs(facts: &Facts, weighing: &mut Weighing) {
    if let Some(trial) = readings::init_hang(facts) {
        weighing.supports(Weak, "cuInit does not return", &trial.origin);
    } else if let Some(place) = stuck::hung_tasks(facts).next() {
        let statement = format!("{} is inside the driver and does not return", place.who);
        weighing.supports(Weak, statement, place.origin);
    }
    if let Observed::Seen(Seen { value: NvmlResult::Hung, origin }) = &facts.nvml.init {
        weighing.supports(Moderate, "NVML hangs in its first call", origin);
        return;
    }
    if let Some(query) = facts.nvml.hung().next() {
        weighing.supports(Moderate, format!("{} does not return", query.query), &query.origin);
    } else if let Some(origin) = readings::nvml_works(facts)
        && !weighing.support.is_empty()
    {
        weighing.objects(Moderate, "NVML answers, so its locks are free", &origin);
    }
}

/// What a stack says of where a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In the adapter's shutdown, waiting for the console: the known deadlock.
    ConsoleInShutdown,
    /// Waiting for a lock inside the nvidia module.
    DriverLock,
    /// Inside the nvidia module, on no lock that is known.
    Driver,
    /// In nvidia_uvm's HMM code.
    Hmm,
    /// Waiting for a lock inside nvidia_uvm or nvidia_modeset.
    SiblingLock,
    /// Elsewhere.
    Elsewhere,
}

/// Functions that sleep for a lock, as they stand at the top of a stack.
const LOCKS: [&str; 12] = [
    "down",
    "__down",
    "__down_common",
    "down_read",
    "down_write",
    "console_lock",
    "mutex_lock",
    "__mutex_lock",
    "rwsem_down_read_slowpath",
    "rwsem_down_write_slowpath",
    "os_acquire_rwlock_read",
    "os_acquire_rwlock_write",
];

fn place<'a>(frames: &(impl Iterator<Item = &'a str> + Clone)) -> Place {
    let has = |name: &str| frames.clone().any(|frame| function(frame).contains(name));
    let in_driver = frames.clone().any(|frame| frame.contains("[nvidia]"));
    let lock = frames.clone().any(|frame| LOCKS.contains(&function(frame)));
    if has("hmm") || has("memremap_pages") || has("request_free_mem_region") {
        Place::Hmm
    } else if has("console_lock") && (has("RmShutdownAdapter") || has("os_disable_console_access"))
    {
        Place::ConsoleInShutdown
    } else if in_driver && lock {
        Place::DriverLock
    } else if in_driver {
        Place::Driver
    } else if lock && frames.clone().any(|frame| frame.contains("[nvidia")) {
        Place::SiblingLock
    } else {
        Place::Elsewhere
    }
}

/// The function of a frame such as `down+0x54/0x80`, `rm_ioctl [nvidia]` or `[<0>] down+0x54/0x80`.
fn function(frame: &str) -> &str {
    let frame = frame.strip_prefix("[<0>] ").unwrap_or(frame);
    frame.split(['+', ' ']).next().unwrap_or(frame)
}

/// A task that never leaves the driver's code, and holds what it holds.
fn spins(facts: &Facts, weighing: &mut Weighing) {
    let Some((function, event)) = readings::driver_crash(facts) else { return };
    let frames = facts.log.frames.iter().map(|(frame, _)| frame.as_str());
    if event.signature != "OOPS" && place(&frames) != Place::Hmm {
        let statement = format!("a processor spins in {function} and does not come back");
        weighing.supports(Strong, statement, &event.origin);
    }
}

/// A task that sleeps in the kernel, and its stack.
fn hung_task(facts: &Facts, weighing: &mut Weighing) {
    let Some(event) = readings::blocked_task(facts) else {
        return;
    };
    let task = event.get("comm").unwrap_or("a task");
    let frames = facts.log.frames.iter().map(|(frame, _)| frame.as_str());
    let statement = match event.get("s") {
        Some(seconds) => format!("{task} slept for {seconds} s in the kernel"),
        None => format!("{task} is in state D"),
    };
    match place(&frames) {
        Place::ConsoleInShutdown => {
            let statement = format!("{statement}: RmShutdownAdapter waits for the console lock");
            weighing.confirms(statement, &event.origin);
        }
        Place::DriverLock => {
            let statement = format!("{statement}, waiting for a lock below frames of nvidia");
            weighing.confirms(statement, &event.origin);
        }
        Place::Driver => {
            let statement = format!("{statement} in frames of nvidia");
            weighing.supports(Strong, statement, &event.origin);
        }
        Place::SiblingLock => {
            let statement = format!("{statement}, waiting for a lock of the driver's modules");
            weighing.supports(Strong, statement, &event.origin);
        }
        Place::Hmm => {
            let statement = format!("{statement} in HMM code of nvidia_uvm");
            weighing.objects(Strong, statement, &event.origin);
        }
        Place::Elsewhere => {
            let strength = if readings::is_drivers_thread(task) { Moderate } else { Weak };
            weighing.supports(strength, statement, &event.origin);
            weighing.needs(Need::StuckStack);
        }
    }
    if let Some(event) = facts.log.with("HUNG_BLOCKER").next() {
        let holder = event.get("ocomm").unwrap_or("another task");
        let statement = format!("the kernel names the holder of the lock: {holder}");
        weighing.supports(Moderate, statement, &event.origin);
    }
}

/// The kernel stack of a hung probe, when it could be read.
fn stack_of(run: &ProbeRun) -> Option<&Stuck> {
    run.stuck.as_ref().filter(|stuck| !stuck.stack.is_empty())
}

/// Where a probe of our own is stuck.
fn stuck_probe(run: &ProbeRun, weighing: &mut Weighing) {
    let Some(stuck) = &run.stuck else { return };
    let sleeping = stuck.state == "D";
    let name = &run.probe;
    match place(&stuck.stack.iter().map(String::as_str)) {
        Place::ConsoleInShutdown if sleeping => {
            let statement =
                format!("{name} sleeps in RmShutdownAdapter, waiting for the console lock");
            weighing.confirms(statement, &run.origin);
        }
        Place::ConsoleInShutdown | Place::DriverLock if sleeping => {
            let statement = format!("{name} sleeps in state D, waiting for a lock of nvidia");
            weighing.supports(Strong, statement, &run.origin);
        }
        Place::Driver if sleeping => {
            let statement = format!("{name} sleeps in state D in frames of nvidia");
            weighing.supports(Moderate, statement, &run.origin);
        }
        Place::Hmm => {
            let statement = format!("{name} sleeps in HMM code of nvidia_uvm");
            weighing.objects(Strong, statement, &run.origin);
        }
        _ => without_stack(run, stuck, sleeping, weighing),
    }
}

/// Another program inside the driver, asleep in state D: it waits for the lock, or holds it.
fn stuck_task(place: &stuck::Place<'_>, weighing: &mut Weighing) {
    if Hang::of(place.stuck) != Some(Hang::SleepsInKernel) {
        return;
    }
    let who = &place.who;
    let others = match place.stuck.same_place.len() {
        0 => String::new(),
        count => format!(", and {count} more at the same place"),
    };
    match self::place(&place.stuck.stack.iter().map(String::as_str)) {
        Place::ConsoleInShutdown => {
            let statement =
                format!("{who} sleeps in RmShutdownAdapter, waiting for the console lock{others}");
            weighing.confirms(statement, place.origin);
        }
        Place::DriverLock => {
            let statement = format!("{who} sleeps, waiting for a lock of nvidia{others}");
            weighing.supports(Strong, statement, place.origin);
        }
        Place::Driver => {
            let statement = format!("{who} sleeps in frames of nvidia{others}");
            weighing.supports(Moderate, statement, place.origin);
        }
        Place::SiblingLock => {
            let statement =
                format!("{who} sleeps, waiting for a lock of the driver's modules{others}");
            weighing.supports(Strong, statement, place.origin);
        }
        Place::Hmm => {
            let statement = format!("{who} sleeps in HMM code of nvidia_uvm");
            weighing.objects(Strong, statement, place.origin);
        }
        Place::Elsewhere => {
            let call = place.stuck.call.as_deref().unwrap_or("the driver");
            if call.contains("UVM_") {
                let statement = format!("{who} is in {call}, in nvidia_uvm");
                weighing.objects(Moderate, statement, place.origin);
            } else {
                let statement = format!("{who} sleeps in {call}{others}");
                weighing.supports(Weak, statement, place.origin);
            }
        }
    }
}

/// Where several wait at one place and one is elsewhere in the driver, that one may hold the lock.
fn holder(facts: &Facts, weighing: &mut Weighing) {
    let Some((holder, waiters)) = stuck::suspected_holder(facts) else { return };
    let place = holder.stuck.place().unwrap_or_default();
    let statement =
        format!("{waiters} tasks wait at one place; {} may hold the lock: {place}", holder.who);
    weighing.supports(Moderate, statement, holder.origin);
}

/// What state, system call and end tell of a task whose stack could not be read.
fn without_stack(run: &ProbeRun, stuck: &Stuck, sleeping: bool, weighing: &mut Weighing) {
    let name = &run.probe;
    let in_uvm = stuck.call.as_deref().is_some_and(|call| call.contains("UVM_"));
    if in_uvm {
        let call = stuck.call.clone().unwrap_or_default();
        weighing.objects(Moderate, format!("{name} is in {call}, in nvidia_uvm"), &run.origin);
    } else if sleeping && stuck.stack.is_empty() {
        weighing.supports(Moderate, format!("{name} sleeps in state D"), &run.origin);
    } else if run.outcome == Outcome::TimedOut && !sleeping {
        let statement = format!("{name} was in state {} and died at once", stuck.state);
        weighing.objects(Strong, statement, &run.origin);
    }
}

/// Faults that look alike and have marks of their own.
fn neighbours(facts: &Facts, weighing: &mut Weighing) {
    if let Some((xid, event)) = facts.log.xids().find(|(xid, _)| matches!(xid, 79 | 119 | 120)) {
        weighing.objects(Strong, format!("Xid {xid}: the GPU stopped answering"), &event.origin);
    }
    if let Some(origin) = readings::logged(facts, &["OOPS"]) {
        weighing.supports(Weak, "the kernel oopsed, and locks stay held after that", origin);
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let place = machine::kernel_place(facts);
    let fixed = readings::driver_version(facts).is_some_and(|seen| seen.value.branch() >= 595);
    let remedy = Remedy::new(Impact::Reboots, "everything on the machine")
        .step_to(
            place,
            "grep -l nvidia /proc/[0-9]*/task/*/stack 2>/dev/null",
            "as root: the tasks inside the driver; keep their stacks for a report before the reboot",
        )
        .step_to(place, "echo w > /proc/sysrq-trigger; dmesg | tail -200", "logs every blocked task")
        .step_to(place, "reboot", "a task in state D ends with the kernel; if it hangs, sysrq s, u, b")
        .step_to(
            place,
            "systemctl enable --now nvidia-persistenced",
            "keeps the adapters open, so that their shutdown is never entered",
        );
    let remedy = if fixed {
        remedy
    } else {
        remedy.step_to(
            place,
            "install driver 595 or later",
            "the console-lock deadlock is fixed there",
        )
    };
    remedy
        .undo("systemctl disable --now nvidia-persistenced")
        .verify("nvidia-smi answers at once, and gpudx is healthy")
        .will_not_help(
            "kill -9, restarting the container or rmmod: the task never reads the signal",
        )
        .will_not_help("nvidia-smi --gpu-reset: the reset waits for the same lock")
}
