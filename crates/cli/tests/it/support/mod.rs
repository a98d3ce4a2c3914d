//! Runs the built binary.

#[path = "../../../../render/tests/it/support/schema.rs"]
pub(crate) mod schema;

use std::io::Write;
use std::process::{Command, Output, Stdio};

/// The built binary, in surroundings that are the same everywhere.
pub(crate) fn gpudx() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpudx"));
    command.env_remove("COLUMNS").env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
    command.stdin(Stdio::null());
    command
}

/// Runs it with these arguments.
pub(crate) fn run(arguments: &[&str]) -> Run {
    Run::of(gpudx().args(arguments).output().unwrap())
}

/// Runs `gpudx read -` on a text, with further arguments.
pub(crate) fn read(text: &str, arguments: &[&str]) -> Run {
    let mut command = gpudx();
    command.args(["read", "-"]).args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    Run::of(child.wait_with_output().unwrap())
}

/// What a run gave.
#[derive(Debug)]
pub(crate) struct Run {
    /// Exit status.
    pub(crate) status: i32,
    /// Standard output.
    pub(crate) out: String,
    /// Standard error.
    pub(crate) err: String,
}

impl Run {
    /// Reads a finished process; one that a signal ended has no status and fails the test.
    pub(crate) fn of(output: Output) -> Run {
        Run {
            status: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Requires a usage error or another complaint of exactly one line.
    #[track_caller]
    pub(crate) fn one_line(&self, status: i32, says: &str) {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.err.lines().count(), 1, "{self:?}");
        assert!(self.err.starts_with("gpudx: ") && self.err.contains(says), "{self:?}");
        assert_eq!(self.out, "", "{self:?}");
    }
}
