//! `--save`: a bundle that `gpudx read` takes, as it takes the lines that people see.

use std::process::{Command, Stdio};

use libtest_mimic::{Failed, Trial};
use serde_json::Value;

use crate::support::{Outcome, skipped};
use crate::targets::is_root;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::test("a_saved_trace_names_the_call_in_flight", in_flight),
        Trial::test("a_saved_trace_overwrites_nothing", overwrites_nothing),
    ]
}

fn read(file: &std::path::Path) -> Result<Value, Failed> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpudx"));
    let output = command.args(["read", "--format", "json"]).arg(file).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    serde_json::from_str(&text).map_err(|error| {
        format!("{error}: {text}{}", String::from_utf8_lossy(&output.stderr)).into()
    })
}

/// Opening a pipe that nobody writes to never returns; in the program's own /dev it is the node.
fn in_flight() -> Outcome {
    if !is_root() {
        return skipped("not root, who alone can have a /dev of their own");
    }
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("hang.gpudx");
    let script = "mount -t tmpfs none /mnt && mkfifo /mnt/nvidia-uvm && mknod /mnt/null c 1 3 \
        && mount --bind /mnt /dev && exec \"$GPUDX\" trace --deadline 1s --save \"$FILE\" -- \
        sh -c 'true < /dev/nvidia-uvm'";
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", script]);
    command.env("GPUDX", env!("CARGO_BIN_EXE_gpudx")).env("FILE", &file);
    let output = command.stdin(Stdio::null()).output()?;
    if !file.exists() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(format!("no bundle: {:?} {said}", output.status).into());
    }
    let names = std::fs::read_dir(folder.path())?.count();
    // What people paste is the lines that they saw.
    let pasted = folder.path().join("pasted.txt");
    std::fs::write(&pasted, &output.stderr)?;
    for input in [&file, &pasted] {
        let report = read(input)?;
        if !is_stuck_in_open(&report) {
            return Err(format!("{}: {report:#}", input.display()).into());
        }
    }
    if names == 1 { Ok(()) } else { Err(format!("{names} files").into()) }
}

fn is_stuck_in_open(report: &Value) -> bool {
    let probes = report["probes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let stuck = probes.iter().find_map(|probe| probe["stuck"]["call"].as_str());
    stuck.is_some_and(|call| call.contains("open on /dev/nvidia-uvm"))
}

fn overwrites_nothing() -> Outcome {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("mine");
    std::fs::write(&file, "mine")?;
    let mark = folder.path().join("ran");
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpudx"));
    command.args(["trace", "--save"]).arg(&file).args(["--", "touch"]).arg(&mark);
    let output = command.stdin(Stdio::null()).output()?;
    let kept = std::fs::read_to_string(&file)? == "mine" && !mark.exists();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let told = said.contains("overwrites nothing") && output.status.code() == Some(2);
    if kept && told { Ok(()) } else { Err(said.into()) }
}
