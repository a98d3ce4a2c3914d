//! Processes: how one ended, signals, and leaving without running anybody's destructors.

use std::ffi::OsString;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use facts::Errno;
use facts::model::experiment::Limited;

use super::{check, check_long};

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It exited with this status.
    Exited(i32),
    /// This signal ended it.
    Signaled(i32),
    /// It has ended and somebody else reaped it, so nothing is known of how.
    ReapedElsewhere,
}

/// Makes children waitable. A process that inherits "ignore SIGCHLD" has its children reaped by the
/// kernel, and how they ended is lost.
pub(crate) fn keep_children_waitable() {
    // SAFETY: the default action takes no handler; a handler that somebody has set is put back.
    unsafe {
        let before = libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        if before != libc::SIG_IGN && before != libc::SIG_ERR {
            libc::signal(libc::SIGCHLD, before);
        }
    }
}

/// A descriptor that becomes readable when the process ends (Linux 5.3; some sandboxes refuse it).
pub(crate) fn pidfd(pid: u32) -> Result<OwnedFd, Errno> {
    // SAFETY: takes two integers and returns a descriptor that is closed at exec.
    let fd = check_long(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })?;
    let fd = RawFd::try_from(fd).map_err(|_| Errno::EINVAL)?;
    // SAFETY: the descriptor was just made and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Looks whether a child has ended, without waiting and without reaping it: as long as it is not
/// reaped, its number and its group's cannot be taken by another process.
pub(crate) fn peek_end(pid: u32) -> Result<Option<Ended>, Errno> {
    wait_id(pid, libc::WEXITED | libc::WNOHANG | libc::WNOWAIT)
}

/// Reaps a child that has ended, without waiting.
pub(crate) fn reap(pid: u32) -> Result<Option<Ended>, Errno> {
    wait_id(pid, libc::WEXITED | libc::WNOHANG)
}

fn wait_id(pid: u32, options: libc::c_int) -> Result<Option<Ended>, Errno> {
    // SAFETY: the structure is plain data for which zero is valid; with WNOHANG the call leaves
    // si_pid at zero when there is nothing to report.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    // SAFETY: `info` is valid for writing for the whole call.
    match check(unsafe { libc::waitid(libc::P_PID, pid, &raw mut info, options) }) {
        Ok(_) => {}
        Err(Errno(libc::ECHILD)) => return Ok(Some(Ended::ReapedElsewhere)),
        Err(errno) => return Err(errno),
    }
    // SAFETY: waitid fills the fields of a child's siginfo, or leaves them zero.
    let (child, status) = unsafe { (info.si_pid(), info.si_status()) };
    Ok(match (child, info.si_code) {
        (0, _) => None,
        (_, libc::CLD_EXITED) => Some(Ended::Exited(status)),
        _ => Some(Ended::Signaled(status)),
    })
}

/// A signal that the supervisor sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    /// Asks to end.
    Terminate,
    /// Ends.
    Kill,
}

/// Sends a signal to a process group. A group that is gone is no error worth telling.
pub(crate) fn signal_group(leader: u32, signal: Signal) {
    let number = match signal {
        Signal::Terminate => libc::SIGTERM,
        Signal::Kill => libc::SIGKILL,
    };
    let Ok(group) = libc::pid_t::try_from(leader) else { return };
    if group > 1 {
        // SAFETY: two integers; the group is one that this process made by setsid in a child.
        unsafe { libc::kill(-group, number) };
    }
}

/// Ends this process at once. Destructors and exit handlers do not run: those of a driver library
/// can block on a sick driver.
pub(crate) fn leave(status: i32) -> ! {
    // SAFETY: ends the process; nothing after it runs.
    unsafe { libc::_exit(status) }
}

/// Ends this process by a signal, as another one ended.
pub(crate) fn die_of(signal: i32) -> ! {
    forbid_core_dumps();
    // SAFETY: integers; the default action of the signals that end a process takes no handler.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, signal);
        libc::sigprocmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
        libc::raise(signal);
    }
    leave(128 + signal)
}

/// Runs this binary anew in this process, with these arguments and one more variable. Returns only
/// when that fails.
pub(crate) fn become_own_binary(arguments: &[OsString], variable: (&str, &str)) {
    use std::os::unix::process::CommandExt;
    let mut command = std::process::Command::new("/proc/self/exe");
    command.arg0("gpudx").args(arguments).env(variable.0, variable.1);
    // What is to be done without it is for the caller to decide.
    let _ = command.exec();
}

/// Sets a soft limit of this process; `None` for no limit. Above the hard limit it fails.
pub(crate) fn set_soft_limit(limited: Limited, value: Option<u64>) -> Result<(), Errno> {
    let resource = match limited {
        Limited::OpenFiles => libc::RLIMIT_NOFILE,
        Limited::Processes => libc::RLIMIT_NPROC,
        Limited::AddressSpace => libc::RLIMIT_AS,
    };
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both calls get one structure that is valid for their whole duration.
    unsafe {
        check(libc::getrlimit(resource, &raw mut limit))?;
        limit.rlim_cur = value.unwrap_or(libc::RLIM_INFINITY);
        check(libc::setrlimit(resource, &raw const limit))?;
    }
    Ok(())
}

/// The effective user id.
pub(crate) fn effective_user() -> u32 {
    // SAFETY: cannot fail and touches no memory.
    unsafe { libc::geteuid() }
}

/// Clock ticks a second, the unit of the times in /proc/PID/stat.
pub(crate) fn clock_ticks_per_second() -> f64 {
    // SAFETY: takes an integer and returns one.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    // 100 is the value of every Linux since 2.6 on the architectures that NVIDIA ships for.
    u32::try_from(ticks).map_or(100.0, f64::from)
}

/// Lets a crash be a crash. The Rust runtime handles SIGSEGV and SIGBUS to tell of stack overflows,
/// and lets one that was sent, rather than caused by a memory access, pass without effect.
pub(crate) fn restore_crash_signals() {
    for signal in [libc::SIGSEGV, libc::SIGBUS] {
        // SAFETY: the default action takes no handler, and nothing else relies on the runtime's.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Keeps a crash of this process from writing a core file. A soft limit of 1 also stops dumps to
/// a pipe, for which 0 does not count (core(5)).
pub(crate) fn forbid_core_dumps() {
    let limit = libc::rlimit { rlim_cur: 1, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: getrlimit and setrlimit read and write one structure that is valid for both calls.
    unsafe {
        let mut current = limit;
        if libc::getrlimit(libc::RLIMIT_CORE, &raw mut current) == 0 {
            current.rlim_cur = current.rlim_max.min(1);
            libc::setrlimit(libc::RLIMIT_CORE, &raw const current);
        }
    }
}

/// Peak resident memory, in bytes, of the largest process among the children of this one that have
/// ended and were waited for; see getrusage(2).
pub(crate) fn peak_memory_of_children() -> Option<u64> {
    // SAFETY: rusage is plain data for which zeros are a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live rusage, which the call fills.
    let returned = unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) };
    let kibibytes = u64::try_from(usage.ru_maxrss).ok()?;
    (returned == 0).then_some(kibibytes * 1024)
}
