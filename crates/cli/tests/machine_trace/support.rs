//! Running a trace and reading its JSON lines.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use libtest_mimic::Failed;
use serde_json::Value;

/// What a test comes to.
pub(crate) type Outcome = Result<(), Failed>;

/// Longest wait for something that is sure to come.
const PATIENCE: Duration = Duration::from_mins(1);

/// Says why a test could not be made here, and lets it pass.
#[expect(clippy::unnecessary_wraps, reason = "it is the last word of a test")]
pub(crate) fn skipped(why: impl std::fmt::Display) -> Outcome {
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
    Ok(())
}

/// A trace into a file of its own.
pub(crate) struct Trace {
    folder: tempfile::TempDir,
}

impl Trace {
    pub(crate) fn new() -> Result<Trace, Failed> {
        Ok(Trace { folder: tempfile::tempdir()? })
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("trace")
    }

    /// `gpudx trace` with these arguments, writing JSON to the file.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gpudx"));
        command.args(["trace", "--format", "json", "-o"]).arg(self.file()).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// The records written so far. A line that is not complete yet is left out.
    pub(crate) fn records(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.file()).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Runs to the end and gives the records.
    pub(crate) fn run(&self, arguments: &[&str]) -> Result<Vec<Value>, Failed> {
        self.command(arguments).status()?;
        Ok(self.records())
    }

    /// Waits until a record of this kind is there.
    pub(crate) fn wait_for(&self, kind: &str) -> Outcome {
        self.wait_until(&format!("a record {kind}"), |records| of(records, kind).next().is_some())
    }

    /// Waits until the records written so far are as wanted.
    pub(crate) fn wait_until(&self, what: &str, holds: impl Fn(&[Value]) -> bool) -> Outcome {
        until(what, || holds(&self.records()))
    }
}

/// Waits until something holds.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) -> Outcome {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        if Instant::now() > deadline {
            return Err(format!("{what} did not come").into());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// The records of a kind.
pub(crate) fn of<'a>(records: &'a [Value], kind: &'a str) -> impl Iterator<Item = &'a Value> {
    records.iter().filter(move |record| record["record"] == kind)
}

/// The nodes of the calls that were entered, in order.
pub(crate) fn nodes(records: &[Value]) -> Vec<&str> {
    of(records, "enter").filter_map(|record| record["node"].as_str()).collect()
}

/// The summary.
pub(crate) fn summary(records: &[Value]) -> Result<&Value, Failed> {
    of(records, "summary").next().ok_or_else(|| format!("no summary in {records:#?}").into())
}

/// Fails with the records when something does not hold.
pub(crate) fn must(holds: bool, what: &str, records: &[Value]) -> Outcome {
    if holds { Ok(()) } else { Err(format!("{what}: {records:#?}").into()) }
}

/// A process that is ended and reaped when dropped.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    /// Starts a shell script.
    pub(crate) fn script(script: &str) -> Result<Running, Failed> {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Running(command.spawn()?))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The state letter of a process and who traces it; `None` when it is gone.
pub(crate) fn state(pid: u64) -> Option<(char, u32)> {
    let status = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("status"));
    let status = status.ok()?;
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    Some((field("State:")?.chars().next()?, field("TracerPid:")?.parse().ok()?))
}
