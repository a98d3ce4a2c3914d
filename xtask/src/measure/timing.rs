//! How long commands take and how much memory they use.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::run::say;

/// Runs of each command that count, after one that does not.
pub(super) const RUNS: usize = 9;

/// A command that neither reads nor shows anything.
pub(super) fn quiet(program: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// The wall time of one run.
pub(super) fn wall(command: &mut Command) -> Result<Duration> {
    let start = Instant::now();
    command.status().with_context(|| format!("cannot run {command:?}"))?;
    Ok(start.elapsed())
}

/// The middle of some times.
pub(super) fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

pub(super) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// Medians of two commands run in turn, and the median of the ratios pair by pair.
pub(super) fn paired(a: &mut Command, b: &mut Command) -> Result<(Duration, Duration, f64)> {
    wall(a)?;
    wall(b)?;
    let (mut of_a, mut of_b, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let (one, two) = (wall(a)?, wall(b)?);
        ratios.push(one.as_secs_f64() / two.as_secs_f64());
        of_a.push(one);
        of_b.push(two);
    }
    ratios.sort_by(f64::total_cmp);
    let ratio = ratios.get(RUNS / 2).copied().unwrap_or(f64::NAN);
    Ok((median(of_a), median(of_b), ratio))
}

/// Peak memory of the largest process of one command, in MiB, as the kernel accounts it. The
/// kernel tells only the peak of all children so far, so that a fresh process has to ask.
pub(super) fn peak_mib(program: &Path, arguments: &[&str]) -> Result<f64> {
    let own = std::env::current_exe()?;
    let output = Command::new(own).arg("peak-of").arg(program).args(arguments).output()?;
    ensure!(output.status.success(), "cannot measure {}", program.display());
    let text = String::from_utf8(output.stderr)?;
    let bytes: f64 = text.trim().parse().with_context(|| format!("no number: {text}"))?;
    Ok(bytes / 1_048_576.0)
}

/// Runs a command and says how many bytes its largest process had at most.
pub(crate) fn peak_of(command: &[&str]) -> Result<()> {
    let (program, arguments) = command.split_first().context("peak-of needs a command")?;
    wall(&mut quiet(Path::new(program), arguments))?;
    say(&probe::peak_memory_of_children().context("the kernel does not tell")?.to_string());
    Ok(())
}
