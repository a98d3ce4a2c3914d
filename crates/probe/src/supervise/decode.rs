//! The system call that a stuck thread is in, from /proc/PID/task/TID/syscall.

use facts::parse::strace::driver_call::{self, Node};

/// What `syscall` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum InCall {
    /// The thread runs, in user space or in the kernel; which call it is in cannot be read.
    Running,
    /// It waits in the kernel outside any system call, as a task that is exiting does.
    NoCall,
    /// It waits in this call, in words: `ioctl UVM_REGISTER_GPU on /dev/nvidia-uvm`.
    Call(String),
}

/// Decodes the line of `syscall`; `descriptor` tells what a descriptor of the process leads to,
/// `memory` reads so many bytes of the process at an address.
pub(super) fn decode(
    line: &str,
    descriptor: impl Fn(u64) -> Option<String>,
    mut memory: impl FnMut(u64, usize) -> Option<Vec<u8>>,
) -> Option<InCall> {
    let line = line.trim();
    if line == "running" {
        return Some(InCall::Running);
    }
    let mut words = line.split_ascii_whitespace();
    let number: i64 = words.next()?.parse().ok()?;
    if number < 0 {
        return Some(InCall::NoCall);
    }
    let mut arguments = words
        .map(|word| u64::from_str_radix(word.strip_prefix("0x").unwrap_or(word), 16).unwrap_or(0));
    let first = arguments.next().unwrap_or(0);
    let second = arguments.next().unwrap_or(0);
    let third = arguments.next().unwrap_or(0);
    let target = || descriptor(first);
    let words = match call_name(number) {
        Some("ioctl") => ioctl(second, third, target(), &mut memory),
        Some(name) if takes_descriptor(name) => on(name, target()),
        Some(name) => name.to_owned(),
        None => format!("system call {number}"),
    };
    Some(InCall::Call(words))
}

/// The words for an ioctl. A request number means something only together with its node: UVM's
/// are small integers that other drivers use too. What a control is about stands in its parameters.
fn ioctl(
    request: u64,
    address: u64,
    node: Option<String>,
    memory: &mut dyn FnMut(u64, usize) -> Option<Vec<u8>>,
) -> String {
    // The kernel takes a 32-bit request, whatever the register's upper half holds.
    let number = u32::try_from(request & u64::from(u32::MAX)).unwrap_or(0);
    let Some(driver) = node.as_deref().and_then(Node::of) else {
        return on(&format!("ioctl {number:#x}"), node);
    };
    let length = driver_call::naming_bytes(&driver, number);
    let parameters = memory(address, length).unwrap_or_default();
    let asked = driver_call::asked(&driver, number, &parameters, memory);
    on(&format!("ioctl {}", asked.words()), node)
}

fn on(call: &str, target: Option<String>) -> String {
    match target {
        Some(target) => format!("{call} on {target}"),
        None => call.to_owned(),
    }
}

/// True for calls whose first argument is a descriptor.
fn takes_descriptor(name: &str) -> bool {
    const CALLS: [&str; 9] =
        ["read", "write", "close", "recvmsg", "sendmsg", "connect", "fsync", "pread64", "readv"];
    CALLS.contains(&name)
}

