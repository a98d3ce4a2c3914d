//! Observing changes nothing: what a child gives up before it touches the driver.

use facts::Errno;

use super::report::Report;
use crate::sys::{isolate, process};

/// Key of the note that names a guard which holds.
const HELD: &str = "guard";
/// Key of the note that names a guard which could not be set, and why.
const MISSING: &str = "guard-missing";

/// Takes from this process, for good, what the driver libraries would use to heal or harm the
/// machine, and tells which guards hold. A guard that cannot be set is told and does not stop the
/// probe: without privileges there is nothing to guard against.
pub(crate) fn hold(report: &mut Report) {
    process::forbid_core_dumps();
    process::restore_crash_signals();
    let read_only = isolate::may_administer()
        && tell(report, "/dev is read-only for this probe", isolate::make_dev_read_only());
    tell(report, "without CAP_MKNOD and CAP_SYS_MODULE", isolate::give_up_capabilities());
    tell(report, "no new privileges by exec", isolate::forbid_new_privileges());
    // Removing and renaming is refused only where nothing else keeps /dev as it is, since a
    // library may rightly remove a temporary file of its own.
    let names_too = process::effective_user() == 0 && !read_only;
    tell(
        report,
        "mknod, chmod, chown and module loading are refused",
        isolate::refuse_changing_calls(names_too),
    );
}

fn tell(report: &mut Report, guard: &str, result: Result<(), Errno>) -> bool {
    match result {
        Ok(()) => report.note(HELD, guard),
        Err(errno) => report.note(MISSING, format!("{guard}: {errno}")),
    }
    result.is_ok()
}
