//! Tracing other processes: ptrace(2), waiting for their stops, their registers and memory.
//!
//! All requests about a traced thread must come from the thread that attached to it. Nothing here
//! waits without a limit: a task that the kernel holds never stops.

use std::time::Duration;

use facts::Errno;

use super::{check, check_long, last_errno};

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

/// The registers of a thread in a system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Call {
    /// Its number.
    pub(crate) number: u64,
    /// Its first four arguments; the first one is not kept to the exit on every architecture.
    pub(crate) arguments: [u64; 4],
    /// Its result, at the exit: a negative one is an errno.
    pub(crate) result: i64,
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

/// The registers of a thread that is stopped at a system call. `Ok(None)` for a thread that runs
/// in 32-bit mode, whose calls have other numbers.
#[cfg(target_arch = "x86_64")]
pub(crate) fn call(thread: u32) -> Result<Option<Call>, Errno> {
    // SAFETY: plain integers, for which zeros are a value.
    let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
    let whole = read_registers(thread, (&raw mut registers).cast(), size_of_val(&registers))?;
    Ok((whole == size_of_val(&registers)).then(|| Call {
        number: registers.orig_rax,
        arguments: [registers.rdi, registers.rsi, registers.rdx, registers.r10],
        result: registers.rax.cast_signed(),
    }))
}

/// The registers of a thread that is stopped at a system call. `Ok(None)` for a thread that runs
/// in 32-bit mode, whose calls have other numbers.
#[cfg(target_arch = "aarch64")]
pub(crate) fn call(thread: u32) -> Result<Option<Call>, Errno> {
    // x0 to x30, the stack pointer, the program counter and the state: `user_pt_regs`.
    let mut registers = [0_u64; 34];
    let whole = read_registers(thread, registers.as_mut_ptr().cast(), size_of_val(&registers))?;
    let [x0, x1, x2, x3, ..] = registers;
    let number = registers.get(8).copied().unwrap_or(u64::MAX);
    Ok((whole == size_of_val(&registers)).then(|| Call {
        number,
        arguments: [x0, x1, x2, x3],
        result: x0.cast_signed(),
    }))
}

/// No other architecture has a driver.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) fn call(_: u32) -> Result<Option<Call>, Errno> {
    Err(Errno::ENOSYS)
}

/// Reads the general registers and tells how many bytes of them there are.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn read_registers(thread: u32, into: *mut libc::c_void, length: usize) -> Result<usize, Errno> {
    /// `NT_PRSTATUS` of linux/elf.h.
    const GENERAL: usize = 1;
    let thread = libc::pid_t::try_from(thread).map_err(|_| Errno(libc::ESRCH))?;
    let mut vector = libc::iovec { iov_base: into, iov_len: length };
    // SAFETY: the kernel writes at most `iov_len` bytes to what the vector points to.
    check_long(unsafe { libc::ptrace(libc::PTRACE_GETREGSET, thread, GENERAL, &raw mut vector) })?;
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
