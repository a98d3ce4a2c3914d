//! A Landlock rule set under which nothing can be written.

use std::ffi::c_long;

/// The three system calls have these numbers on every architecture.
const CREATE_RULESET: c_long = 444;
const RESTRICT_SELF: c_long = 446;
/// `LANDLOCK_ACCESS_FS_WRITE_FILE`: opening a file for writing. Device nodes count as files.
const WRITE_FILE: u64 = 1 << 1;
/// `LANDLOCK_RULE_PATH_BENEATH`.
const ADD_RULE: c_long = 445;

/// Handles writing to files, and allows it below /dev alone, so that the driver's nodes open.
pub(crate) fn read_only() -> Result<(), String> {
    let told = |what: &str| format!("{what}: {}", std::io::Error::last_os_error());
    let handled = WRITE_FILE;
    // SAFETY: the first structure has one member in the first version of the interface.
    let ruleset = unsafe { libc::syscall(CREATE_RULESET, &raw const handled, size_of::<u64>(), 0) };
    if ruleset < 0 {
        return Err(told("landlock_create_ruleset"));
    }
    allow_below_dev(ruleset)?;
    // SAFETY: prctl and the call take integers.
    unsafe {
        if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 {
            return Err(told("PR_SET_NO_NEW_PRIVS"));
        }
        if libc::syscall(RESTRICT_SELF, ruleset, 0) != 0 {
            return Err(told("landlock_restrict_self"));
        }
    }
    Ok(())
}

fn allow_below_dev(ruleset: c_long) -> Result<(), String> {
    use std::os::fd::AsRawFd as _;
    const PATH_BENEATH: c_long = 1;
    let folder = std::fs::File::open("/dev").map_err(|error| format!("/dev: {error}"))?;
    // `struct landlock_path_beneath_attr` is packed: eight bytes of access, four of descriptor.
    let mut rule = [0_u8; 12];
    rule[..8].copy_from_slice(&WRITE_FILE.to_ne_bytes());
    rule[8..].copy_from_slice(&folder.as_raw_fd().to_ne_bytes());
    // SAFETY: the rule is what this kind of rule consists of, and the folder is open.
    let added = unsafe { libc::syscall(ADD_RULE, ruleset, PATH_BENEATH, rule.as_ptr(), 0) };
    if added != 0 {
        return Err(format!("landlock_add_rule: {}", std::io::Error::last_os_error()));
    }
    Ok(())
}
