//! The system call that a task is in, from /proc/PID/syscall: `16 0x9 0x25 0x7ffc0 … SP PC`.
//!
//! One line tells the number, six arguments, the stack and the instruction pointer of a task that
//! waits in the kernel (fs/proc/base.c). With what its descriptors lead to it names an ioctl that
//! never returned without any tracing.

use super::strace::driver_call::{self, Node};

/// Longest path that is shown.
const PATH_BYTES: usize = 256;

/// What `syscall` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InCall {
    /// The task runs, in user space or in the kernel; which call it is in cannot be read.
    Running,
    /// It waits in the kernel outside any system call, as a task that is exiting does.
    NoCall,
    /// It waits in this call.
    Call(SystemCall),
}

/// A system call with its arguments as they were when it was entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SystemCall {
    /// Its number on the machine at hand.
    pub number: u32,
    /// The argument registers.
    pub arguments: [u64; 6],
}

/// Whose numbers the system calls have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Machine {
    /// x86-64.
    X86_64,
    /// aarch64, which has the numbers that new architectures share.
    Aarch64,
}

impl Machine {
    /// By the name that `uname -m` prints. The driver runs on no third one.
    pub fn of(arch: &str) -> Machine {
        if arch == "aarch64" { Machine::Aarch64 } else { Machine::X86_64 }
    }
}

/// What is known around a call.
pub struct Around<'a> {
    /// Whose numbers these are.
    pub machine: Machine,
    /// What a descriptor of the process leads to.
    pub descriptor: &'a dyn Fn(u64) -> Option<String>,
    /// So many bytes of the process at an address, fewer where fewer could be read.
    pub memory: &'a mut dyn FnMut(u64, usize) -> Option<Vec<u8>>,
}

/// Reads the line. `None` when it is none of `syscall`.
pub fn parse(line: &str) -> Option<InCall> {
    let line = line.trim();
    if line == "running" {
        return Some(InCall::Running);
    }
    let mut words = line.split_ascii_whitespace();
    let number: i64 = words.next()?.parse().ok()?;
    let Ok(number) = u32::try_from(number) else {
        return (words.clone().count() == 2 && number == -1).then_some(InCall::NoCall);
    };
    let mut arguments = [0; 6];
    for argument in &mut arguments {
        *argument = u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
    }
    Some(InCall::Call(SystemCall { number, arguments }))
}

impl InCall {
    /// The call, when it is in one.
    pub fn call(self) -> Option<SystemCall> {
        match self {
            InCall::Call(call) => Some(call),
            InCall::Running | InCall::NoCall => None,
        }
    }
}

impl SystemCall {
    /// Its name, where it is one in which tasks were seen to hang.
    pub fn name(&self, machine: Machine) -> Option<&'static str> {
        CALLS.iter().find_map(|(name, x86, aarch64)| {
            let number = match machine {
                Machine::X86_64 => *x86,
                Machine::Aarch64 => *aarch64,
            };
            (number == Some(self.number)).then_some(*name)
        })
    }

    /// The call in words: `ioctl UVM_REGISTER_GPU on /dev/nvidia-uvm`.
    pub fn words(&self, around: &mut Around<'_>) -> String {
        let [first, second, third, ..] = self.arguments;
        match self.name(around.machine) {
            Some("ioctl") => ioctl(second, third, (around.descriptor)(first), around.memory),
            Some(name) if takes_descriptor(name) => on(name, (around.descriptor)(first)),
            Some("open") => on("open", path_at(first, around.memory)),
            Some(name @ ("openat" | "newfstatat" | "statx")) => {
                on(name, path_at(second, around.memory))
            }
            Some(name) => name.to_owned(),
            None => format!("system call {}", self.number),
        }
    }
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
    let known = node.as_deref().and_then(Node::of);
    let Some(driver) = known.or_else(|| node_of_request(number).filter(|_| node.is_none())) else {
        return on(&format!("ioctl {number:#x}"), node);
    };
    let length = driver_call::naming_bytes(&driver, number);
    let parameters = memory(address, length).unwrap_or_default();
    let asked = driver_call::asked(&driver, number, &parameters, memory);
    on(&format!("ioctl {}", asked.words()), node)
}

/// Whose request a number is that no other driver has, where the descriptor could not be followed:
/// UVM_INITIALIZE and its undoing, and the escapes, whose type is the letter F in both directions.
fn node_of_request(number: u32) -> Option<Node> {
    let path = match number {
        0x3000_0001 | 0x3000_0002 => "/dev/nvidia-uvm",
        _ if number >> 30 == 3 && number >> 8 & 0xff == 0x46 => "/dev/nvidiactl",
        _ => return None,
    };
    nvabi::ioctl::decode_request(number).is_some().then(|| Node::of(path)).flatten().or_else(|| {
        let is_uvm = nvabi::uvm::by_request(number).is_some();
        is_uvm.then(|| Node::of(path)).flatten()
    })
}

