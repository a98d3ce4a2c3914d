//! Every row of the fault matrices as a fault, over the real libraries of Debian's packages and a
//! stand-in for the kernel side: what the lab does without a GPU, in parts that run side by side.
//!
//! Where the packages cannot be had, each part says so and passes.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use libtest_mimic::{Arguments, Failed, Trial};

/// The parts: each takes some seconds, so that no part is long where several run at a time.
const PARTS: usize = 12;

fn main() -> std::process::ExitCode {
    let parts = (1..=PARTS).map(|part| {
        Trial::test(format!("matrix_part_{part:02}"), move || one(&format!("{part}/{PARTS}")))
    });
    libtest_mimic::run(&Arguments::from_args(), parts.collect()).exit_code()
}

fn one(part: &str) -> Result<(), Failed> {
    // What the lab takes from the folder of its own program must be there, and be of these sources.
    for made in [
        synth::artifacts::gpudx(),
        synth::artifacts::interposer(),
        synth::artifacts::fakerm(),
        synth::artifacts::nvml_bare(),
    ] {
        made?;
    }
    let lab = Path::new(env!("CARGO_BIN_EXE_lab"));
    let output = Command::new(lab)
        .args(["--sim", "--jobs", "1", "--part", part])
        .stdin(Stdio::null())
        .output()?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(2) && stderr.contains("no real driver libraries") {
        // A closed standard error takes nothing from the test.
        let _ = writeln!(std::io::stderr(), "skipped: {stderr}");
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    // A part that made nothing has shown nothing.
    let made = text.lines().any(|line| line.starts_with("right "));
    if output.status.success() && made {
        return Ok(());
    }
    Err(format!("{:?}\n{text}\n{stderr}", output.status).into())
}
