//! Tracing other processes: ptrace(2), waiting for their stops, their registers and memory.
//!
//! All requests about a traced thread must come from the thread that attached to it. Nothing here
//! waits without a limit: a task that the kernel holds never stops.

use std::time::{Duration, Instant};

use facts::Errno;

use super::{arch, check, check_long, last_errno};

/// What the kernel tells the tracer of one thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// At the entry or the exit of a system call.
    SystemCall,
    /// The seccomp filter wants a look, which is at the entry of a call.
    Filtered,
    /// It has made a thread or process, which is traced too.
    Cloned,
    /// It has a new image; the number is the thread's before.
    Executed(u32),
    /// It was interrupted, or has just been attached to.
    Interrupted,
    /// It was stopped by SIGSTOP or a kin, with all its threads.
    GroupStopped,
    /// It is about to get this signal.
    Signal(i32),
    /// It is gone, with this exit status.
    Exited(i32),
    /// It is gone, ended by this signal.
    Killed(i32),
}

/// How a thread goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resume {
    /// To the next stop that the filter or an event makes.
    Run,
    /// To the entry or exit of its next system call at the latest.
    ToSystemCall,
    /// It stays stopped until SIGCONT comes.
    Listen,
}

/// Where in a system call a thread is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum At {
    /// It is about to enter the call of this number, with these arguments.
    Entry(u64, [u64; 6]),
    /// It has left it with this result: a negative one is an errno.
    Exit(i64),
    /// It is in a call of another architecture's numbers: a 32-bit one.
    Foreign,
}

const OPTIONS: libc::c_int = libc::PTRACE_O_TRACESYSGOOD
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_TRACESECCOMP;

/// Attaches to a thread without stopping it. With `ends_with_tracer` it gets SIGKILL when this
/// process ends; else it goes on untraced.
pub(crate) fn seize(thread: u32, ends_with_tracer: bool) -> Result<(), Errno> {
    let exit_kill = if ends_with_tracer { libc::PTRACE_O_EXITKILL } else { 0 };
    request(libc::PTRACE_SEIZE, thread, 0, word(OPTIONS | exit_kill))
}

/// Asks a thread to stop; it does so when it is next in user space.
pub(crate) fn interrupt(thread: u32) -> Result<(), Errno> {
    request(libc::PTRACE_INTERRUPT, thread, 0, 0)
}

/// Lets a stopped thread go, and gives it a signal unless that is 0.
pub(crate) fn resume(thread: u32, how: Resume, signal: i32) -> Result<(), Errno> {
    let request_number = match how {
        Resume::Run => libc::PTRACE_CONT,
        Resume::ToSystemCall => libc::PTRACE_SYSCALL,
        Resume::Listen => libc::PTRACE_LISTEN,
    };
    request(request_number, thread, 0, word(signal))
}

/// Lets a stopped thread go untraced, and gives it a signal unless that is 0.
pub(crate) fn detach(thread: u32, signal: i32) -> Result<(), Errno> {
    request(libc::PTRACE_DETACH, thread, 0, word(signal))
}

fn word(value: libc::c_int) -> usize {
    usize::try_from(value).unwrap_or(0)
}

fn request(number: libc::c_uint, thread: u32, address: usize, data: usize) -> Result<(), Errno> {
    let thread = libc::pid_t::try_from(thread).map_err(|_| Errno(libc::ESRCH))?;
    // SAFETY: the requests that come here take integers in both words.
    check_long(unsafe { libc::ptrace(number, thread, address, data) })?;
    Ok(())
}

/// The next stop of any traced thread, without waiting. `Err(ECHILD)`: none is left.
pub(crate) fn next_stop() -> Result<Option<(u32, Stop)>, Errno> {
    let mut status = 0;
    // SAFETY: `status` is valid for writing; WNOHANG returns at once.
    let thread =
        check(unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL | libc::WNOHANG) })?;
    let Ok(thread) = u32::try_from(thread) else { return Ok(None) };
    if thread == 0 {
        return Ok(None);
    }
    Ok(Some((thread, stop(thread, status))))
}