/// The names of the calls in which probes were seen to be stuck; others keep their number.
fn call_name(number: i64) -> Option<&'static str> {
    #[cfg(target_arch = "x86_64")]
    const OLD: &[(i64, &str)] = &[
        (libc::SYS_open, "open"),
        (libc::SYS_poll, "poll"),
        (libc::SYS_pause, "pause"),
        (libc::SYS_select, "select"),
    ];
    #[cfg(not(target_arch = "x86_64"))]
    const OLD: &[(i64, &str)] = &[];
    const CALLS: &[(i64, &str)] = &[
        (libc::SYS_ioctl, "ioctl"),
        (libc::SYS_openat, "openat"),
        (libc::SYS_read, "read"),
        (libc::SYS_write, "write"),
        (libc::SYS_pread64, "pread64"),
        (libc::SYS_readv, "readv"),
        (libc::SYS_close, "close"),
        (libc::SYS_fsync, "fsync"),
        (libc::SYS_mmap, "mmap"),
        (libc::SYS_munmap, "munmap"),
        (libc::SYS_mprotect, "mprotect"),
        (libc::SYS_futex, "futex"),
        (libc::SYS_wait4, "wait4"),
        (libc::SYS_waitid, "waitid"),
        (libc::SYS_ppoll, "ppoll"),
        (libc::SYS_epoll_pwait, "epoll_pwait"),
        (libc::SYS_nanosleep, "nanosleep"),
        (libc::SYS_clock_nanosleep, "clock_nanosleep"),
        (libc::SYS_connect, "connect"),
        (libc::SYS_recvmsg, "recvmsg"),
        (libc::SYS_sendmsg, "sendmsg"),
        (libc::SYS_exit_group, "exit_group"),
        (libc::SYS_execve, "execve"),
        (libc::SYS_newfstatat, "newfstatat"),
        (libc::SYS_statx, "statx"),
        (libc::SYS_finit_module, "finit_module"),
    ];
    CALLS.iter().chain(OLD).find(|(known, _)| *known == number).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, node: Option<&str>, expected: &str) {
        let decoded = decode(line, |_| node.map(str::to_owned), |_, _| None);
        assert_eq!(decoded, Some(InCall::Call(expected.to_owned())), "{line}");
    }

    fn ioctl_line(request: u32) -> String {
        format!("{} 0x9 {request:#x} 0x7ffc0 0x0 0x0 0x0 0x7ffc0 0x7f00", libc::SYS_ioctl)
    }

    #[test]
    fn driver_ioctls_are_named_by_their_node() {
        let uvm = Some("/dev/nvidia-uvm");
        check(&ioctl_line(0x25), uvm, "ioctl UVM_REGISTER_GPU on /dev/nvidia-uvm");
        check(&ioctl_line(0x3000_0001), uvm, "ioctl UVM_INITIALIZE on /dev/nvidia-uvm");
        let control = Some("/dev/nvidiactl");
        check(&ioctl_line(0xc020_462a), control, "ioctl NV_ESC_RM_CONTROL on /dev/nvidiactl");
        check(&ioctl_line(0x25), Some("/dev/pts/0"), "ioctl 0x25 on /dev/pts/0");
        check(&ioctl_line(0x25), None, "ioctl 0x25");
    }

    #[test]
    fn a_control_is_named_from_its_parameters() {
        let control = |_, length| {
            let mut parameters = vec![0_u8; length];
            parameters[8..12].copy_from_slice(&0x214_u32.to_ne_bytes());
            Some(parameters)
        };
        let line = ioctl_line(0xc020_462a);
        let decoded = decode(&line, |_| Some("/dev/nvidiactl".to_owned()), control);
        let expected = "ioctl RM_CONTROL NV0000_CTRL_CMD_GPU_GET_PROBED_IDS on /dev/nvidiactl";
        assert_eq!(decoded, Some(InCall::Call(expected.to_owned())));
    }

    #[test]
    fn other_calls_and_no_call() {
        let line = format!("{} 0xffffff9c 0x7ffe 0x241 0x1b6 0x0 0x0 0x7f 0x7e", libc::SYS_openat);
        check(&line, Some("/"), "openat");
        let line = format!("{} 0x3 0x7ffe 0x10 0x0 0x0 0x0 0x7f 0x7e", libc::SYS_read);
        check(&line, Some("/proc/driver/nvidia/version"), "read on /proc/driver/nvidia/version");
        check("4999 0x0 0x0 0x0 0x0 0x0 0x0 0x7f 0x7e", None, "system call 4999");
        assert_eq!(decode("running\n", |_| None, |_, _| None), Some(InCall::Running));
        assert_eq!(decode("-1 0x7ffe 0x7f", |_| None, |_, _| None), Some(InCall::NoCall));
        assert_eq!(decode("", |_| None, |_, _| None), None);
    }
}
