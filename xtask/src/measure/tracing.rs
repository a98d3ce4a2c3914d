//! What tracing costs: each traced request, beside strace in the same run, and each call that is
//! nobody's business, beside none and beside a filter that decides nothing.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Result, ensure};

use super::timing::quiet;
use crate::run::say;

/// Requests to /dev/null, and rounds of them: one takes seconds.
const REQUESTS: u32 = 1_000_000;
const ROUNDS: usize = 3;
/// Other calls, and rounds of them: one takes a fraction of a second.
const OTHERS: u32 = 5_000_000;
const ROUNDS_OF_OTHERS: usize = 9;

/// Prints the figures.
pub(super) fn run(release: &Path) -> Result<()> {
    let program = release.join("driver-calls");
    let gpudx = release.join("gpudx");
    requests(&gpudx, &program)?;
    others(&gpudx, &program)
}

/// A way to run the program.
struct Way {
    before: Vec<OsString>,
}

impl Way {
    fn plain() -> Way {
        Way { before: Vec::new() }
    }

    fn gpudx(gpudx: &Path) -> Way {
        let mut before = vec![gpudx.into()];
        before.extend(["trace", "-o", "/dev/null", "--"].map(OsString::from));
        Way { before }
    }

    fn strace() -> Way {
        let words = ["strace", "-f", "--seccomp-bpf", "-e", "trace=ioctl", "-o", "/dev/null"];
        Way { before: words.map(OsString::from).to_vec() }
    }

    fn command(&self, program: &Path, arguments: &[&str]) -> Command {
        match self.before.split_first() {
            None => quiet(program, arguments),
            Some((first, rest)) => {
                let mut command = quiet(Path::new(first), &[]);
                command.args(rest).arg(program).args(arguments);
                command
            }
        }
    }

    /// Nanoseconds for each of so many calls, without what starting takes.
    fn nanoseconds(&self, program: &Path, what: &[&str], count: u32) -> Result<f64> {
        let run = |count: u32| {
            let count = count.to_string();
            let mut arguments = what.to_vec();
            arguments.push(&count);
            let mut command = self.command(program, &arguments);
            let start = Instant::now();
            let status = command.status()?;
            ensure!(status.success(), "{command:?}: {status}");
            Ok::<_, anyhow::Error>(start.elapsed())
        };
        let (none, all) = (run(0)?, run(count)?);
        Ok(all.saturating_sub(none).as_secs_f64() * 1e9 / f64::from(count))
    }
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn requests(gpudx: &Path, program: &Path) -> Result<()> {
    let has_strace = Command::new("strace").arg("-V").output().is_ok();
    let (ours, theirs) = (Way::gpudx(gpudx), Way::strace());
    let (mut of_ours, mut of_theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        of_ours.push(ours.nanoseconds(program, &["ioctls"], REQUESTS)? / 1000.0);
        if has_strace {
            of_theirs.push(theirs.nanoseconds(program, &["ioctls"], REQUESTS)? / 1000.0);
        }
    }
    let ours = middle(of_ours);
    let limit = if has_strace {
        format!("`strace -f --seccomp-bpf`: {:.2} µs", middle(of_theirs))
    } else {
        "strace is not here".to_owned()
    };
    say(&format!(
        "| `gpudx trace`: one of {REQUESTS} requests to /dev/null | {ours:.2} µs | {limit} |"
    ));
    Ok(())
}

fn others(gpudx: &Path, program: &Path) -> Result<()> {
    let (plain, traced) = (Way::plain(), Way::gpudx(gpudx));
    let (mut bare, mut under_filter, mut under_trace) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS_OF_OTHERS {
        bare.push(plain.nanoseconds(program, &["getppids"], OTHERS)?);
        under_filter.push(plain.nanoseconds(program, &["filtered", "getppids"], OTHERS)?);
        under_trace.push(traced.nanoseconds(program, &["getppids"], OTHERS)?);
    }
    let (bare, filter, trace) = (middle(bare), middle(under_filter), middle(under_trace));
    say(&format!(
        "| `gpudx trace`: one of {OTHERS} calls of getppid, over none: {trace:.0} ns / {bare:.0} ns \
         | {:.2} | 1.03 |",
        trace / bare
    ));
    say(&format!(
        "| the same over a seccomp filter that lets everything through: {trace:.0} ns / \
         {filter:.0} ns | {:.2} | 1.03 |",
        trace / filter
    ));
    Ok(())
}
