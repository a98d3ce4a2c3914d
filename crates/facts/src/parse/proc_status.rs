//! /proc/PID/status: identity, capabilities and policy of a process.

use super::{At, Parsed, numbered};

/// The fields that matter here; each with its line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcStatus {
    /// Effective user id.
    pub euid: Option<At<u32>>,
    /// Effective group id.
    pub egid: Option<At<u32>>,
    /// Supplementary groups.
    pub groups: Option<At<Vec<u32>>>,
    /// Effective capabilities as a bit mask.
    pub cap_effective: Option<At<u64>>,
    /// The capability bounding set as a bit mask.
    pub cap_bounding: Option<At<u64>>,
    /// Seccomp mode: 0 none, 1 strict, 2 filter.
    pub seccomp: Option<At<u8>>,
    /// Whether NoNewPrivs is set.
    pub no_new_privs: Option<At<bool>>,
}

/// Reads /proc/PID/status: `Name:` and values after a tab.
pub fn proc_status(text: &str) -> Parsed<ProcStatus> {
    let mut parsed = Parsed::<ProcStatus>::default();
    for (line, content) in numbered(text) {
        let Some((key, value)) = content.split_once(':') else {
            if !content.trim().is_empty() {
                parsed.complain(line, "not a `Name: value` line of a process's status");
            }
            continue;
        };
        if !enter(&mut parsed.value, line, key.trim(), value.trim()) {
            parsed.complain(line, "a value of a process's status that is not a number");
        }
    }
    parsed
}

/// Enters one field; false when its value has not the form that it should have.
fn enter(status: &mut ProcStatus, line: u32, key: &str, value: &str) -> bool {
    match key {
        "Uid" => set(&mut status.euid, line, effective(value)),
        "Gid" => set(&mut status.egid, line, effective(value)),
        "Groups" => set(&mut status.groups, line, numbers(value)),
        "CapEff" => set(&mut status.cap_effective, line, mask(value)),
        "CapBnd" => set(&mut status.cap_bounding, line, mask(value)),
        "Seccomp" => set(&mut status.seccomp, line, value.parse().ok()),
        "NoNewPrivs" => {
            let flag = value.parse::<u8>().ok().map(|number| number != 0);
            set(&mut status.no_new_privs, line, flag)
        }
        _ => true,
    }
}

fn set<T>(field: &mut Option<At<T>>, line: u32, value: Option<T>) -> bool {
    let known = value.is_some();
    *field = value.map(|value| At::new(line, value));
    known
}

/// The second of real, effective, saved and file system id.
fn effective(value: &str) -> Option<u32> {
    value.split_whitespace().nth(1)?.parse().ok()
}

fn numbers(value: &str) -> Option<Vec<u32>> {
    value.split_whitespace().map(|word| word.parse().ok()).collect()
}

fn mask(value: &str) -> Option<u64> {
    u64::from_str_radix(value, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_a_container_process() {
        let parsed = proc_status(
            "Name:\tpython3\nUmask:\t0022\nState:\tS (sleeping)\nUid:\t1000\t1001\t1000\t1000\n\
             Gid:\t1000\t1002\t1000\t1000\nGroups:\t44 109 \nCapInh:\t0000000000000000\n\
             CapEff:\t00000000a80425fb\nCapBnd:\t00000000a80425fb\nNoNewPrivs:\t1\n\
             Seccomp:\t2\nSeccomp_filters:\t1\n",
        );
        assert_eq!(parsed.complaints, []);
        let status = parsed.value;
        assert_eq!(status.euid, Some(At::new(4, 1001)));
        assert_eq!(status.egid, Some(At::new(5, 1002)));
        assert_eq!(status.groups, Some(At::new(6, vec![44, 109])));
        assert_eq!(status.cap_effective, Some(At::new(8, 0xa804_25fb)));
        assert_eq!(status.no_new_privs, Some(At::new(10, true)));
        assert_eq!(status.seccomp, Some(At::new(11, 2)));
    }

    #[test]
    fn values_that_are_no_numbers_are_complained_about() {
        let parsed = proc_status("CapEff:\tmany\nSeccomp:\t\nUid:\t0\nhello\n");
        assert_eq!(parsed.value, ProcStatus::default());
        assert_eq!(parsed.complaints.len(), 4);
    }
}
