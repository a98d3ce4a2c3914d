//! Starting a child: fork and exec without waiting for either.
//!
//! `std::process::Command` waits for the exec on a pipe, without a limit; a binary on a dead
//! network file system would hang the parent there. Here the child reports a failed exec as its
//! only output and the parent goes on at once.

use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

use facts::Errno;

use super::{check, last_errno};

/// First byte of a child's output when the exec failed; four bytes of errno follow, least
/// significant first. No line of JSON can begin with it.
pub(crate) const EXEC_FAILED_MARK: u8 = 0xff;

/// Exit status of a child whose exec failed.
const EXEC_FAILED_STATUS: libc::c_int = 127;

/// Flag of `close_range` that closes at exec instead of now (linux/close_range.h, Linux 5.11).
const CLOSE_RANGE_CLOEXEC: libc::c_uint = 4;

/// Most descriptors that are walked through where `close_range` is missing.
const DESCRIPTORS_WALKED: libc::c_int = 65_536;

/// What is to be started.
pub(crate) struct Image<'a> {
    /// Path of the binary.
    pub(crate) program: &'a CStr,
    /// Arguments, the name first.
    pub(crate) arguments: &'a [CString],
    /// The whole environment, as `NAME=value`.
    pub(crate) environment: &'a [CString],
    /// Becomes descriptor 1.
    pub(crate) stdout: BorrowedFd<'a>,
    /// Becomes descriptor 2; /dev/null when there is none.
    pub(crate) stderr: Option<BorrowedFd<'a>>,
}

/// Starts the image in a session and process group of its own, with /dev/null as standard input,
/// no other descriptor, and SIGKILL on the death of the calling thread. Returns the process id.
pub(crate) fn spawn(image: &Image<'_>) -> Result<u32, Errno> {
    let pointers = |texts: &[CString]| -> Vec<*const libc::c_char> {
        texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
    };
    let arguments = pointers(image.arguments);
    let environment = pointers(image.environment);
    let prepared = Prepared {
        program: image.program.as_ptr(),
        arguments: arguments.as_ptr(),
        environment: environment.as_ptr(),
        stdout: image.stdout.as_raw_fd(),
        stderr: image.stderr.map(|fd| fd.as_raw_fd()),
        parent: std::process::id().cast_signed(),
    };
    // SAFETY: the child runs only `become_image`, which makes async-signal-safe calls alone and
    // never returns, so that locks held by other threads of the parent do not matter.
    match check(unsafe { libc::fork() })? {
        // SAFETY: this is the child of the fork, and all pointers lead to memory that it shares.
        0 => unsafe { become_image(&prepared) },
        pid => Ok(pid.cast_unsigned()),
    }
}

/// Everything that the child needs, made before the fork: it may not allocate.
struct Prepared {
    program: *const libc::c_char,
    arguments: *const *const libc::c_char,
    environment: *const *const libc::c_char,
    stdout: RawFd,
    stderr: Option<RawFd>,
    parent: libc::pid_t,
}

/// The child's way from fork to exec.
///
/// # Safety
///
/// Only in a freshly forked child; the pointers must lead to null-terminated arrays of C strings.
unsafe fn become_image(prepared: &Prepared) -> ! {
    // SAFETY: async-signal-safe calls on plain values and on the pointers that the caller vouches
    // for; nothing allocates and nothing takes a lock.
    unsafe {
        libc::setsid();
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        // The parent may have died before the line above; then nobody would send the signal.
        if libc::getppid() != prepared.parent {
            libc::_exit(EXEC_FAILED_STATUS);
        }
        restore_signals();
        connect_standard_descriptors(prepared);
        close_the_rest_at_exec();
        libc::execve(prepared.program, prepared.arguments, prepared.environment);
        report_failed_exec();
        libc::_exit(EXEC_FAILED_STATUS)
    }
}

/// Gives the new image default signals: the Rust runtime ignores SIGPIPE, which an image inherits.
///
/// # Safety
///
/// Only between fork and exec.
unsafe fn restore_signals() {
    // SAFETY: `set` is initialised by sigemptyset before it is read.
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut());
    }
}

/// Connects descriptors 0, 1 and 2. The Rust runtime opens all three at start-up, so the pipe's
/// ends have other numbers.
///
/// # Safety
///
/// Only between fork and exec.
unsafe fn connect_standard_descriptors(prepared: &Prepared) {
    // SAFETY: plain descriptor numbers; a failure leaves a closed descriptor, never a foreign one.
    unsafe {
        let mut null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        if null < 0 {
            // On a /dev with nodev not even that opens. The runtime of the image wants all three
            // descriptors, and an empty file that nobody else sees does as well.
            null = libc::memfd_create(c"null".as_ptr(), 0);
        }
        libc::dup2(prepared.stdout, 1);
        libc::dup2(prepared.stderr.unwrap_or(null), 2);
        if null < 0 || libc::dup2(null, 0) < 0 {
            libc::close(0);
        }
    }
}

/// Marks every descriptor above 2 to be closed by the exec.
///
/// # Safety
///
/// Only between fork and exec.
unsafe fn close_the_rest_at_exec() {
    // SAFETY: only sets flags on descriptors; closed numbers answer EBADF.
    unsafe {
        let done = libc::syscall(
            libc::SYS_close_range,
            3 as libc::c_uint,
            libc::c_uint::MAX,
            CLOSE_RANGE_CLOEXEC,
        );
        if done == 0 {
            return;
        }
        let mut limit: libc::rlimit = std::mem::zeroed();
        let known = libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0;
        let last = if known { libc::c_int::try_from(limit.rlim_cur).ok() } else { None };
        for fd in 3..last.unwrap_or(DESCRIPTORS_WALKED).min(DESCRIPTORS_WALKED) {
            libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC);
        }
    }
}

/// Writes the mark and the errno of the exec to standard output.
///
/// # Safety
///
/// Only between fork and exec.
unsafe fn report_failed_exec() {
    let [a, b, c, d] = last_errno().0.to_le_bytes();
    let message = [EXEC_FAILED_MARK, a, b, c, d];
    // SAFETY: the buffer is as long as the call is told.
    unsafe { libc::write(1, message.as_ptr().cast(), message.len()) };
}
