//! Why a target cannot be traced, in words that name what stands in the way.

use facts::Errno;

use crate::sys::process::effective_user;

/// Why there is no trace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Refusal {
    /// One line.
    pub reason: String,
}

impl Refusal {
    /// A refusal with this reason.
    pub(super) fn new(reason: impl Into<String>) -> Refusal {
        Refusal { reason: reason.into() }
    }

    /// Explains the errno with which attaching to a process failed.
    pub(super) fn of(pid: u32, errno: Errno) -> Refusal {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let yama = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok();
        let own = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let who = Who { user: effective_user(), may_trace: may_trace(&own) };
        let reason = reason(errno, &status, yama.as_deref(), who);
        Refusal::new(format!("process {pid} cannot be traced: {reason}"))
    }
}

/// The value of a field of /proc/PID/status, its first word.
fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().next()
}

/// Who wants to trace.
#[derive(Clone, Copy)]
struct Who {
    user: u32,
    /// Whether CAP_SYS_PTRACE is there; `None` where that cannot be read.
    may_trace: Option<bool>,
}

/// Whether a process has CAP_SYS_PTRACE, by its status.
fn may_trace(status: &str) -> Option<bool> {
    /// linux/capability.h.
    const SYS_PTRACE: u32 = 19;
    let effective = u64::from_str_radix(field(status, "CapEff")?, 16).ok()?;
    Some(effective >> SYS_PTRACE & 1 == 1)
}

fn reason(errno: Errno, status: &str, yama: Option<&str>, who: Who) -> String {
    if errno == Errno(libc::ESRCH) || status.is_empty() {
        return "there is no such process".to_owned();
    }
    if errno != Errno::EPERM {
        return format!("{errno}");
    }
    if let Some(tracer) = field(status, "TracerPid").filter(|tracer| *tracer != "0") {
        return format!("process {tracer} traces it already, and only one can");
    }
    if field(status, "Kthread") == Some("1") {
        return "it is a thread of the kernel".to_owned();
    }
    let yama = yama.and_then(|scope| scope.trim().parse::<u32>().ok()).unwrap_or(0);
    if yama >= 3 {
        return format!(
            "kernel.yama.ptrace_scope is {yama}, which forbids all tracing until a reboot"
        );
    }
    let Who { user, may_trace } = who;
    match may_trace {
        Some(true) => {
            return "CAP_SYS_PTRACE is there, so that a seccomp filter, a security module or a user \
                    namespace forbids it"
                .to_owned();
        }
        Some(false) if user == 0 => {
            return "CAP_SYS_PTRACE is missing, though this is root, as in a container; start it \
                    with --cap-add=SYS_PTRACE"
                .to_owned();
        }
        _ => {}
    }
    let owner = field(status, "Uid").and_then(|owner| owner.parse::<u32>().ok());
    match (owner, yama) {
        (Some(owner), _) if owner != user => {
            format!(
                "it belongs to user {owner} and this is user {user}; root or CAP_SYS_PTRACE may"
            )
        }
        (_, 2) => "kernel.yama.ptrace_scope is 2: only CAP_SYS_PTRACE may trace".to_owned(),
        (_, 1) => "kernel.yama.ptrace_scope is 1: only what gpudx starts itself (gpudx trace -- \
            COMMAND) may be traced without CAP_SYS_PTRACE"
            .to_owned(),
        _ => "it runs a setuid program or has given up being traced, or a seccomp or security \
            policy forbids it; root or CAP_SYS_PTRACE may"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(errno: Errno, status: &str, yama: Option<&str>, user: u32, words: &str) {
        let who = Who { user, may_trace: Some(false) };
        let reason = reason(errno, status, yama, who);
        assert!(reason.contains(words), "{reason}");
    }

    #[test]
    fn what_stands_in_the_way_is_named() {
        let mine = "Name:\tx\nTracerPid:\t0\nUid:\t1000\t1000\t1000\t1000\n";
        let traced = "Name:\tx\nTracerPid:\t77\nUid:\t1000\t1000\t1000\t1000\n";
        let of_root = "Name:\tx\nTracerPid:\t0\nUid:\t0\t0\t0\t0\n";
        said(Errno(libc::ESRCH), mine, None, 1000, "no such process");
        said(Errno::EPERM, traced, Some("1\n"), 1000, "process 77 traces it");
        said(Errno::EPERM, mine, Some("1\n"), 1000, "ptrace_scope is 1");
        said(Errno::EPERM, mine, Some("2\n"), 1000, "ptrace_scope is 2");
        said(Errno::EPERM, mine, Some("3\n"), 0, "until a reboot");
        said(Errno::EPERM, of_root, None, 1000, "belongs to user 0");
        said(Errno::EPERM, mine, None, 1000, "setuid");
        said(Errno::EPERM, mine, Some("0\n"), 0, "CAP_SYS_PTRACE is missing");
        let able = Who { user: 0, may_trace: Some(true) };
        assert!(reason(Errno::EPERM, of_root, None, able).contains("security module"));
    }

    #[test]
    fn the_capability_is_one_bit() {
        assert_eq!(may_trace("CapEff:\t000001ffffffffff\n"), Some(true));
        assert_eq!(may_trace("CapEff:\t000001fffff7ffff\n"), Some(false));
        assert_eq!(may_trace("CapEff:\tx\n"), None);
    }
}
