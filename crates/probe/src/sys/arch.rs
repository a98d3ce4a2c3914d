//! What differs between the architectures that have a driver: numbers of system calls, and where
//! a stopped thread's registers hold them.
//!
//! The tables of all architectures are compiled everywhere, so that the filter made from them can
//! be tested everywhere; only the registers of the other architecture cannot be read.

use facts::Errno;

#[cfg(target_arch = "aarch64")]
#[path = "arch/aarch64.rs"]
mod own;
#[cfg(target_arch = "x86_64")]
#[path = "arch/x86_64.rs"]
mod own;

// A machine that has no compiler for the other architecture still checks that this compiles.
#[cfg(all(test, target_arch = "x86_64"))]
#[path = "arch/aarch64.rs"]
#[expect(dead_code, reason = "its registers cannot be read here")]
mod other;

/// The numbers that the tracer needs of an architecture (arch/x86/entry/syscalls/syscall_64.tbl,
/// include/uapi/asm-generic/unistd.h, linux/audit.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Architecture {
    /// `AUDIT_ARCH_…`, which a seccomp filter and ptrace tell of a call.
    pub(crate) audit: u32,
    pub(crate) ioctl: u32,
    /// Absent where only `openat` is left.
    pub(crate) open: Option<u32>,
    pub(crate) openat: u32,
    pub(crate) openat2: u32,
    pub(crate) mmap: u32,
    pub(crate) close: u32,
    pub(crate) ptrace: u32,
}

/// The 64-bit calls of x86.
pub(crate) const X86_64: Architecture = Architecture {
    audit: 0xc000_003e,
    ioctl: 16,
    open: Some(2),
    openat: 257,
    openat2: 437,
    mmap: 9,
    close: 3,
    ptrace: 101,
};

/// The 64-bit calls of ARM.
pub(crate) const AARCH64: Architecture = Architecture {
    audit: 0xc000_00b7,
    ioctl: 29,
    open: None,
    openat: 56,
    openat2: 437,
    mmap: 222,
    close: 57,
    ptrace: 117,
};

/// The architecture that this binary is for.
pub(crate) const OWN: Architecture = if cfg!(target_arch = "aarch64") { AARCH64 } else { X86_64 };

/// A system call that the tracer looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    Ioctl,
    /// The path is the first argument.
    Open,
    /// `openat` and `openat2`: the path is the second argument.
    OpenAt,
    Mmap,
    Close,
    Ptrace,
}

impl Architecture {
    /// The call of this number, if it is looked at.
    pub(crate) fn known(&self, number: u64) -> Option<Known> {
        let number = u32::try_from(number).ok()?;
        Some(match number {
            _ if number == self.ioctl => Known::Ioctl,
            _ if number == self.openat || number == self.openat2 => Known::OpenAt,
            _ if Some(number) == self.open => Known::Open,
            _ if number == self.mmap => Known::Mmap,
            _ if number == self.close => Known::Close,
            _ if number == self.ptrace => Known::Ptrace,
            _ => return None,
        })
    }
}

/// Where in a system call a thread is stopped, as its registers tell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Registers {
    pub(super) number: u64,
    pub(super) arguments: [u64; 6],
    pub(super) result: i64,
    /// At the exit; else at the entry.
    pub(super) at_exit: bool,
}

/// The registers of a thread that is stopped at a system call. `Ok(None)` for a thread in 32-bit
/// mode, whose registers are others.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(super) fn registers(thread: u32) -> Result<Option<Registers>, Errno> {
    own::registers(thread)
}

/// Makes a thread at the entry of a system call leave it undone.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(super) fn skip(thread: u32) -> Result<(), Errno> {
    own::skip(thread)
}

/// Sets what the system call at whose exit a thread is stopped has returned.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(super) fn set_result(thread: u32, result: i64) -> Result<(), Errno> {
    own::set_result(thread, result)
}

/// The stack pointer and all general registers of a stopped thread.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(super) fn stack_pointer_and_registers(thread: u32) -> Result<(u64, Vec<u64>), Errno> {
    own::stack_pointer_and_registers(thread)
}

/// No other architecture has a driver.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod none {
    use super::{Errno, Registers};

    pub(in super::super) fn registers(_: u32) -> Result<Option<Registers>, Errno> {
        Err(Errno::ENOSYS)
    }

    pub(in super::super) fn skip(_: u32) -> Result<(), Errno> {
        Err(Errno::ENOSYS)
    }

    pub(in super::super) fn set_result(_: u32, _: i64) -> Result<(), Errno> {
        Err(Errno::ENOSYS)
    }

    pub(in super::super) fn stack_pointer_and_registers(_: u32) -> Result<(u64, Vec<u64>), Errno> {
        Err(Errno::ENOSYS)
    }
}
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) use none::{registers, set_result, skip, stack_pointer_and_registers};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_numbers_are_those_of_the_system() {
        let own = [OWN.ioctl, OWN.openat, OWN.openat2, OWN.mmap, OWN.close, OWN.ptrace];
        let system = [
            libc::SYS_ioctl,
            libc::SYS_openat,
            libc::SYS_openat2,
            libc::SYS_mmap,
            libc::SYS_close,
            libc::SYS_ptrace,
        ];
        assert_eq!(own.map(i64::from), system);
        #[cfg(target_arch = "x86_64")]
        assert_eq!(OWN.open.map(i64::from), Some(libc::SYS_open));
    }

    #[test]
    fn numbers_mean_other_calls_elsewhere() {
        assert_eq!(X86_64.known(16), Some(Known::Ioctl));
        assert_eq!(AARCH64.known(16), None);
        assert_eq!(AARCH64.known(29), Some(Known::Ioctl));
        assert_eq!(AARCH64.known(2), None);
        for known in [X86_64, AARCH64] {
            assert_eq!(known.known(437), Some(Known::OpenAt));
            assert_eq!(known.known(u64::MAX), None);
        }
    }
}
