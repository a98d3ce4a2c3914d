//! Starting a program that is to be traced, with a filter that lets only the calls of interest
//! stop it.
//!
//! The child waits on a pipe until it is traced, sets the filter and executes the program. Its
//! standard descriptors are those of this process.

use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use facts::Errno;

use super::{arch, check, check_long, filter, last_errno, pipe};

/// First byte of what the child reports when there is no filter; four bytes of errno follow.
const NO_FILTER_MARK: u8 = 0xfe;
/// The same when the exec failed.
const NO_EXEC_MARK: u8 = 0xff;
/// Exit status of a child whose exec failed, as shells have it.
const EXEC_FAILED_STATUS: libc::c_int = 127;
/// `SECCOMP_SET_MODE_FILTER` and its flag that keeps speculation as it is (linux/seccomp.h).
const SET_FILTER: libc::c_uint = 1;
const KEEP_SPECULATION: libc::c_ulong = 4;

/// A child that waits to be traced.
pub(crate) struct Waiting {
    /// Its process id.
    pub(crate) pid: u32,
    go: OwnedFd,
    report: OwnedFd,
}

/// What a child told before it became the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Told {
    /// The filter could not be set.
    pub(crate) no_filter: Option<Errno>,
    /// The program could not be executed.
    pub(crate) no_exec: Option<Errno>,
}

impl Waiting {
    /// Lets it go on, and hands back where it reports.
    pub(crate) fn go(self) -> OwnedFd {
        // SAFETY: one byte from a buffer of one byte. A child that is gone makes this fail, and
        // its end tells enough.
        unsafe { libc::write(self.go.as_raw_fd(), [1_u8].as_ptr().cast(), 1) };
        self.report
    }
}

/// Reads what the child told so far, without waiting.
pub(crate) fn told(report: &OwnedFd) -> Told {
    let mut bytes = [0_u8; 10];
    // SAFETY: the buffer is as long as the call is told; the descriptor does not block.
    let read = unsafe { libc::read(report.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len()) };
    let read = bytes.get(..usize::try_from(read).unwrap_or(0)).unwrap_or_default();
    let mut told = Told::default();
    for message in read.chunks_exact(5) {
        if let [mark, a, b, c, d] = *message {
            let errno = Some(Errno(i32::from_le_bytes([a, b, c, d])));
            match mark {
                NO_FILTER_MARK => told.no_filter = errno,
                NO_EXEC_MARK => told.no_exec = errno,
                _ => {}
            }
        }
    }
    told
}

/// Starts a child that waits until [`Waiting::go`].
pub(crate) fn start(
    program: &CStr,
    arguments: &[CString],
    environment: &[CString],
) -> Result<Waiting, Errno> {
    let pointers = |texts: &[CString]| -> Vec<*const libc::c_char> {
        texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
    };
    let (arguments, environment) = (pointers(arguments), pointers(environment));
    let filter = filter::filter(&arch::OWN);
    let (go, report) = (pipe::pipe()?, pipe::pipe()?);
    // SAFETY: the descriptor is open; the child is to wait on it.
    check(unsafe { libc::fcntl(go.read.as_raw_fd(), libc::F_SETFL, 0) })?;
    let prepared = Prepared {
        program: program.as_ptr(),
        arguments: arguments.as_ptr(),
        environment: environment.as_ptr(),
        go: go.read.as_raw_fd(),
        go_writing: go.write.as_raw_fd(),
        report: report.write.as_raw_fd(),
        filter: &filter,
    };
    // SAFETY: the child runs only `become_program`, which makes async-signal-safe calls alone and
    // never returns.
    match check(unsafe { libc::fork() })? {
        // SAFETY: this is the child of the fork, and all pointers lead to memory that it shares.
        0 => unsafe { become_program(&prepared) },
        pid => Ok(Waiting { pid: pid.cast_unsigned(), go: go.write, report: report.read }),
    }
}

struct Prepared<'a> {
    program: *const libc::c_char,
    arguments: *const *const libc::c_char,
    environment: *const *const libc::c_char,
    go: RawFd,
    go_writing: RawFd,
    report: RawFd,
    filter: &'a [libc::sock_filter],
}

/// # Safety
///
/// Only in a freshly forked child; the pointers must lead to null-terminated arrays of C strings.
unsafe fn become_program(prepared: &Prepared<'_>) -> ! {
    // SAFETY: async-signal-safe calls on plain values and on the pointers that the caller vouches
    // for; nothing allocates and nothing takes a lock.
    unsafe {
        // Else this end would keep the pipe open after the tracer's death.
        libc::close(prepared.go_writing);
        let mut byte = 0_u8;
        if libc::read(prepared.go, (&raw mut byte).cast(), 1) != 1 {
            libc::_exit(EXEC_FAILED_STATUS);
        }
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut());
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        if let Err(errno) = set_filter(prepared.filter) {
            tell(prepared.report, NO_FILTER_MARK, errno);
        }
        libc::execve(prepared.program, prepared.arguments, prepared.environment);
        tell(prepared.report, NO_EXEC_MARK, last_errno());
        libc::_exit(EXEC_FAILED_STATUS)
    }
}

/// # Safety
///
/// Only between fork and exec.
unsafe fn tell(report: RawFd, mark: u8, errno: Errno) {
    let [a, b, c, d] = errno.0.to_le_bytes();
    let message = [mark, a, b, c, d];
    // SAFETY: the buffer is as long as the call is told.
    unsafe { libc::write(report, message.as_ptr().cast(), message.len()) };
}

/// Sets the filter. Without CAP_SYS_ADMIN that takes "no new privileges", which changes nothing
/// here: the kernel gives a program that is traced by somebody without privileges none either.
///
/// # Safety
///
/// Only between fork and exec.
unsafe fn set_filter(filter: &[libc::sock_filter]) -> Result<(), Errno> {
    let program = libc::sock_fprog {
        len: u16::try_from(filter.len()).unwrap_or(0),
        filter: filter.as_ptr().cast_mut(),
    };
    // SAFETY: the kernel reads `len` instructions and changes none.
    let set = |flags: libc::c_ulong| unsafe {
        check_long(libc::syscall(libc::SYS_seccomp, SET_FILTER, flags, &raw const program))
    };
    // Kernels before 4.17 do not know the flag.
    let either = || set(KEEP_SPECULATION).or_else(|_| set(0));
    either()
        .or_else(|_| {
            // SAFETY: prctl with integers.
            unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
            either()
        })
        .map(|_| ())
}