/// The next stop, waited for until the deadline; `None` when it has passed.
pub(crate) fn stop_before(deadline: Instant) -> Result<Option<(u32, Stop)>, Errno> {
    loop {
        let found = next_stop()?;
        let left = deadline.saturating_duration_since(Instant::now());
        if found.is_some() || left.is_zero() {
            return Ok(found);
        }
        wait(left);
    }
}

fn stop(thread: u32, status: libc::c_int) -> Stop {
    if libc::WIFEXITED(status) {
        return Stop::Exited(libc::WEXITSTATUS(status));
    }
    if libc::WIFSIGNALED(status) {
        return Stop::Killed(libc::WTERMSIG(status));
    }
    let (signal, event) = (status >> 8 & 0xff, status >> 16);
    match event {
        0 if signal == libc::SIGTRAP | 0x80 => Stop::SystemCall,
        0 => Stop::Signal(signal),
        libc::PTRACE_EVENT_SECCOMP => Stop::Filtered,
        libc::PTRACE_EVENT_EXEC => Stop::Executed(event_message(thread).unwrap_or(thread)),
        libc::PTRACE_EVENT_STOP if signal != libc::SIGTRAP => Stop::GroupStopped,
        libc::PTRACE_EVENT_STOP => Stop::Interrupted,
        _ => Stop::Cloned,
    }
}

fn event_message(thread: u32) -> Option<u32> {
    let thread = libc::pid_t::try_from(thread).ok()?;
    let mut message: libc::c_ulong = 0;
    let nothing: *mut libc::c_void = std::ptr::null_mut();
    // SAFETY: the kernel writes one word to `message`.
    let done = unsafe { libc::ptrace(libc::PTRACE_GETEVENTMSG, thread, nothing, &raw mut message) };
    if done < 0 { None } else { u32::try_from(message).ok() }
}

/// Where a thread is that is stopped at a system call.
pub(crate) fn at(thread: u32) -> Result<At, Errno> {
    match info(thread) {
        Ok(at) => Ok(at),
        // Kernels before 5.3 do not know the request; there the registers have to tell.
        Err(Errno(libc::EIO | libc::EINVAL)) => Ok(match arch::registers(thread)? {
            None => At::Foreign,
            Some(registers) if registers.at_exit => At::Exit(registers.result),
            Some(registers) => At::Entry(registers.number, registers.arguments),
        }),
        Err(errno) => Err(errno),
    }
}

/// Asks the kernel, which tells it for every architecture alike.
fn info(thread: u32) -> Result<At, Errno> {
    /// `PTRACE_GET_SYSCALL_INFO` and the places where its answer tells (linux/ptrace.h).
    const GET_SYSCALL_INFO: libc::c_uint = 0x420e;
    const ENTRY: u64 = 1;
    const EXIT: u64 = 2;
    const SECCOMP: u64 = 3;
    let mut words = [0_u64; 11];
    let pid = libc::pid_t::try_from(thread).map_err(|_| Errno(libc::ESRCH))?;
    // SAFETY: the kernel writes at most as many bytes as it is told to the array.
    check_long(unsafe {
        libc::ptrace(GET_SYSCALL_INFO, pid, size_of_val(&words), words.as_mut_ptr())
    })?;
    let [head, _, _, number, first, second, third, fourth, fifth, sixth, _] = words;
    // The first four bytes are the kind, the next four the architecture; both are little-endian.
    let (kind, audit) = (head & 0xff, head >> 32);
    match kind {
        _ if audit != u64::from(arch::OWN.audit) => Ok(At::Foreign),
        ENTRY | SECCOMP => Ok(At::Entry(number, [first, second, third, fourth, fifth, sixth])),
        EXIT => Ok(At::Exit(number.cast_signed())),
        _ => Err(Errno(libc::ESRCH)),
    }
}

/// Makes a thread at the entry of a system call leave it undone.
pub(crate) fn skip_call(thread: u32) -> Result<(), Errno> {
    arch::skip(thread)
}

/// Sets what the system call at whose exit a thread is stopped has returned: a negative number is
/// an errno.
pub(crate) fn set_result(thread: u32, result: i64) -> Result<(), Errno> {
    arch::set_result(thread, result)
}

