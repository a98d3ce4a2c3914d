//! Becoming another user, for good.

use facts::Errno;

use super::check;

/// A user with its groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    /// The user.
    pub(crate) uid: u32,
    /// Its own group.
    pub(crate) gid: u32,
    /// All its groups.
    pub(crate) groups: Vec<u32>,
}

/// Makes this process that user's. It takes CAP_SETUID and CAP_SETGID.
pub(crate) fn become_user(user: &Identity) -> Result<(), Errno> {
    // SAFETY: the list is valid for its length, which the call is told; the others take integers.
    unsafe {
        check(libc::setgroups(user.groups.len(), user.groups.as_ptr()))?;
        check(libc::setresgid(user.gid, user.gid, user.gid))?;
        check(libc::setresuid(user.uid, user.uid, user.uid))?;
        // A change of user takes both away: the death signal, and with "dumpable" the ownership
        // of this process's files in /proc, into which libcuda writes its threads' names.
        check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL))?;
        check(libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0))?;
    }
    Ok(())
}
