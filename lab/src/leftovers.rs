//! What a run or the whole lab leaves behind: processes, mounts, cgroups, nodes.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::run::{CGROUP_V1, MARK};

/// How the lab's cgroups begin.
pub(crate) const CGROUP: &str = "gpudx-lab-";

/// What `beside` of `lab/inject.sh` gives the processes that a fault consists of.
const PART: &str = "GPUDX_LAB_PART=1";

/// Ends every process of a run that still lives, and names them.
pub(crate) fn end_marked(mark: &str) -> Vec<String> {
    let mut named = Vec::new();
    // What the fault itself consists of ends with it; everything else should have ended by itself.
    for pid in with_environment(&[&format!("{MARK}={mark}"), PART]) {
        signal(&pid.to_string());
    }
    for attempt in 0..10 {
        let living = marked(mark);
        if living.is_empty() {
            break;
        }
        // Children that were killed with the program need a moment to go.
        if attempt == 3 {
            named = living.iter().map(|pid| format!("process {}", describe(*pid))).collect();
        }
        if attempt >= 3 {
            for pid in &living {
                signal(&pid.to_string());
            }
        }
        std::thread::sleep(Duration::from_millis(10 << attempt.min(4)));
    }
    named.extend(marked(mark).iter().map(|pid| format!("unkillable process {}", describe(*pid))));
    named
}

fn marked(mark: &str) -> Vec<u32> {
    with_environment(&[&format!("{MARK}={mark}")])
}

/// The processes that were started with all these settings.
fn with_environment(settings: &[&str]) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let is_set = |setting: &&str| {
            environment.split(|byte| *byte == 0).any(|entry| entry == setting.as_bytes())
        };
        settings.iter().all(is_set)
    })
    .collect()
}

fn describe(pid: u32) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<_> = line.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    format!("{pid} {}", words.join(" ").trim_end())
}

/// Kills the process group that this process leads.
pub(crate) fn kill_group(leader: u32) {
    signal(&format!("-{leader}"));
}

fn signal(target: &str) {
    let mut kill = Command::new("kill");
    kill.args(["-KILL", "--", target]).stdout(Stdio::null()).stderr(Stdio::null());
    // A process that is gone already is what is wanted.
    let _ = kill.status();
}

/// Removes a cgroup, whose members may need a moment to go; says so when it stays.
pub(crate) fn remove_cgroup(folder: &Path) -> Option<String> {
    for _ in 0..50 {
        if fs::remove_dir(folder).is_ok() || !folder.exists() {
            return None;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Some(format!("cgroup {}", folder.display()))
}

/// The state of the machine that a lab may not change, a line for each thing.
pub(crate) fn snapshot(cgroup_v2: Option<&Path>) -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    for folder in ["/dev", "/dev/char", "/dev/nvidia-caps"] {
        lines.extend(nodes(Path::new(folder)));
    }
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    for line in mounts.lines() {
        let mut words = line.split(' ').skip(3);
        let shown: Vec<_> = words.by_ref().take(2).collect();
        if shown.last().is_some_and(|point| may_be_ours(point)) {
            lines.insert(format!("mount {}", shown.join(" ")));
        }
    }
    let mut cgroups: Vec<PathBuf> = cgroup_v2.map(Path::to_owned).into_iter().collect();
    cgroups.push(PathBuf::from(CGROUP_V1));
    for root in cgroups {
        let entries = fs::read_dir(root).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let ours = names.filter(|name| name.starts_with(CGROUP));
        lines.extend(ours.map(|name| format!("cgroup {name}")));
    }
    lines
}

/// Whether the lab could have made a mount at this point. Of the folder for temporary files, where
/// other programs come and go meanwhile, only the part that is the lab's own counts.
fn may_be_ours(point: &str) -> bool {
    let temporary = std::env::temp_dir();
    let below = Path::new(point).strip_prefix(&temporary);
    below.map_or(true, |below| below.to_string_lossy().starts_with(CGROUP))
}

/// Nodes and links of the driver in a folder, with numbers, mode and owner.
fn nodes(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut lines = Vec::new();
    for entry in entries {
        let Ok(data) = entry.path().symlink_metadata() else { continue };
        let target = fs::read_link(entry.path()).unwrap_or_default();
        let path = entry.path().display().to_string();
        if path.contains("nvidia") || target.to_string_lossy().contains("nvidia") {
            let target = target.display();
            lines.push(format!(
                "node {path} {:x} {:o} {}:{} {target}",
                data.rdev(),
                data.mode(),
                data.uid(),
                data.gid()
            ));
        }
    }
    lines
}

/// What differs between two snapshots.
pub(crate) fn differences(before: &BTreeSet<String>, after: &BTreeSet<String>) -> Vec<String> {
    let gone = before.difference(after).map(|line| format!("gone: {line}"));
    let new = after.difference(before).map(|line| format!("new: {line}"));
    gone.chain(new).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_of_other_programs_are_not_the_labs() {
        let below = |name: &str| std::env::temp_dir().join(name).display().to_string();
        assert!(may_be_ours("/dev/nvidia-uvm") && may_be_ours("/"));
        assert!(may_be_ours(&below("gpudx-lab-591/dev")));
        assert!(!may_be_ours(&below(".tmpLiH9uE/mount")));
    }
}
