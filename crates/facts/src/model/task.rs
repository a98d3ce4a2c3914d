//! Tasks of the machine that do not get on: asleep in the kernel, spinning there, or asking the
//! driver again and again. From /proc, from `ps`, from the kernel's watchdog, or from a probe.

use crate::observed::Origin;
use crate::wire::Stuck;

/// A task and where it was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Where it stands.
    pub stuck: Stuck,
    /// For how many seconds at least it slept, when the kernel's watchdog says so.
    pub watched_s: Option<u64>,
    /// True when the watchdog's lines are all that is known of it.
    pub from_log: bool,
    /// What was read first.
    pub origin: Origin,
}

impl Task {
    /// True when it certainly hangs and is not only slow: the watchdog found it, or somebody has
    /// tried to kill it and it sleeps on.
    pub fn surely_hangs(&self) -> bool {
        self.watched_s.is_some() || (self.stuck.state == "D" && self.stuck.kill_pending)
    }
}

/// The hangs that samples of a task tell apart. Each has its own remedy, and they look alike from
/// outside: the program does not come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hang {
    /// Asleep in state D: no signal ends it before whoever it waits for does.
    SleepsInKernel,
    /// In state D at each look, yet it woke in between: it polls, or its input or output is slow.
    WakesInKernel,
    /// System time grows and user time does not: one call that spins, or calls so short that
    /// nothing else shows.
    SpinsInKernel,
    /// User and system time grow: it makes system calls again and again. It dies at once.
    RepeatsCalls,
    /// User time alone grows. It dies at once.
    BusyInUserSpace,
    /// Asleep such that a signal ends it.
    Waits,
    /// Stopped by a signal or a debugger.
    Stopped,
    /// Ended, or about to.
    Ended,
}

/// Least share of the time between the looks that a busy task uses, on a machine where many others
/// want the processors too.
const BUSY_SHARE: f64 = 0.05;
/// Largest part of its processor time that a task whose system calls count may spend outside of
/// them, and the other way round; the clock that is sampled ticks 25 times in a tenth of a second.
const SMALL_PART: f64 = 0.1;

impl Hang {
    /// What the looks at a task say; `None` where they were too few.
    pub fn of(stuck: &Stuck) -> Option<Hang> {
        match stuck.state.chars().next()? {
            'D' if stuck.switches.is_some_and(|switches| switches > 0) => Some(Hang::WakesInKernel),
            'D' => Some(Hang::SleepsInKernel),
            'T' | 't' => Some(Hang::Stopped),
            'Z' | 'X' => Some(Hang::Ended),
            'S' | 'I' => Some(Hang::Waits),
            'R' => busy(stuck),
            _ => None,
        }
    }

    /// In words, behind "it": `sleeps in the kernel (state D); no signal ends it`.
    pub fn words(self) -> &'static str {
        match self {
            Hang::SleepsInKernel => "sleeps in the kernel (state D); no signal ends that",
            Hang::WakesInKernel => "sleeps in the kernel (state D) and wakes now and then",
            Hang::SpinsInKernel => "spins in the kernel: system time grows, user time does not",
            Hang::RepeatsCalls => {
                "makes system calls again and again: user and system time grow; a signal ends it"
            }
            Hang::BusyInUserSpace => {
                "is busy in user space: user time grows, system time does not; a signal ends it"
            }
            Hang::Waits => "waits such that a signal ends it",
            Hang::Stopped => "is stopped by a signal or a debugger",
            Hang::Ended => "has ended",
        }
    }
}

fn busy(stuck: &Stuck) -> Option<Hang> {
    let (user, system) = (stuck.user_share?, stuck.system_share?);
    let all = user + system;
    if all < BUSY_SHARE {
        return None;
    }
    Some(if system < all * SMALL_PART {
        Hang::BusyInUserSpace
    } else if user > 0.0 {
        Hang::RepeatsCalls
    } else {
        Hang::SpinsInKernel
    })
}

/// Beginnings of the names of functions in the driver's modules, where a stack or a wait channel
/// does not name the module.
const DRIVER_FUNCTIONS: [&str; 9] =
    ["nvidia_", "nv_", "uvm_", "rm_", "os_acquire_", "nvkms_", "RmShutdown", "rmapi", "nvUvm"];
/// Programs of NVIDIA's that do nothing without the driver.
const DRIVER_PROGRAMS: [&str; 5] =
    ["nvidia-", "nv-hostengine", "dcgm", "nv-fabricmanager", "fabricmanager"];

