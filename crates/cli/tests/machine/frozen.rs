//! A cuInit that SIGKILL cannot end: a real task in state D, on a frozen file system.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use libtest_mimic::{Failed, Trial};

use crate::common::{Outcome, Report, check_with, skipped, stand_in, test};
use crate::experiments::experiments;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        test("an_unkillable_cuinit_is_reported_and_left", unkillable),
        test("an_unkillable_experiment_is_reported_and_ends_the_ladder", unkillable_rung),
    ]
}

/// A file system that is frozen until this is dropped.
struct Frozen {
    folder: tempfile::TempDir,
}

impl Frozen {
    fn make() -> Result<Frozen, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let frozen = Frozen { folder };
        let image = frozen.folder.path().join("image");
        let file = std::fs::File::create(&image).map_err(|error| error.to_string())?;
        file.set_len(16 << 20).map_err(|error| error.to_string())?;
        std::fs::create_dir(frozen.path()).map_err(|error| error.to_string())?;
        let (image, mount) = (shown(&image), shown(&frozen.path()));
        run("mkfs.ext4", &["-q", &image])?;
        run("mount", &["-o", "loop", &image, &mount])?;
        run("fsfreeze", &["-f", &mount])?;
        Ok(frozen)
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("mount")
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        let mount = shown(&self.path());
        let _ = run("fsfreeze", &["-u", &mount]);
        for _ in 0..100 {
            if run("umount", &[&mount]).is_ok() || run("mountpoint", &["-q", &mount]).is_err() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{program}: {status}")),
        Err(error) => Err(format!("{program}: {error}")),
    }
}

/// Probes that this test's check has left behind, but for the one with this process id. Those of
/// other tests, which run at the same time, have another library path.
fn probes_left(folder: &Path, but: u64) -> Vec<u64> {
    let mut left = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let pid = entry.file_name().to_str().and_then(|name| name.parse().ok());
        let Some(pid) = pid.filter(|pid| *pid != but) else { continue };
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        let is_probe = line.split(|byte| *byte == 0).any(|word| word == b"__probe");
        if is_probe && String::from_utf8_lossy(&environment).contains(&shown(folder)) {
            left.push(pid);
        }
    }
    left
}

fn unkillable() -> Outcome {
    let frozen = match Frozen::make() {
        Ok(frozen) => frozen,
        Err(why) => return skipped(why),
    };
    let folder = stand_in()?;
    let settings = format!("cuinit=dstate:{}", shown(&frozen.path().join("file")));
    let mut check = check_with(folder.path(), &settings, &["--deadline", "5s"]);
    let report = report_by_file(&mut check, folder.path())?;
    report.must(report.outcomes() == ["unkillable"], "one trial, and no second stuck process")?;
    let stuck = &report.trials()[0]["stuck"];
    report.must(stuck["state"] == "D", "it sleeps uninterruptibly")?;
    let pid = stuck["pid"].as_u64().unwrap_or(0);
    report.must(probes_left(folder.path(), pid).is_empty(), "nothing else is left")?;
    report.must(report.ids("symptoms").contains(&"cuda.init-hangs"), "the hang is a symptom")
}

/// Runs a check whose stuck child must not hold this test's pipe: a file takes the report.
fn report_by_file(check: &mut Command, folder: &Path) -> Result<Report, Failed> {
    let out = folder.join("report.json");
    let status = check.stdout(std::fs::File::create(&out)?).stderr(Stdio::null()).status()?;
    Report::from(&Output { status, stdout: std::fs::read(&out)?, stderr: Vec::new() })
}

/// It fails as it is; without what is preloaded it sleeps where nothing can end it.
fn unkillable_rung() -> Outcome {
    let frozen = match Frozen::make() {
        Ok(frozen) => frozen,
        Err(why) => return skipped(why),
    };
    let folder = stand_in()?;
    let file = shown(&frozen.path().join("file"));
    let settings = format!("cuinit=600,cuinit=!set:LD_PRELOAD?dstate:{file}");
    let mut check = check_with(folder.path(), &settings, &["--deadline", "6s"]);
    check.env("LD_PRELOAD", "libm.so.6").env("CUDA_VISIBLE_DEVICES", "0");
    let report = report_by_file(&mut check, folder.path())?;
    let made = experiments(&report);
    let result = |index: usize| made.get(index).and_then(|made| made["result"].as_str());
    report.must(
        result(0).is_some_and(|result| result.contains("cannot be killed")),
        "it is told that it cannot be killed",
    )?;
    report.must(
        result(1).is_some_and(|result| result.contains("left a process behind")),
        "and no other one is made",
    )?;
    let probes = report.json["probes"].as_array().into_iter().flatten();
    let mut stuck = probes.filter(|run| run["outcome"] == "unkillable");
    let pid = stuck.next().and_then(|run| run["stuck"]["pid"].as_u64()).unwrap_or(0);
    report.must(pid != 0, "its process is named")?;
    report.must(probes_left(folder.path(), pid).is_empty(), "nothing else is left")
}
