//! Running the program and reading its JSON report.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use libtest_mimic::{Failed, Trial};
use serde_json::Value;

/// What a test comes to.
pub(crate) type Outcome = Result<(), Failed>;

/// A named test.
pub(crate) fn test(name: &str, run: fn() -> Outcome) -> Trial {
    Trial::test(name, run)
}

/// Says why a test could not be made here, and lets it pass.
#[expect(clippy::unnecessary_wraps, reason = "it ends a test, as its last expression")]
pub(crate) fn skipped(why: impl std::fmt::Display) -> Outcome {
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
    Ok(())
}

/// True when this process may do what root may.
pub(crate) fn is_root() -> bool {
    std::fs::read_to_string("/proc/self/status")
        .is_ok_and(|status| status.lines().any(|line| line.starts_with("Uid:\t0\t")))
}

/// The program, with nothing on standard input.
pub(crate) fn gpudx(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpudx"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// A folder with a stand-in driver of version 590.48.01.
pub(crate) fn stand_in() -> Result<tempfile::TempDir, Failed> {
    let folder = tempfile::tempdir()?;
    synth::artifacts::fake_driver_folder(&folder.path().join("lib"), "590.48.01")?;
    Ok(folder)
}

/// `gpudx check --format json` with a stand-in driver that does as `settings` say.
pub(crate) fn check_with(folder: &Path, settings: &str, more: &[&str]) -> Command {
    let mut arguments = vec!["check", "--format", "json"];
    arguments.extend(more);
    let mut command = gpudx(&arguments);
    command.env("LD_LIBRARY_PATH", folder.join("lib")).env("GPUDX_FAKE", settings);
    command
}

/// A report with the exit status that came with it.
pub(crate) struct Report {
    /// The JSON.
    pub(crate) json: Value,
    /// The exit status.
    pub(crate) status: Option<i32>,
}

impl Report {
    /// Runs a command that prints a JSON report.
    pub(crate) fn of(command: &mut Command) -> Result<Report, Failed> {
        Report::from(&command.output()?)
    }

    /// Reads what a run printed.
    pub(crate) fn from(output: &Output) -> Result<Report, Failed> {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let json = serde_json::from_str(&text)
            .map_err(|error| Failed::from(format!("{error}\n{text}\n{stderr}")))?;
        Ok(Report { json, status: output.status.code() })
    }

    /// The state.
    pub(crate) fn state(&self) -> &str {
        self.json["state"].as_str().unwrap_or("")
    }

    /// Ids of a list, in order.
    pub(crate) fn ids(&self, list: &str) -> Vec<&str> {
        let entries = self.json[list].as_array().map(Vec::as_slice).unwrap_or_default();
        entries.iter().filter_map(|entry| entry["id"].as_str()).collect()
    }

    /// The trials of cuInit.
    pub(crate) fn trials(&self) -> Vec<&Value> {
        let probes = self.json["probes"].as_array().map(Vec::as_slice).unwrap_or_default();
        probes.iter().filter(|probe| probe["probe"] == "cuinit").collect()
    }

    /// The outcomes of the trials of cuInit.
    pub(crate) fn outcomes(&self) -> Vec<&str> {
        self.trials().iter().filter_map(|trial| trial["outcome"].as_str()).collect()
    }

    /// The report without what every run says alike.
    fn short(&self) -> String {
        let mut json = self.json.clone();
        if let Some(object) = json.as_object_mut() {
            let keep = ["state", "symptoms", "causes", "ruled_out", "probes"];
            object.retain(|key, _| keep.contains(&key.as_str()));
            if let Some(probes) = object.get_mut("probes").and_then(Value::as_array_mut) {
                probes.retain(|probe| probe["probe"] == "cuinit" || probe["outcome"] != "returned");
            }
        }
        json.to_string()
    }

    /// Fails with the whole report when the condition does not hold.
    pub(crate) fn must(&self, holds: bool, what: &str) -> Outcome {
        if holds { Ok(()) } else { Err(format!("{what}\n{}", self.short()).into()) }
    }
}
