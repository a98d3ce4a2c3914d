//! Observing changes nothing, whatever a driver library tries.

use std::process::Command;

use crate::collected::{Collected, is_root, script};
use crate::trials::library;

/// A /dev of its own with a node that is a GPU's by name only, listed before and after.
const PRIVATE_DEV: &str = r"
set -e
mount --make-rprivate /
mkdir /tmp/gpudx-dev-$$; mount -t tmpfs -o mode=755 none /tmp/gpudx-dev-$$
for node in null zero full random urandom tty; do cp -a /dev/$node /tmp/gpudx-dev-$$/; done
mkdir /tmp/gpudx-dev-$$/shm
mount --move /tmp/gpudx-dev-$$ /dev; rmdir /tmp/gpudx-dev-$$
mknod -m 666 /dev/nvidia0 c 1 3
";

/// What the library tells of its attempts, by the word for each.
fn attempts(run: &str) -> Vec<(&str, &str)> {
    let stderr = run.split("\"key\":\"stderr\",\"value\":\"").nth(1).unwrap();
    let lines = stderr.split('"').next().unwrap().split("\\n");
    lines.filter_map(|line| line.split_once('=')).collect()
}

fn assert_all_refused(collected: &Collected) {
    let run = collected.probe("cuinit#1").unwrap();
    let attempts = attempts(run);
    assert_eq!(attempts.len(), 10, "{run}");
    for (what, result) in attempts {
        // Opening a node for writing is what a driver library lives by.
        let expected = what == "open";
        assert_eq!(result == "done", expected, "{what}: {result}");
    }
}

pub(crate) fn observing_as_root_changes_nothing() {
    let Some(folder) = library().filter(|_| is_root()) else { return };
    let listing = "ls -lAn --time-style=full-iso /dev";
    let text =
        format!("{PRIVATE_DEV}\n{listing} > \"$BEFORE\"; \"$0\" __collect; {listing} > \"$AFTER\"");
    let (before, after) = (folder.path().join("before"), folder.path().join("after"));
    let inner = script(&text);
    let collected = Collected::from(
        Command::new("unshare")
            .arg("-m")
            .arg(inner.get_program())
            .args(inner.get_args())
            .env("LD_LIBRARY_PATH", folder.path())
            .env("MODE", "change")
            .env("BEFORE", &before)
            .env("AFTER", &after),
    );
    assert_all_refused(&collected);
    let (before, after) =
        (std::fs::read_to_string(before).unwrap(), std::fs::read_to_string(after).unwrap());
    assert!(before.contains("nvidia0"), "{before}");
    assert_eq!(before, after);
    let guards = collected.probe("cuinit#1").unwrap();
    assert!(guards.contains("/dev is read-only for this probe"), "{guards}");
    assert!(!guards.contains("guard-missing"), "{guards}");
    let nodes = collected.probe("nodes#1").unwrap();
    assert!(nodes.contains("its major 1 belongs to mem"), "{nodes}");
}

pub(crate) fn observing_as_a_user_changes_nothing() {
    let Some(folder) = library().filter(|_| is_root()) else { return };
    let binary = std::env::current_exe().unwrap();
    let copy = folder.path().join("gpudx");
    std::fs::copy(&binary, &copy).unwrap();
    let text = format!(
        "{PRIVATE_DEV}\nexec setpriv --reuid 65534 --regid 65534 --clear-groups \
         --inh-caps=-all \"$COPY\" __collect"
    );
    let inner = script(&text);
    let collected = Collected::from(
        Command::new("unshare")
            .arg("-m")
            .arg(inner.get_program())
            .args(inner.get_args())
            .env("LD_LIBRARY_PATH", folder.path())
            .env("MODE", "change")
            .env("COPY", &copy),
    );
    assert_all_refused(&collected);
    let guards = collected.probe("cuinit#1").unwrap();
    assert!(guards.contains("module loading are refused"), "{guards}");
    assert!(!guards.contains("guard-missing"), "{guards}");
}

/// A node whose major number nobody has registered: opening it could load a module.
pub(crate) fn nodes_without_a_driver() {
    if !is_root() {
        return;
    }
    if std::fs::read_to_string("/proc/devices").unwrap().contains("195 nvidia") {
        println!("skipped: the driver is loaded here");
        return;
    }
    let text = format!("{PRIVATE_DEV}\nmknod /dev/nvidiactl c 195 255; \"$0\" __collect");
    let inner = script(&text);
    let collected = Collected::from(
        Command::new("unshare").arg("-m").arg(inner.get_program()).args(inner.get_args()),
    );
    for probe in ["nodes#1", "module#1"] {
        let run = collected.probe(probe).unwrap();
        assert!(run.contains("\"on\":\"/dev/nvidiactl\",\"code\":-1"), "{run}");
        assert!(run.contains("its major 195 is not registered"), "{run}");
    }
    // Where the kernel can load modules, the libraries would make it do so.
    let loads = std::path::Path::new("/proc/sys/kernel/modprobe").exists();
    let run = collected.probe("cuinit#1").unwrap();
    assert_eq!(run.contains("not-tried"), loads, "{run}");
}
