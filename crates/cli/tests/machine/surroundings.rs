//! Surroundings in which much is missing: a verdict or one clear line, never a panic.

use std::process::{Command, Stdio};

use libtest_mimic::Trial;

use crate::common::{Outcome, gpudx, is_root, skipped, test};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        test("a_verdict_in_every_surrounding", everywhere),
        test("strange_environment_and_narrow_terminal", strange),
        test("closed_standard_input", closed_input),
        test("a_blind_check_is_undetermined", blind),
        test("no_gpu_is_said_and_is_no_fault", no_gpu),
    ]
}

/// Exit statuses that are verdicts.
fn is_verdict(status: Option<i32>) -> bool {
    matches!(status, Some(0..=2))
}

fn in_script(script: &str, needs_root: bool) -> Outcome {
    if needs_root && !is_root() {
        return skipped(format!("not root, for {script}"));
    }
    let program = env!("CARGO_BIN_EXE_gpudx");
    let mut command = if needs_root {
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c"]);
        command
    } else {
        let mut command = Command::new("sh");
        command.arg("-c");
        command
    };
    let output = command.arg(script).env("GPUDX", program).stdin(Stdio::null()).output()?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    let told = !stdout.trim().is_empty() || stderr.lines().count() == 1;
    if is_verdict(output.status.code()) && told && !stderr.contains("panicked") {
        return Ok(());
    }
    Err(format!("{script}: {:?}\n{stdout}\n{stderr}", output.status).into())
}

fn everywhere() -> Outcome {
    in_script("ulimit -n 8; exec \"$GPUDX\" check", false)?;
    in_script("ulimit -v 500000; exec \"$GPUDX\" check", false)?;
    in_script("unset TMPDIR HOME PATH; exec \"$GPUDX\" check", false)?;
    in_script("umount -l /proc; exec \"$GPUDX\" check", true)?;
    in_script("umount -l /sys; exec \"$GPUDX\" check", true)?;
    in_script(
        "mount --make-rprivate / && mount --bind / / && mount -o remount,bind,ro / && exec \"$GPUDX\" check",
        true,
    )
}

fn strange() -> Outcome {
    use std::os::unix::ffi::OsStrExt;
    let bytes = std::ffi::OsStr::from_bytes(b"\xff\xfe=\x01");
    for columns in ["1", "40", "200", "0", "x"] {
        let output = gpudx(&["check"])
            .env("COLUMNS", columns)
            .env("CUDA_VISIBLE_DEVICES", bytes)
            .env("LC_ALL", bytes)
            .output()?;
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        if !is_verdict(output.status.code()) || stderr.contains("panicked") {
            return Err(format!("COLUMNS={columns}: {:?} {stderr}", output.status).into());
        }
    }
    Ok(())
}

fn closed_input() -> Outcome {
    in_script("exec \"$GPUDX\" check <&-", false)?;
    in_script("exec \"$GPUDX\" read - <&-", false)
}

/// Only where this machine has nothing of NVIDIA's.
fn no_gpu() -> Outcome {
    let devices = std::fs::read_to_string("/proc/devices")?;
    if devices.contains("nvidia") {
        return skipped("this machine has a driver");
    }
    let output = gpudx(&["check", "--format", "json"]).env_remove("LD_LIBRARY_PATH").output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let json: serde_json::Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    if json["state"] == "no-gpu" && output.status.code() == Some(0) {
        return Ok(());
    }
    Err(format!("{:?} {text}", output.status).into())
}

/// With four descriptors no probe can be started, so that nothing is known.
fn blind() -> Outcome {
    let output = Command::new("sh")
        .args(["-c", "ulimit -n 4; exec \"$GPUDX\" check"])
        .env("GPUDX", env!("CARGO_BIN_EXE_gpudx"))
        .stdin(Stdio::null())
        .output()?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.code() == Some(2) && !stdout.contains("No GPU") {
        return Ok(());
    }
    Err(format!("{:?} {stdout}", output.status).into())
}
