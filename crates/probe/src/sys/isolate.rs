//! Taking away from this process what a driver library would use to change the machine.
//!
//! Measured with drivers 535 to 580: as root, `cuInit` and `nvmlInit` make missing device nodes,
//! replace wrong ones, set their modes and owners, and run modprobe. Each function here takes one
//! of those abilities away for good from this process and all that it starts.

use std::collections::BTreeMap;
use std::ffi::CStr;

use facts::Errno;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, SeccompRule, TargetArch};

use super::{check, check_long};

/// Bit of CAP_SYS_MODULE in a capability set (linux/capability.h).
const CAP_SYS_MODULE: u32 = 16;
/// Bit of CAP_SYS_ADMIN.
const CAP_SYS_ADMIN: u32 = 21;
/// Bit of CAP_MKNOD.
const CAP_MKNOD: u32 = 27;
/// The capabilities that are given up.
const GIVEN_UP: [u32; 2] = [CAP_MKNOD, CAP_SYS_MODULE];

/// `_LINUX_CAPABILITY_VERSION_3` of linux/capability.h: two 32-bit words a set.
const CAPABILITY_VERSION: u32 = 0x2008_0522;

/// `fchmodat2` (Linux 6.6), the same number on every architecture.
const SYS_FCHMODAT2: i64 = 452;

/// `struct __user_cap_header_struct`.
#[repr(C)]
struct CapabilityHeader {
    version: u32,
    pid: i32,
}

/// `struct __user_cap_data_struct`, one 32-bit word of each set.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct CapabilityWord {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// True when this process may mount: CAP_SYS_ADMIN is in its effective set.
pub(crate) fn may_administer() -> bool {
    capabilities().is_ok_and(|[low, _]| low.effective & (1 << CAP_SYS_ADMIN) != 0)
}

/// Gives up CAP_MKNOD and CAP_SYS_MODULE in every set: effective, permitted, inheritable, ambient
/// and, where CAP_SETPCAP allows it, bounding.
pub(crate) fn give_up_capabilities() -> Result<(), Errno> {
    let [mut low, high] = capabilities()?;
    let mut bounding = Ok(());
    for bit in GIVEN_UP {
        // SAFETY: prctl with integers; lowering an ambient capability that is not raised is fine.
        let dropped = unsafe {
            libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_LOWER, bit, 0, 0);
            check(libc::prctl(libc::PR_CAPBSET_DROP, bit, 0, 0, 0))
        };
        bounding = bounding.and(dropped.map(|_| ()));
        low.effective &= !(1 << bit);
        low.permitted &= !(1 << bit);
        low.inheritable &= !(1 << bit);
    }
    let header = CapabilityHeader { version: CAPABILITY_VERSION, pid: 0 };
    let words = [low, high];
    // SAFETY: the header names version 3, for which the kernel reads two words.
    check_long(unsafe { libc::syscall(libc::SYS_capset, &raw const header, words.as_ptr()) })?;
    // Without CAP_SETPCAP the bounding set stays; then an exec could regain nothing either, since
    // that takes root's permitted set, which such a process does not have, or a file's, which
    // "no new privileges" forbids.
    match bounding {
        Err(Errno::EPERM) | Ok(()) => Ok(()),
        Err(errno) => Err(errno),
    }
}

fn capabilities() -> Result<[CapabilityWord; 2], Errno> {
    let mut header = CapabilityHeader { version: CAPABILITY_VERSION, pid: 0 };
    let mut words = [CapabilityWord::default(); 2];
    // SAFETY: the header names version 3, for which the kernel writes two words.
    check_long(unsafe { libc::syscall(libc::SYS_capget, &raw mut header, words.as_mut_ptr()) })?;
    Ok(words)
}

/// Keeps this process from gaining privileges by an exec, so that a setuid nvidia-modprobe does
/// nothing that the caller could not do.
pub(crate) fn forbid_new_privileges() -> Result<(), Errno> {
    // SAFETY: prctl with integers.
    check(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) })?;
    Ok(())
}

/// Moves to a mount namespace of its own in which /dev is read-only. Nodes there still open for
/// writing; what cannot be done is to make, remove, rename or chmod one.
pub(crate) fn make_dev_read_only() -> Result<(), Errno> {
    // SAFETY: takes an integer.
    check(unsafe { libc::unshare(libc::CLONE_NEWNS) })?;
    // Without this step the mounts below would show in the namespace that was left, where mounts
    // are shared; so its failure ends the attempt.
    mount(None, c"/", libc::MS_REC | libc::MS_SLAVE)?;
    mount(Some(c"/dev"), c"/dev", libc::MS_BIND | libc::MS_REC)?;
    let kept = mount_flags(c"/dev")?;
    mount(None, c"/dev", libc::MS_REMOUNT | libc::MS_BIND | libc::MS_RDONLY | kept)
}

