//! What an experiment changes about this process before the probe runs. Nothing here reaches beyond
//! it: limits, user and mounts are its own.

use std::ffi::OsString;
use std::fs;

use facts::Errno;
use facts::model::experiment::Change;

use super::traced;
use crate::probes::Options;
use crate::supervise::CHILD_WORD;
use crate::sys::identity::{self, Identity};
use crate::sys::{isolate, process};

/// The file that names libraries to be loaded before all others, into every program.
const PRELOAD_FILE: &str = "/etc/ld.so.preload";
/// Variable that says to the second run of this binary that the file is hidden already.
const HIDDEN: &str = "GPUDX_PRELOAD_HIDDEN";

/// Makes the changes that take another run of this binary: returns only where none is needed.
pub(super) fn before_report(options: &Options, probe: &str) {
    match options.change {
        Change::Traced => traced::run(probe, options),
        Change::WithoutHooks if preloads() && std::env::var_os(HIDDEN).is_none() => {
            let words = arguments(probe, options, &options.change);
            // Where it cannot be hidden, `apply` finds it and says so.
            if isolate::hide_file(c"/etc/ld.so.preload").is_ok() {
                process::become_own_binary(&words, (HIDDEN, "1"));
            }
        }
        _ => {}
    }
}

/// The command line of a probe's child.
pub(super) fn arguments(probe: &str, options: &Options, change: &Change) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec![CHILD_WORD.into(), probe.into()];
    if options.context {
        words.push("--context".into());
    }
    if *change != Change::Nothing {
        words.extend(["--change".into(), change.to_string().into()]);
    }
    words
}

/// Makes the other changes; the error says why one cannot be made.
pub(super) fn apply(change: &Change) -> Result<(), String> {
    let told = |errno: Errno| errno.to_string();
    match change {
        Change::Limit(limited, value) => process::set_soft_limit(*limited, *value).map_err(told),
        Change::User(uid) => {
            let identity = identity_of(*uid, &text("/etc/passwd"), &text("/etc/group"));
            identity::become_user(&identity).map_err(told)
        }
        Change::WithoutHooks if preloads() => {
            Err(format!("{PRELOAD_FILE} cannot be hidden from a child: it takes root"))
        }
        _ => Ok(()),
    }
}

fn preloads() -> bool {
    text(PRELOAD_FILE).lines().any(|line| {
        let names = line.split('#').next().unwrap_or("");
        !names.trim().is_empty()
    })
}

fn text(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The groups of a user by the machine's own files. A user that they do not have is in the group
/// of the same number.
fn identity_of(uid: u32, passwd: &str, group: &str) -> Identity {
    let rows = |text: &str| -> Vec<Vec<String>> {
        text.lines().map(|line| line.split(':').map(str::to_owned).collect()).collect()
    };
    let number = |row: &[String], field: usize| row.get(field)?.parse::<u32>().ok();
    let user = rows(passwd).into_iter().find(|row| number(row, 2) == Some(uid));
    let gid = user.as_deref().and_then(|row| number(row, 3)).unwrap_or(uid);
    let name = user.as_deref().and_then(<[String]>::first).cloned().unwrap_or_default();
    let member = |row: &Vec<String>| {
        row.get(3).is_some_and(|names| !name.is_empty() && names.split(',').any(|one| one == name))
    };
    let mut groups: Vec<u32> = vec![gid];
    groups.extend(rows(group).iter().filter(|row| member(row)).filter_map(|row| number(row, 2)));
    groups.dedup();
    Identity { uid, gid, groups }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_the_groups_of_the_files() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nada:x:1000:1000::/home/ada:/bin/sh\n";
        let group = "root:x:0:\nvideo:x:44:bob,ada\nrender:x:109:bob\nada:x:1000:\n";
        let ada = Identity { uid: 1000, gid: 1000, groups: vec![1000, 44] };
        assert_eq!(identity_of(1000, passwd, group), ada);
        let nobody = Identity { uid: 65_534, gid: 65_534, groups: vec![65_534] };
        assert_eq!(identity_of(65_534, passwd, group), nobody);
    }
}
