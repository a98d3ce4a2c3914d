//! What the driver answered.

use std::time::Instant;

use facts::Errno;
use facts::parse::strace::driver_call::{self, Object};

use super::event::{Answer, Outcome};
use super::injection::Injected;
use super::tasks::{Entered, Ioctl};
use super::telling::Seen;
use super::tracer::{Tracer, branch_of};
use crate::sys::ptrace;

/// The errnos by which the kernel says within itself that a call is to be started anew
/// (include/linux/errno.h).
const RESTARTS: std::ops::RangeInclusive<i64> = 512..=516;
/// The classes whose objects are clients: NV01_ROOT, NV01_ROOT_NON_PRIV, NV01_ROOT_CLIENT.
const ROOTS: [u32; 3] = [0, 1, 0x41];
/// Where NV_ESC_RM_ALLOC's parameters have the new object's handle.
const NEW_OBJECT: u64 = 8;
/// Bytes of NV_ESC_CHECK_VERSION_STR's parameters.
const VERSION_BYTES: usize = 72;

impl Tracer<'_> {
    /// A call of the driver's returned.
    pub(super) fn leave(&mut self, tid: u32, entered: Entered, result: i64) {
        let elapsed = entered.since.elapsed();
        let mut answer = Answer {
            elapsed,
            outcome: outcome(result),
            status: None,
            version: None,
            injected: false,
        };
        if let Some(injected) = entered.injected {
            self.answer_instead(tid, &entered, injected, &mut answer);
        } else {
            let stands_in = entered.stands_in && result == -i64::from(libc::ENOTTY);
            if stands_in {
                answer.outcome = Outcome::Returned(0);
            }
            let answered = matches!(answer.outcome, Outcome::Returned(_));
            if let Some(ioctl) = &entered.ioctl {
                self.read_answer(tid, ioctl, answered, &mut answer);
            }
        }
        self.tasks.thread(tid).last = Some((entered.call.name.clone(), Instant::now()));
        self.seen(Seen::Returned(Box::new((entered.call, answer))));
    }

    /// Gives the answer that was asked for; the call was left undone.
    fn answer_instead(&mut self, tid: u32, entered: &Entered, with: Injected, answer: &mut Answer) {
        let (mut result, mut status) = match with {
            Injected::Errno(errno) => (-i64::from(errno.0), None),
            Injected::Status(status) => (0, Some(status)),
        };
        if let Some(value) = status {
            let process = self.tasks.thread(tid).process;
            let whose = self.whose(tid, process);
            let address = entered.ioctl.as_ref().and_then(|ioctl| self.status_address(ioctl));
            let bytes = value.to_ne_bytes();
            let written = address.is_some_and(|address| self.memory.write(whose, address, &bytes));
            if !written {
                self.note("the status cannot be written to the program's memory".to_owned());
                (result, status) = (-i64::from(libc::EFAULT), None);
            }
        }
        // One that SIGKILL took meanwhile needs no answer.
        let _ = ptrace::set_result(tid, result);
        answer.outcome = outcome(result);
        answer.status = status;
        answer.injected = true;
    }

    /// Where the status of a call will stand, when that is known.
    pub(super) fn status_address(&mut self, ioctl: &Ioctl) -> Option<u64> {
        let offset = self.places.offset(ioctl, self.branch)?;
        Some(ioctl.base().wrapping_add(offset as u64))
    }

    /// The status, and the version where the call tells one (which it does in failing, too).
    fn read_answer(&mut self, tid: u32, ioctl: &Ioctl, answered: bool, answer: &mut Answer) {
        let process = self.tasks.thread(tid).process;
        let whose = self.whose(tid, process);
        if ioctl.asked.request == "NV_ESC_CHECK_VERSION_STR" {
            let bytes = self.memory.read_of(whose, ioctl.base(), VERSION_BYTES).unwrap_or_default();
            answer.version = driver_call::version_told(&ioctl.asked, &bytes);
            self.branch = answer.version.as_deref().and_then(branch_of).or(self.branch);
        }
        if let Some(Object::Class(class)) = ioctl.asked.object
            && ROOTS.contains(&class)
        {
            let bytes = self.memory.read_of(whose, ioctl.base().wrapping_add(NEW_OBJECT), 4);
            self.remember_client(driver_call::word(&bytes.unwrap_or_default(), 0));
        }
        if let Some(address) = self.status_address(ioctl).filter(|_| answered) {
            let bytes = self.memory.read_of(whose, address, 4).unwrap_or_default();
            answer.status = driver_call::word(&bytes, 0);
        }
    }
}

impl Ioctl {
    /// Where the parameters proper begin.
    fn base(&self) -> u64 {
        self.asked.carried.map_or(self.address, |carried| carried.address)
    }
}

/// What a system call's result register says.
fn outcome(result: i64) -> Outcome {
    /// Largest errno; higher negative values are addresses.
    const LAST_ERRNO: i64 = 4095;
    match result {
        value if !(-LAST_ERRNO..0).contains(&value) => Outcome::Returned(value),
        value if RESTARTS.contains(&-value) => Outcome::Interrupted,
        value => Outcome::Failed(Errno(i32::try_from(-value).unwrap_or(i32::MAX))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_values_errnos_or_restarts() {
        assert_eq!(outcome(3), Outcome::Returned(3));
        assert_eq!(outcome(-1), Outcome::Failed(Errno::EPERM));
        assert_eq!(outcome(-512), Outcome::Interrupted);
        assert_eq!(outcome(-4096), Outcome::Returned(-4096));
    }
}