/// Moves to a mount namespace of its own in which this file reads as empty.
pub(crate) fn hide_file(path: &CStr) -> Result<(), Errno> {
    // SAFETY: takes an integer.
    check(unsafe { libc::unshare(libc::CLONE_NEWNS) })?;
    // Without this step the mount below would show in the namespace that was left.
    mount(None, c"/", libc::MS_REC | libc::MS_SLAVE)?;
    mount(Some(c"/dev/null"), path, libc::MS_BIND)
}

fn mount(source: Option<&CStr>, target: &CStr, flags: libc::c_ulong) -> Result<(), Errno> {
    let source = source.map_or(std::ptr::null(), CStr::as_ptr);
    let nothing = std::ptr::null();
    // SAFETY: C strings that live through the call; type and data are not used by these flags.
    check(unsafe { libc::mount(source, target.as_ptr(), nothing, flags, nothing.cast()) })?;
    Ok(())
}

/// The flags of a mount that a remount must repeat: inside a user namespace they are locked.
fn mount_flags(path: &CStr) -> Result<libc::c_ulong, Errno> {
    // SAFETY: plain data for which zero is valid.
    let mut stat: libc::statvfs64 = unsafe { std::mem::zeroed() };
    // SAFETY: a C string and a structure that are valid for the whole call.
    check(unsafe { libc::statvfs64(path.as_ptr(), &raw mut stat) })?;
    let pairs = [
        (libc::ST_NOSUID, libc::MS_NOSUID),
        (libc::ST_NODEV, libc::MS_NODEV),
        (libc::ST_NOEXEC, libc::MS_NOEXEC),
        (libc::ST_NOATIME, libc::MS_NOATIME),
        (libc::ST_NODIRATIME, libc::MS_NODIRATIME),
        (libc::ST_RELATIME, libc::MS_RELATIME),
    ];
    let set = pairs.into_iter().filter(|(shown, _)| stat.f_flag & shown != 0);
    Ok(set.fold(0, |flags, (_, flag)| flags | flag))
}

/// The calls that make nodes, change their modes and owners, or load modules.
#[cfg(target_arch = "x86_64")]
const CHANGING: &[i64] = &[
    libc::SYS_mknod,
    libc::SYS_mknodat,
    libc::SYS_chmod,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    SYS_FCHMODAT2,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
];
/// The calls that make nodes, change their modes and owners, or load modules.
#[cfg(not(target_arch = "x86_64"))]
const CHANGING: &[i64] = &[
    libc::SYS_mknodat,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    SYS_FCHMODAT2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
];

/// The calls that make and remove names in a folder, beyond creating plain files.
#[cfg(target_arch = "x86_64")]
const RENAMING: &[i64] = &[
    libc::SYS_unlink,
    libc::SYS_unlinkat,
    libc::SYS_rename,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_symlink,
    libc::SYS_symlinkat,
    libc::SYS_link,
    libc::SYS_linkat,
];
/// The calls that make and remove names in a folder, beyond creating plain files.
#[cfg(not(target_arch = "x86_64"))]
const RENAMING: &[i64] =
    &[libc::SYS_unlinkat, libc::SYS_renameat2, libc::SYS_symlinkat, libc::SYS_linkat];

/// Lets the kernel answer EPERM to calls that change nodes or modules and, when `names_too`, to
/// those that remove or rename anything. Implies [`forbid_new_privileges`].
pub(crate) fn refuse_changing_calls(names_too: bool) -> Result<(), Errno> {
    let more = if names_too { RENAMING } else { &[] };
    let rules: BTreeMap<i64, Vec<SeccompRule>> =
        CHANGING.iter().chain(more).map(|number| (*number, Vec::new())).collect();
    let refuse = SeccompAction::Errno(Errno::EPERM.0.cast_unsigned());
    let program = TargetArch::try_from(std::env::consts::ARCH)
        .and_then(|arch| SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch))
        .and_then(BpfProgram::try_from)
        .map_err(|_| Errno::ENOSYS)?;
    seccompiler::apply_filter(&program).map_err(|error| match error {
        seccompiler::Error::Prctl(error) | seccompiler::Error::Seccomp(error) => {
            super::errno_of(&error)
        }
        _ => Errno::EINVAL,
    })
}
