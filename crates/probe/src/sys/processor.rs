//! Which processor a thread of this process runs on, and when.

use facts::Errno;

use super::check;

/// Makes the calling thread run only on a processor that would otherwise be idle (`SCHED_IDLE`,
/// sched(7)). Every other thread that wants it takes it away at once.
pub(crate) fn yield_to_all() -> Result<(), Errno> {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the structure is valid for the call; 0 is the calling thread.
    check(unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters) })?;
    Ok(())
}

/// Makes the calling thread run on this processor alone.
pub(crate) fn stay_on(processor: usize) -> Result<(), Errno> {
    // SAFETY: a set of processors is a field of bits, for which zero is valid.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    if processor >= 8 * size_of_val(&set) {
        return Err(Errno::EINVAL);
    }
    // SAFETY: the number lies within the set, and the set is valid for its size.
    unsafe {
        libc::CPU_SET(processor, &mut set);
        check(libc::sched_setaffinity(0, size_of_val(&set), &raw const set))?;
    }
    Ok(())
}
