//! A program that makes calls on nodes of the driver, and on nothing, in ways that a tracer must
//! stand: `driver-calls WHAT [NUMBER…]`.
//!
//! | what | it does |
//! |---|---|
//! | `one` | one request |
//! | `storm THREADS CALLS` | that many threads make that many requests each, while the first one forks, executes, stops and kills children and has one ask to be traced |
//! | `drop` | a request, then as user 65534 another |
//! | `descriptors` | a request each through a copy, through a socket, and after closing and reopening the number |
//! | `leader-exits` | the first thread ends, and another one makes a request |
//! | `map` | maps the node, unmaps, closes |
//! | `ioctls CALLS` | so many requests to /dev/null |
//! | `getppids CALLS` | so many calls that are nobody's business |
//! | `closes CALLS` | closes a descriptor that is not open, so often |
//! | `filtered getppids CALLS` | the same under a seccomp filter that lets all through |
//!
//! The node is a memory file of the node's name, which needs no driver; the kernel refuses its
//! requests with ENOTTY. Exit status is 0 when all went as told here.
#![expect(unsafe_code, reason = "system calls without wrappers, in a test program only")]

use core::ffi::{CStr, c_int, c_long};
use std::process::ExitCode;
use std::sync::{Arc, Barrier};

/// UVM_PAGEABLE_MEM_ACCESS, UVM_INITIALIZE, UVM_MM_INITIALIZE, UVM_TOOLS_…: whichever the trace is
/// to tell apart.
const PAGEABLE: u64 = 0x27;
const INITIALIZE: u64 = 0x3000_0001;
const MM_INITIALIZE: u64 = 0x4b;
const REGISTER: u64 = 0x25;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let went = match words.as_slice() {
        ["one"] => asked(node(c"/dev/nvidia-uvm"), PAGEABLE),
        ["storm", threads, calls] => storm(count(threads), count(calls)),
        ["drop"] => drop_rights(),
        ["descriptors"] => descriptors(),
        ["leader-exits"] => leader_exits(),
        ["map"] => map(),
        [what, calls] => repeat(what, count(calls)),
        ["filtered", what, calls] => allow_all() && repeat(what, count(calls)),
        _ => false,
    };
    if went { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn count(text: &str) -> u32 {
    text.parse().unwrap_or(0)
}

/// A memory file named like a node.
fn node(name: &CStr) -> c_int {
    // SAFETY: the name is a C string.
    unsafe { libc::memfd_create(name.as_ptr(), 0) }
}

/// Makes a request; true when the kernel refused it as one that a memory file does not know.
fn asked(descriptor: c_int, request: u64) -> bool {
    let mut parameters = [0_u8; 64];
    // SAFETY: the parameters outlive the call.
    let result = unsafe { libc::ioctl(descriptor, request, parameters.as_mut_ptr()) };
    result == -1 && std::io::Error::last_os_error().raw_os_error() == Some(libc::ENOTTY)
}

/// Runs `child` in a child process that then ends with 0.
fn fork(child: impl FnOnce()) -> c_int {
    // SAFETY: the child makes system calls and ends without returning.
    match unsafe { libc::fork() } {
        0 => {
            child();
            // SAFETY: it ends the process.
            unsafe { libc::_exit(0) }
        }
        pid => pid,
    }
}

/// The status of a child that has ended, or stopped when `options` say so.
fn wait(pid: c_int, options: c_int) -> c_int {
    let mut status = 0;
    // SAFETY: the status outlives the call.
    let waited = unsafe { libc::waitpid(pid, &raw mut status, options) };
    if waited == pid { status } else { -1 }
}

fn storm(threads: u32, calls: u32) -> bool {
    let descriptor = node(c"/dev/nvidia-uvm");
    let start = Arc::new(Barrier::new(threads as usize + 1));
    let workers: Vec<_> = (0..threads)
        .map(|_| {
            let start = Arc::clone(&start);
            std::thread::spawn(move || {
                start.wait();
                (0..calls).all(|_| asked(descriptor, PAGEABLE))
            })
        })
        .collect();
    start.wait();
    let family = children(descriptor);
    let own = workers.into_iter().map(|worker| worker.join().unwrap_or(false));
    own.fold(family, |all, one| all & one)
}

/// Children that fork, execute, stop, are killed and ask to be traced; five requests.
fn children(descriptor: c_int) -> bool {
    let forked = fork(|| {
        asked(descriptor, INITIALIZE);
    });
    let executed = fork(|| {
        let (this, one) = (c"/proc/self/exe", c"one");
        let arguments = [this.as_ptr(), one.as_ptr(), core::ptr::null()];
        // SAFETY: the path and the arguments are C strings, and the list ends in null.
        unsafe { libc::execv(this.as_ptr(), arguments.as_ptr()) };
    });
    let stopped = fork(|| {
        // SAFETY: a signal to itself.
        unsafe { libc::raise(libc::SIGSTOP) };
        asked(descriptor, MM_INITIALIZE);
    });
    let has_stopped = libc::WIFSTOPPED(wait(stopped, libc::WUNTRACED));
    // SAFETY: a signal to a child that has not been waited for.
    unsafe { libc::kill(stopped, libc::SIGCONT) };
    let killed = fork(|| {
        // SAFETY: it waits for a signal.
        unsafe { libc::pause() };
    });
    // SAFETY: as above.
    unsafe { libc::kill(killed, libc::SIGKILL) };
    let asks = fork(|| {
        let nothing: *mut core::ffi::c_void = core::ptr::null_mut();
        // SAFETY: it takes no arguments.
        unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, nothing, nothing) };
        asked(descriptor, REGISTER);
    });
    let good = |pid: c_int| wait(pid, 0) == 0;
    let was_killed = libc::WTERMSIG(wait(killed, 0)) == libc::SIGKILL;
    has_stopped & good(forked) & good(executed) & good(stopped) & was_killed & good(asks)
}

