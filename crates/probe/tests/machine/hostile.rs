//! Surroundings in which much is missing: the collection still comes to its end, and says what it
//! could see.

use std::process::Command;

use crate::collected::{Collected, collector, is_root, script};

/// Collects under a script; with `unshare` in a mount namespace of its own.
fn collect(text: &str, unshare: bool) -> Collected {
    let inner = script(text);
    if !unshare {
        let mut command = inner;
        return Collected::from(&mut command);
    }
    let mut command = Command::new("unshare");
    command.arg("-m").arg(inner.get_program()).args(inner.get_args());
    Collected::from(&mut command)
}

fn assert_returned(collected: &Collected, probes: &[&str]) {
    for probe in probes {
        assert_eq!(collected.outcome(probe), Some("returned"), "{probe}");
    }
}

pub(crate) fn few_descriptors() {
    let collected = collect("ulimit -n 8; exec \"$0\" __collect", false);
    assert_returned(&collected, &["passive#1", "libraries#1", "sandbox#1", "frameworks#1"]);
}

pub(crate) fn little_memory() {
    let collected = collect("ulimit -v 500000; exec \"$0\" __collect", false);
    assert_returned(&collected, &["passive#1", "kernel-log#1", "frameworks#1"]);
}

pub(crate) fn no_proc() {
    if is_root() {
        let collected = collect("umount -l /proc; exec \"$0\" __collect", true);
        assert_returned(&collected, &["passive#1", "sandbox#1", "libraries#1"]);
        assert!(collected.0.contains("item /proc/modules Absent"), "{}", collected.0);
    }
}

pub(crate) fn no_sys() {
    if is_root() {
        let collected = collect("umount -l /sys; exec \"$0\" __collect", true);
        assert_returned(&collected, &["passive#1", "pci#1"]);
        assert!(collected.0.contains("item /sys/bus/pci/devices Absent"), "{}", collected.0);
    }
}

pub(crate) fn read_only_root() {
    if is_root() {
        let text = "mount --make-rprivate / && mount --bind / / && mount -o remount,bind,ro / && \
                    unset TMPDIR && exec \"$0\" __collect";
        assert_returned(&collect(text, true), &["passive#1", "frameworks#1"]);
    }
}

pub(crate) fn closed_descriptors() {
    let collected = collect("exec \"$0\" __collect <&- 2>&-", false);
    assert_returned(&collected, &["passive#1", "process#1"]);
    let status = script("exec \"$0\" __collect <&- >&- 2>&-").status().unwrap();
    assert!(status.success());
}

pub(crate) fn children_reaped_by_the_kernel() {
    let collected = collect("trap '' CHLD; exec \"$0\" __collect", false);
    assert_returned(&collected, &["passive#1", "process#1"]);
    assert!(collected.probe("passive#1").unwrap().contains("\"code\":0"));
}

pub(crate) fn strange_environment() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let strange = OsStr::from_bytes(b"\xff=\xfe\n\x01");
    let collected = Collected::from(
        collector().env_clear().env("LD_LIBRARY_PATH", strange).env("CUDA_\u{fffd}", strange),
    );
    assert_returned(&collected, &["passive#1", "process#1", "libraries#1", "frameworks#1"]);
}