/// True for a frame or a wait channel inside the driver's modules.
pub fn in_driver(frame: &str) -> bool {
    frame.contains("[nvidia") || DRIVER_FUNCTIONS.iter().any(|name| frame.starts_with(name))
}

impl Stuck {
    /// True when its stack, wait channel or system call is in the driver.
    pub fn is_in_driver(&self) -> bool {
        let on_driver = |call: &String| {
            call.contains("/dev/nvidia")
                || call.contains("/proc/driver/nvidia")
                || call.contains("UVM_")
                || call.contains("NV_ESC_")
                || call.contains(" RM_")
        };
        self.stack.iter().any(|frame| in_driver(frame))
            || self.wchan.as_deref().is_some_and(in_driver)
            || self.call.as_ref().is_some_and(on_driver)
    }

    /// True when it has to do with the driver at all: it is inside, holds a node, or is one of
    /// NVIDIA's programs.
    pub fn concerns_driver(&self) -> bool {
        let program = |name: &String| DRIVER_PROGRAMS.iter().any(|known| name.starts_with(known));
        self.is_in_driver()
            || !self.descriptors.is_empty()
            || self.name.as_ref().is_some_and(program)
    }

    /// Who it is: `python3 (pid 812)`, with the thread where it is not the process's first.
    pub fn who(&self) -> String {
        let name = self.name.as_deref().unwrap_or("a task");
        match (self.pid, self.tid) {
            (0, 0) => name.to_owned(),
            (0, tid) => format!("{name} (task {tid})"),
            (pid, tid) if tid == pid || tid == 0 => format!("{name} (pid {pid})"),
            (pid, tid) => format!("{name} (pid {pid}, thread {tid})"),
        }
    }

    /// Where it stands: `in ioctl UVM_REGISTER_GPU on /dev/nvidia-uvm, at rwsem_down_write_slowpath`.
    pub fn place(&self) -> Option<String> {
        let call = self.call.as_ref().map(|call| format!("in {call}"));
        // Where one that runs was interrupted means something only inside the driver.
        let top = self.stack.first().filter(|frame| self.state != "R" || in_driver(frame));
        let function = self.wchan.as_deref().or(top.map(String::as_str));
        let at = function.map(|function| format!("at {function}"));
        let parts: Vec<String> = [call, at].into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stuck(state: &str, user: f64, system: f64) -> Stuck {
        Stuck {
            state: state.to_owned(),
            user_share: Some(user),
            system_share: Some(system),
            ..Stuck::default()
        }
    }

    #[test]
    fn the_hangs_are_told_apart() {
        for (state, user, system, expected) in [
            ("D", 0.0, 0.0, Some(Hang::SleepsInKernel)),
            ("R", 0.0, 1.0, Some(Hang::SpinsInKernel)),
            ("R", 0.3, 0.7, Some(Hang::RepeatsCalls)),
            ("R", 0.05, 0.95, Some(Hang::RepeatsCalls)),
            ("R", 0.98, 0.02, Some(Hang::BusyInUserSpace)),
            ("R", 0.01, 0.0, None),
            ("S", 0.0, 0.0, Some(Hang::Waits)),
            ("T", 0.0, 0.0, Some(Hang::Stopped)),
            ("Z", 0.0, 0.0, Some(Hang::Ended)),
            ("?", 0.0, 0.0, None),
        ] {
            assert_eq!(Hang::of(&stuck(state, user, system)), expected, "{state} {user} {system}");
        }
        let woken = Stuck { switches: Some(3), ..stuck("D", 0.0, 0.0) };
        assert_eq!(Hang::of(&woken), Some(Hang::WakesInKernel));
        assert_eq!(Hang::of(&Stuck { state: "R".to_owned(), ..Stuck::default() }), None);
    }

    #[test]
    fn what_concerns_the_driver() {
        let mut task = Stuck { name: Some("python3".to_owned()), ..Stuck::default() };
        assert!(!task.concerns_driver());
        task.descriptors.push("/dev/nvidiactl".to_owned());
        assert!(task.concerns_driver() && !task.is_in_driver());
        task.stack = vec!["down".to_owned(), "os_acquire_rwlock_read [nvidia]".to_owned()];
        assert!(task.is_in_driver());
        let smi = Stuck { name: Some("nvidia-smi".to_owned()), ..Stuck::default() };
        assert!(smi.concerns_driver() && !smi.is_in_driver());
        assert!(!in_driver("rwsem_down_read_slowpath") && in_driver("uvm_api_initialize"));
    }
}
