//! Running cargo and telling what is being done.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    let manifest = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().map_or_else(|| manifest.clone(), std::path::Path::to_path_buf)
}

/// Writes a line to stderr.
pub(crate) fn say(line: &str) {
    // A closed stderr is nobody's fault and nothing to stop for.
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// A cargo command in the root of the workspace.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root());
    command
}

/// Runs a command to its end; its failure is an error that names it.
pub(crate) fn must(command: &mut Command) -> Result<()> {
    let shown = format!("{command:?}").replace('"', "");
    say(&format!("== {shown}"));
    let status = command.status().with_context(|| format!("cannot run {shown}"))?;
    ensure!(status.success(), "{shown}: {status}");
    Ok(())
}

/// True when `cargo NAME --version` works.
pub(crate) fn has_subcommand(name: &str) -> bool {
    let output = cargo(&[name, "--version"]).output();
    output.is_ok_and(|output| output.status.success())
}
