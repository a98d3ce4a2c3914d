//! A seccomp filter, written by hand: compare the call's number, then perhaps its second argument.

use core::ffi::{c_long, c_ulong};

/// What becomes of a call.
enum Fate {
    Errno(u32),
    Held,
}

/// One rule.
pub(crate) struct Rule {
    call: c_long,
    fate: Fate,
    /// Mask and value of the second argument's low half.
    second: Option<(u32, u32)>,
}

impl Rule {
    /// Reads `NAME:ERRNO[:MASK=VALUE]`.
    pub(crate) fn deny(text: &str) -> Result<Rule, String> {
        let (name, rest) = text.split_once(':').ok_or_else(|| format!("no errno in {text}"))?;
        let (errno, second) = rest.split_once(':').map_or((rest, None), |(a, b)| (a, Some(b)));
        let errno = match errno {
            "EPERM" => libc::EPERM,
            "ENOSYS" => libc::ENOSYS,
            "EACCES" => libc::EACCES,
            "EINVAL" => libc::EINVAL,
            _ => return Err(format!("unknown errno {errno}")),
        };
        let fate = Fate::Errno(errno.cast_unsigned());
        Ok(Rule { call: number_of(name)?, fate, second: condition(second)? })
    }

    /// Reads `NAME[:MASK=VALUE]`.
    pub(crate) fn hold(text: &str) -> Result<Rule, String> {
        let (name, second) = text.split_once(':').map_or((text, None), |(a, b)| (a, Some(b)));
        Ok(Rule { call: number_of(name)?, fate: Fate::Held, second: condition(second)? })
    }
}

fn number_of(name: &str) -> Result<c_long, String> {
    Ok(match name {
        "ioctl" => libc::SYS_ioctl,
        "openat" => libc::SYS_openat,
        "memfd_create" => libc::SYS_memfd_create,
        "mmap" => libc::SYS_mmap,
        "mknodat" => libc::SYS_mknodat,
        "clone3" => libc::SYS_clone3,
        "sched_setaffinity" => libc::SYS_sched_setaffinity,
        "mbind" => libc::SYS_mbind,
        "set_mempolicy" => libc::SYS_set_mempolicy,
        "get_mempolicy" => libc::SYS_get_mempolicy,
        "process_vm_readv" => libc::SYS_process_vm_readv,
        _ => return Err(format!("unknown call {name}")),
    })
}

fn condition(text: Option<&str>) -> Result<Option<(u32, u32)>, String> {
    let Some(text) = text else { return Ok(None) };
    let number = |text: &str| u32::from_str_radix(text.trim_start_matches("0x"), 16).ok();
    let both = text.split_once('=').and_then(|(mask, value)| Some((number(mask)?, number(value)?)));
    both.map(Some).ok_or_else(|| format!("cannot read {text}"))
}

// Opcodes of linux/bpf_common.h: LD W ABS, ALU AND K, JEQ K, RET K.
const LOAD: u16 = 0x20;
const AND: u16 = 0x54;
const JUMP_EQUAL: u16 = 0x15;
const RETURN: u16 = 0x06;
/// Offsets in `struct seccomp_data`, on little-endian machines.
const NUMBER_AT: u32 = 0;
const SECOND_AT: u32 = 16 + 8;

fn program(rules: &[Rule]) -> Vec<libc::sock_filter> {
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut program = Vec::new();
    for rule in rules {
        let action = match rule.fate {
            Fate::Errno(errno) => libc::SECCOMP_RET_ERRNO | errno,
            Fate::Held => libc::SECCOMP_RET_USER_NOTIF,
        };
        let number = u32::try_from(rule.call).unwrap_or(u32::MAX);
        program.push(step(LOAD, 0, 0, NUMBER_AT));
        program.push(step(JUMP_EQUAL, 0, if rule.second.is_some() { 4 } else { 1 }, number));
        if let Some((mask, value)) = rule.second {
            program.push(step(LOAD, 0, 0, SECOND_AT));
            program.push(step(AND, 0, 0, mask));
            program.push(step(JUMP_EQUAL, 0, 1, value));
        }
        program.push(step(RETURN, 0, 0, action));
    }
    program.push(step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW));
    program
}

/// Sets the filter for this process and all that it starts.
pub(crate) fn apply(rules: &[Rule]) -> Result<(), String> {
    if rules.is_empty() {
        return Ok(());
    }
    let told = |what: &str| format!("{what}: {}", std::io::Error::last_os_error());
    let mut program = program(rules);
    let filter = libc::sock_fprog {
        len: u16::try_from(program.len()).map_err(|_| "too many rules")?,
        filter: program.as_mut_ptr(),
    };
    let holds = rules.iter().any(|rule| matches!(rule.fate, Fate::Held));
    let flags: c_ulong = if holds { libc::SECCOMP_FILTER_FLAG_NEW_LISTENER } else { 0 };
    // SAFETY: integers, and a program that outlives the call.
    let set = unsafe {
        if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 {
            return Err(told("PR_SET_NO_NEW_PRIVS"));
        }
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const filter)
    };
    if set < 0 {
        return Err(told("seccomp"));
    }
    if let Ok(listener) = libc::c_int::try_from(set)
        && holds
    {
        // Whoever holds the listener keeps the calls waiting; the program and its children do.
        // SAFETY: a descriptor of this process.
        unsafe { libc::fcntl(listener, libc::F_SETFD, 0) };
    }
    Ok(())
}