fn on(call: &str, target: Option<String>) -> String {
    match target {
        Some(target) => format!("{call} on {target}"),
        None => call.to_owned(),
    }
}

fn path_at(address: u64, memory: &mut dyn FnMut(u64, usize) -> Option<Vec<u8>>) -> Option<String> {
    let bytes = memory(address, PATH_BYTES)?;
    let end = bytes.iter().position(|byte| *byte == 0)?;
    let path = std::str::from_utf8(bytes.get(..end)?).ok()?;
    (!path.is_empty()).then(|| path.to_owned())
}

/// True for calls whose first argument is a descriptor.
fn takes_descriptor(name: &str) -> bool {
    const CALLS: [&str; 20] = [
        "read",
        "write",
        "close",
        "recvmsg",
        "recvfrom",
        "sendmsg",
        "sendto",
        "connect",
        "accept",
        "accept4",
        "fsync",
        "fdatasync",
        "pread64",
        "pwrite64",
        "readv",
        "writev",
        "flock",
        "ftruncate",
        "finit_module",
        "fcntl",
    ];
    CALLS.contains(&name)
}

/// The calls in which tasks were seen to hang, with their numbers on x86-64 and on aarch64
/// (arch/x86/entry/syscalls/syscall_64.tbl, include/uapi/asm-generic/unistd.h); others keep their
/// number.
const CALLS: &[(&str, Option<u32>, Option<u32>)] = &[
    ("read", Some(0), Some(63)),
    ("write", Some(1), Some(64)),
    ("open", Some(2), None),
    ("close", Some(3), Some(57)),
    ("poll", Some(7), None),
    ("mmap", Some(9), Some(222)),
    ("mprotect", Some(10), Some(226)),
    ("munmap", Some(11), Some(215)),
    ("ioctl", Some(16), Some(29)),
    ("pread64", Some(17), Some(67)),
    ("pwrite64", Some(18), Some(68)),
    ("readv", Some(19), Some(65)),
    ("writev", Some(20), Some(66)),
    ("select", Some(23), None),
    ("msync", Some(26), Some(227)),
    ("madvise", Some(28), Some(233)),
    ("pause", Some(34), None),
    ("nanosleep", Some(35), Some(101)),
    ("connect", Some(42), Some(203)),
    ("accept", Some(43), Some(202)),
    ("sendto", Some(44), Some(206)),
    ("recvfrom", Some(45), Some(207)),
    ("sendmsg", Some(46), Some(211)),
    ("recvmsg", Some(47), Some(212)),
    ("clone", Some(56), Some(220)),
    ("fork", Some(57), None),
    ("vfork", Some(58), None),
    ("execve", Some(59), Some(221)),
    ("exit", Some(60), Some(93)),
    ("wait4", Some(61), Some(260)),
    ("fcntl", Some(72), Some(25)),
    ("flock", Some(73), Some(32)),
    ("fsync", Some(74), Some(82)),
    ("fdatasync", Some(75), Some(83)),
    ("ftruncate", Some(77), Some(46)),
    ("mkdir", Some(83), None),
    ("unlink", Some(87), None),
    ("init_module", Some(175), Some(105)),
    ("delete_module", Some(176), Some(106)),
    ("futex", Some(202), Some(98)),
    ("clock_nanosleep", Some(230), Some(115)),
    ("exit_group", Some(231), Some(94)),
    ("epoll_wait", Some(232), None),
    ("waitid", Some(247), Some(95)),
    ("openat", Some(257), Some(56)),
    ("mknodat", Some(259), Some(33)),
    ("newfstatat", Some(262), Some(79)),
    ("pselect6", Some(270), Some(72)),
    ("ppoll", Some(271), Some(73)),
    ("epoll_pwait", Some(281), Some(22)),
    ("accept4", Some(288), Some(242)),
    ("finit_module", Some(313), Some(273)),
    ("statx", Some(332), Some(291)),
    ("openat2", Some(437), Some(437)),
    ("futex_waitv", Some(449), Some(449)),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, node: Option<&str>, expected: &str) {
        assert_eq!(words(line, node, &mut |_, _| None), expected, "{line}");
    }

    fn words(
        line: &str,
        node: Option<&str>,
        memory: &mut dyn FnMut(u64, usize) -> Option<Vec<u8>>,
    ) -> String {
        let Some(InCall::Call(call)) = parse(line) else { panic!("{line}") };
        let descriptor = |_| node.map(str::to_owned);
        let machine = Machine::X86_64;
        call.words(&mut Around { machine, descriptor: &descriptor, memory })
    }

    fn ioctl_line(request: u32) -> String {
        format!("16 0x9 {request:#x} 0x7ffc0 0x0 0x0 0x0 0x7ffc0 0x7f00")
    }

    #[test]
    fn driver_ioctls_are_named_by_their_node() {
        let uvm = Some("/dev/nvidia-uvm");
        check(&ioctl_line(0x25), uvm, "ioctl UVM_REGISTER_GPU on /dev/nvidia-uvm");
        check(&ioctl_line(0x3000_0001), uvm, "ioctl UVM_INITIALIZE on /dev/nvidia-uvm");
        let control = Some("/dev/nvidiactl");
        check(&ioctl_line(0xc020_462a), control, "ioctl NV_ESC_RM_CONTROL on /dev/nvidiactl");
        check(&ioctl_line(0x25), Some("/dev/pts/0"), "ioctl 0x25 on /dev/pts/0");
    }

    #[test]
    fn without_the_descriptor_only_numbers_that_nobody_else_has_are_named() {
        check(&ioctl_line(0x3000_0001), None, "ioctl UVM_INITIALIZE");
        check(&ioctl_line(0xc020_462a), None, "ioctl NV_ESC_RM_CONTROL");
        check(&ioctl_line(0x25), None, "ioctl 0x25");
        check(&ioctl_line(0x5401), None, "ioctl 0x5401");
        check(&ioctl_line(0xc020_462a), Some("/dev/pts/0"), "ioctl 0xc020462a on /dev/pts/0");
    }

    #[test]
    fn a_control_is_named_from_its_parameters() {
        let mut control = |_, length| {
            let mut parameters = vec![0_u8; length];
            parameters[8..12].copy_from_slice(&0x214_u32.to_ne_bytes());
            Some(parameters)
        };
        let named = words(&ioctl_line(0xc020_462a), Some("/dev/nvidiactl"), &mut control);
        assert_eq!(named, "ioctl RM_CONTROL NV0000_CTRL_CMD_GPU_GET_PROBED_IDS on /dev/nvidiactl");
    }

    #[test]
    fn other_calls_and_no_call() {
        let line = "257 0xffffff9c 0x7ffe 0x241 0x1b6 0x0 0x0 0x7f 0x7e";
        check(line, Some("/"), "openat");
        let mut path = |_, _| Some(b"/dev/nvidia0\0x".to_vec());
        assert_eq!(words(line, None, &mut path), "openat on /dev/nvidia0");
        let line = "0 0x3 0x7ffe 0x10 0x0 0x0 0x0 0x7f 0x7e";
        check(line, Some("/proc/driver/nvidia/version"), "read on /proc/driver/nvidia/version");
        check("4999 0x0 0x0 0x0 0x0 0x0 0x0 0x7f 0x7e", None, "system call 4999");
        assert_eq!(parse("running\n"), Some(InCall::Running));
        assert_eq!(parse("-1 0x7ffe 0x7f"), Some(InCall::NoCall));
        for other in ["", "-1", "16 files", "16 0x9 0x25", "x 0x1"] {
            assert_eq!(parse(other), None, "{other}");
        }
    }

    #[test]
    fn the_call_of_a_thread_is_read_from_its_line() {
        let in_call = |line| parse(line)?.call().map(|call| (call.number, call.arguments));
        let line = "16 0x3 0xc020462a 0x7ffd0010 0x0 0x8 0x0 0x7ffd0000 0x7f0011\n";
        assert_eq!(in_call(line), Some((16, [3, 0xc020_462a, 0x7ffd_0010, 0, 8, 0])));
        for line in ["running\n", "-1 0x7ffd0000 0x7f0011\n", "", "16 0x3\n"] {
            assert_eq!(in_call(line), None, "{line}");
        }
    }

    #[test]
    fn each_machine_has_its_numbers() {
        let call = |number| SystemCall { number, arguments: [0; 6] };
        assert_eq!(call(29).name(Machine::Aarch64), Some("ioctl"));
        assert_eq!(call(29).name(Machine::X86_64), None);
        assert_eq!(call(56).name(Machine::of("aarch64")), Some("openat"));
        assert_eq!(call(56).name(Machine::of("x86_64")), Some("clone"));
    }
}
