//! The figures of docs/measurements.md: whole processes, each against a peer in the same run.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use crate::run::{cargo, must, root, say};

mod long_log;
mod timing;
mod tracing;

pub(crate) use timing::peak_of;
use timing::{RUNS, median, milliseconds, paired, peak_mib, quiet, wall};

/// Prints the figures. On a machine with a GPU the real driver is measured as well. With
/// `--prebuilt FOLDER` nothing is built, for machines that have a GPU and no compiler; with
/// `--tracing` only the cost of tracing is measured.
pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    let (only_tracing, arguments) = match arguments {
        [rest @ .., "--tracing"] => (true, rest),
        all => (false, all),
    };
    let release = match arguments {
        ["--prebuilt", folder] => PathBuf::from(folder),
        _ => build()?,
    };
    say("| what | figure | limit |");
    say("|---|---|---|");
    if only_tracing {
        return tracing::run(&release);
    }
    let folder = tempfile::tempdir()?;
    fake_driver(&release, folder.path())?;
    if Path::new("/proc/driver/nvidia/version").exists() {
        real_gpu(&release)?;
    } else {
        no_gpu(&release)?;
    }
    slow_cuinit(&release, folder.path())?;
    deadline(&release, folder.path())?;
    tracing::run(&release)?;
    long_log::run(&release.join("gpudx"), folder.path())
}

fn build() -> Result<PathBuf> {
    let mut build = cargo(&["build", "--release"]);
    for package in ["gpudx", "synth", "fakedriver"] {
        build.args(["--package", package]);
    }
    must(&mut build)?;
    let target = std::env::var_os("CARGO_TARGET_DIR");
    Ok(target.map_or_else(|| root().join("target"), PathBuf::from).join("release"))
}

/// The stand-in driver under the names of a real one.
fn fake_driver(release: &Path, folder: &Path) -> Result<()> {
    for name in ["libcuda.so.1", "libnvidia-ml.so.1"] {
        let from = release.join("libfakedriver.so");
        std::fs::copy(&from, folder.join(name))
            .with_context(|| format!("cannot copy {}", from.display()))?;
    }
    Ok(())
}

fn no_gpu(release: &Path) -> Result<()> {
    let gpudx = release.join("gpudx");
    let mut check = quiet(&gpudx, &["check"]);
    check.env_remove("LD_LIBRARY_PATH");
    let status = check.status()?;
    ensure!(status.code() == Some(0), "gpudx on a machine without a GPU: {status}");
    let mut times = Vec::new();
    for _ in 0..RUNS {
        times.push(wall(&mut check)?);
    }
    let (time, memory) = (milliseconds(median(times)), peak_mib(&gpudx, &["check"])?);
    say(&format!("| `gpudx` without a GPU: wall time, median of {RUNS} | {time:.0} ms | 50 ms |"));
    say(&format!("| the same: peak memory of the largest process | {memory:.1} MiB | 30 MiB |"));
    Ok(())
}

fn slow_cuinit(release: &Path, folder: &Path) -> Result<()> {
    let with_fake = |program: &str, arguments: &[&str]| {
        let mut command = quiet(&release.join(program), arguments);
        command.env("LD_LIBRARY_PATH", folder).env("GPUDX_FAKE", "cuinit=slow:200");
        command
    };
    let (ours, bare, ratio) =
        paired(&mut with_fake("gpudx", &["check"]), &mut with_fake("cuinit-bare", &[]))?;
    say(&format!(
        "| `gpudx check` over a bare cuInit of 200 ms: {:.0} ms / {:.0} ms | {ratio:.2} | 1.25 |",
        milliseconds(ours),
        milliseconds(bare),
    ));
    Ok(())
}

fn deadline(release: &Path, folder: &Path) -> Result<()> {
    let mut command = quiet(&release.join("gpudx"), &["check", "--deadline", "5s"]);
    command.env("LD_LIBRARY_PATH", folder).env("GPUDX_FAKE", "cuinit=hang-deaf,nvml=hang-deaf");
    let time = wall(&mut command)?.as_secs_f64();
    say(&format!(
        "| `--deadline 5s` with cuInit and NVML hanging and deaf to SIGTERM | {time:.2} s | 5.5 s |"
    ));
    Ok(())
}

fn real_gpu(release: &Path) -> Result<()> {
    let mut check = quiet(&release.join("gpudx"), &["check"]);
    let status = check.status()?;
    say(&format!("| `gpudx check` on this machine: exit status | {:?} | 0 |", status.code()));
    let mut bare = quiet(&release.join("cuinit-bare"), &[]);
    let (ours, theirs, ratio) = paired(&mut check, &mut bare)?;
    say(&format!(
        "| `gpudx check` over a bare cuInit program: {:.0} ms / {:.0} ms | {ratio:.2} | 1.35 |",
        milliseconds(ours),
        milliseconds(theirs),
    ));
    let mut full = quiet(&release.join("gpudx"), &["check", "--context"]);
    let mut bare = quiet(&release.join("cuinit-bare"), &[]);
    let (ours, theirs, ratio) = paired(&mut full, &mut bare)?;
    say(&format!(
        "| `gpudx check --context` over a bare cuInit program: {:.0} ms / {:.0} ms | {ratio:.2} | |",
        milliseconds(ours),
        milliseconds(theirs),
    ));
    let memory = peak_mib(&release.join("gpudx"), &["check", "--context"])?;
    say(&format!("| peak memory of the largest process of all | {memory:.1} MiB | |"));
    Ok(())
}