fn drop_rights() -> bool {
    let descriptor = node(c"/dev/nvidia-uvm");
    let before = asked(descriptor, INITIALIZE);
    // SAFETY: three numbers.
    let dropped = unsafe { libc::setresuid(65534, 65534, 65534) } == 0;
    before && dropped && asked(descriptor, PAGEABLE)
}

fn descriptors() -> bool {
    let first = node(c"/dev/nvidia-uvm");
    // SAFETY: numbers of descriptors only, here and below.
    let copy = unsafe { libc::dup(first) };
    let copied = asked(copy, INITIALIZE);
    let sent = send_to_child(first);
    // SAFETY: as above, and the path is a C string.
    let reused = unsafe {
        libc::close(first);
        libc::open(c"/dev/null".as_ptr(), libc::O_RDWR)
    };
    let of_null = reused == first && asked(first, PAGEABLE);
    // SAFETY: as above.
    let back = unsafe { libc::dup2(copy, first) } == first;
    copied && sent && of_null && back && asked(first, REGISTER)
}

/// Room for one control message with one descriptor.
#[repr(C, align(8))]
struct Control([u8; 64]);

/// Gives a child a descriptor over a socket; the child makes a request on what it got.
fn send_to_child(descriptor: c_int) -> bool {
    let mut pair = [-1; 2];
    // SAFETY: the array has room for two.
    unsafe { libc::socketpair(libc::AF_UNIX, libc::SOCK_STREAM, 0, pair.as_mut_ptr()) };
    let [ours, theirs] = pair;
    let child = fork(|| {
        // The inherited ones are closed, so that only what comes is left.
        // SAFETY: numbers only.
        unsafe { libc::close(descriptor) };
        if let Some(received) = message(theirs, None) {
            asked(received, MM_INITIALIZE);
        }
    });
    message(ours, Some(descriptor));
    wait(child, 0) == 0
}

/// Sends a descriptor, or receives one and gives it.
fn message(socket: c_int, send: Option<c_int>) -> Option<c_int> {
    let (mut byte, mut control) = (0_u8, Control([0; 64]));
    let mut part = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    // SAFETY: the message points to variables that outlive it, and its one control message has
    // room for one descriptor.
    unsafe {
        let mut message: libc::msghdr = core::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = (&raw mut control).cast();
        message.msg_controllen = libc::CMSG_SPACE(4) as _;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        if let Some(descriptor) = send {
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(4) as _;
            libc::CMSG_DATA(header).cast::<c_int>().write_unaligned(descriptor);
            libc::sendmsg(socket, &raw const message, 0);
            return None;
        }
        if libc::recvmsg(socket, &raw mut message, 0) != 1 {
            return None;
        }
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (!header.is_null()).then(|| libc::CMSG_DATA(header).cast::<c_int>().read_unaligned())
    }
}

fn leader_exits() -> bool {
    let descriptor = node(c"/dev/nvidia-uvm");
    std::thread::spawn(move || {
        let stat = || std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
        // Until the first thread is gone for all purposes.
        while !stat().contains(") Z ") {
            std::thread::yield_now();
        }
        let went = asked(descriptor, PAGEABLE);
        // SAFETY: it ends the process.
        unsafe { libc::_exit(c_int::from(!went)) }
    });
    // SAFETY: it ends this thread alone; nothing of it is used by the other.
    unsafe { libc::syscall(libc::SYS_exit, 0) };
    false
}

fn map() -> bool {
    let descriptor = node(c"/dev/nvidia0");
    let (length, offset) = (0x3000, 0x1_0000);
    // SAFETY: a new mapping at an address that the kernel chooses, which nobody touches.
    unsafe {
        let (protection, flags) = (libc::PROT_READ, libc::MAP_SHARED);
        let address =
            libc::mmap(core::ptr::null_mut(), length, protection, flags, descriptor, offset);
        address != libc::MAP_FAILED
            && libc::munmap(address, length) == 0
            && libc::close(descriptor) == 0
    }
}

fn repeat(what: &str, calls: u32) -> bool {
    // SAFETY: the path is a C string.
    let null = unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR) };
    let one: &dyn Fn() -> c_long = match what {
        // SAFETY: TCGETS on what is no terminal writes nothing.
        "ioctls" => &|| unsafe { libc::syscall(libc::SYS_ioctl, null, libc::TCGETS, 0) },
        // SAFETY: it takes no arguments.
        "getppids" => &|| unsafe { libc::syscall(libc::SYS_getppid) },
        // SAFETY: nobody has this descriptor.
        "closes" => &|| unsafe { libc::syscall(libc::SYS_close, 1000) },
        _ => return false,
    };
    for _ in 0..calls {
        one();
    }
    true
}

/// Puts this process under a filter that decides nothing: what a filter itself costs.
fn allow_all() -> bool {
    const KEEP_SPECULATION: u32 = 4;
    const SET_FILTER: u32 = 1;
    let mut lines = [libc::sock_filter { code: 6, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW }];
    let program = libc::sock_fprog { len: 1, filter: lines.as_mut_ptr() };
    // SAFETY: the program has one instruction, as it says.
    unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        libc::syscall(libc::SYS_seccomp, SET_FILTER, KEEP_SPECULATION, &raw const program) == 0
    }
}