/// The stack pointer and the general registers of a stopped thread, in no order that matters.
pub(crate) fn stack_pointer_and_registers(thread: u32) -> Result<(u64, Vec<u64>), Errno> {
    arch::stack_pointer_and_registers(thread)
}

/// Reads a set of registers and tells how many bytes of them there are. `into` must be valid for
/// writing `length` bytes.
pub(super) fn read_registers(
    thread: u32,
    set: usize,
    into: *mut libc::c_void,
    length: usize,
) -> Result<usize, Errno> {
    register_request(libc::PTRACE_GETREGSET, thread, set, into, length)
}

/// Writes a set of registers. `from` must be valid for reading `length` bytes.
pub(super) fn write_registers(
    thread: u32,
    set: usize,
    from: *mut libc::c_void,
    length: usize,
) -> Result<(), Errno> {
    register_request(libc::PTRACE_SETREGSET, thread, set, from, length).map(|_| ())
}

fn register_request(
    number: libc::c_uint,
    thread: u32,
    set: usize,
    registers: *mut libc::c_void,
    length: usize,
) -> Result<usize, Errno> {
    let thread = libc::pid_t::try_from(thread).map_err(|_| Errno(libc::ESRCH))?;
    let mut vector = libc::iovec { iov_base: registers, iov_len: length };
    // SAFETY: the kernel reads or writes at most `iov_len` bytes of what the vector points to.
    check_long(unsafe { libc::ptrace(number, thread, set, &raw mut vector) })?;
    Ok(vector.iov_len)
}

/// Reads memory of another process, and tells how many bytes there were to read. Waits for the
/// process's memory lock, which a call into a driver may hold for ever.
pub(crate) fn read_memory(process: u32, address: u64, into: &mut [u8]) -> Result<usize, Errno> {
    let process = libc::pid_t::try_from(process).map_err(|_| Errno(libc::ESRCH))?;
    let address = usize::try_from(address).map_err(|_| Errno(libc::EFAULT))?;
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let remote =
        libc::iovec { iov_base: std::ptr::without_provenance_mut(address), iov_len: into.len() };
    // SAFETY: the local vector is the whole of `into`; the remote one is checked by the kernel.
    let read =
        unsafe { libc::process_vm_readv(process, &raw const local, 1, &raw const remote, 1, 0) };
    usize::try_from(read).map_err(|_| last_errno())
}

/// What ended a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Woken {
    /// Something happened to a traced thread.
    Child,
    /// This process was asked to end.
    Request,
    /// The time is up.
    Time,
}

fn awaited() -> libc::sigset_t {
    // SAFETY: `set` is initialised by sigemptyset before it is read.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in [libc::SIGCHLD, libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            libc::sigaddset(&raw mut set, signal);
        }
        set
    }
}

/// Holds back the signals that [`wait`] waits for, so that none is missed and none ends this
/// thread. Returns what was held back before, for [`restore_signals`].
pub(crate) fn hold_signals() -> libc::sigset_t {
    let set = awaited();
    // SAFETY: both sets are valid for the call.
    unsafe {
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, &raw mut before);
        before
    }
}

/// Undoes [`hold_signals`].
pub(crate) fn restore_signals(before: &libc::sigset_t) {
    // SAFETY: the set is one that the kernel wrote.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, std::ptr::null_mut()) };
}

/// Waits for a signal, as long as `limit`.
pub(crate) fn wait(limit: Duration) -> Woken {
    let set = awaited();
    let time = libc::timespec {
        tv_sec: libc::time_t::try_from(limit.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: libc::c_long::from(limit.subsec_nanos().cast_signed()),
    };
    // SAFETY: both structures are valid for the call; nothing is asked about the signal.
    let signal =
        unsafe { libc::sigtimedwait(&raw const set, std::ptr::null_mut(), &raw const time) };
    match signal {
        libc::SIGCHLD => Woken::Child,
        libc::SIGINT | libc::SIGTERM | libc::SIGHUP => Woken::Request,
        _ => Woken::Time,
    }
}

/// Ends a process. One that is gone is no error worth telling.
pub(crate) fn kill(process: u32) {
    if let Ok(process) = libc::pid_t::try_from(process)
        && process > 1
    {
        // SAFETY: two integers.
        unsafe { libc::kill(process, libc::SIGKILL) };
    }
}
