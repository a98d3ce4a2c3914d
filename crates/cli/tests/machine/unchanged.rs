//! A whole check leaves the machine as it was, whatever the driver library tries.

use libtest_mimic::Trial;

use crate::common::{Outcome, is_root, skipped, stand_in, test};

pub(crate) fn trials() -> Vec<Trial> {
    vec![test("a_check_leaves_dev_as_it_was", dev_stays)]
}

/// A /dev with one right node missing and one wrong one, listed before and after a check by root.
const SCRIPT: &str = r#"
set -e
mount --make-rprivate /
mkdir -p "$FOLDER/dev"; mount -t tmpfs -o mode=755 none "$FOLDER/dev"
for node in null zero full random urandom tty; do cp -a /dev/$node "$FOLDER/dev/"; done
mkdir "$FOLDER/dev/shm"; mknod -m 644 "$FOLDER/dev/nvidia0" c 1 3
mount --move "$FOLDER/dev" /dev
list() { find /dev "$FOLDER/lib" /etc -xdev -printf '%p %y %m %U:%G %s %T@ %l\n' | sort; stat -c '%n %t:%T' /dev/*; }
list > "$FOLDER/before"
"$GPUDX" check --format json > "$FOLDER/report" || true
list > "$FOLDER/after"
"#;

fn dev_stays() -> Outcome {
    if !is_root() {
        return skipped("not root");
    }
    let folder = stand_in()?;
    let acts = folder.path().join("acts");
    let status = std::process::Command::new("unshare")
        .args(["-m", "sh", "-c", SCRIPT])
        .env("FOLDER", folder.path())
        .env("GPUDX", env!("CARGO_BIN_EXE_gpudx"))
        .env("LD_LIBRARY_PATH", folder.path().join("lib"))
        .env("GPUDX_FAKE", format!("cuinit=mischief:/dev,record={}", acts.display()))
        .status()?;
    if !status.success() {
        return skipped("no mount namespaces here");
    }
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name));
    let done = read("acts")?;
    if !done.contains("act cuinit") {
        return Err(format!("the library never ran, so that nothing was shown: {done}").into());
    }
    let (before, after) = (read("before")?, read("after")?);
    if before != after {
        return Err(format!("before:\n{before}\nafter:\n{after}\nacts:\n{done}").into());
    }
    Ok(())
}
