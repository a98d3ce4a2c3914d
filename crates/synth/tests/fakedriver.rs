//! The stand-in driver does what it is told.
#![expect(clippy::unwrap_used, reason = "functions of tests fail as tests do, by panicking")]

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use synth::artifacts;
use tempfile::TempDir;

struct Driver {
    folder: TempDir,
}

impl Driver {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        artifacts::fake_driver_folder(&folder.path().join("lib"), "590.48.01").unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn record(&self) -> String {
        std::fs::read_to_string(self.path("record")).unwrap_or_default()
    }

    fn command(&self, program: &Path, settings: &str) -> Command {
        let record = self.path("record");
        let mut command = Command::new(program);
        command
            .env("LD_LIBRARY_PATH", self.path("lib"))
            .env("GPUDX_FAKE", format!("record={},{settings}", record.display()))
            .stdin(Stdio::null());
        command
    }

    fn cuinit(&self, settings: &str) -> Output {
        self.command(&artifacts::cuinit_bare().unwrap(), settings).output().unwrap()
    }

    fn lines_of(&self, program: &Path, settings: &str) -> String {
        let output = self.command(program, settings).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    /// Starts `cuInit` and waits until it has entered what it is told to do.
    fn entered(&self, settings: &str) -> Killed {
        let mut command = self.command(&artifacts::cuinit_bare().unwrap(), settings);
        let mut child = Killed(command.stdout(Stdio::null()).spawn().unwrap());
        while !self.record().contains("act ") {
            assert!(child.0.try_wait().unwrap().is_none(), "ended before it entered the call");
            std::thread::yield_now();
        }
        child
    }
}

/// A child that does not outlive its test.
struct Killed(Child);

impl Killed {
    /// The state letter of `/proc/PID/stat`.
    fn state(&self) -> char {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap();
        stat.rsplit(") ").next().unwrap().chars().next().unwrap()
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn code(output: &Output) -> i32 {
    String::from_utf8_lossy(&output.stdout).trim().parse().unwrap()
}

#[test]
fn cuinit_returns_what_it_is_told() {
    let driver = Driver::new();
    assert_eq!(code(&driver.cuinit("")), 0);
    for told in [3, 100, 802, 999] {
        assert_eq!(code(&driver.cuinit(&format!("cuinit={told}"))), told);
    }
    assert_eq!(code(&driver.cuinit("count=0")), 100);
}

#[test]
fn cuinit_ends_the_process_as_told() {
    let driver = Driver::new();
    assert_eq!(driver.cuinit("cuinit=crash").status.signal(), Some(11));
    assert_eq!(driver.cuinit("cuinit=abort").status.signal(), Some(6));
    assert_eq!(driver.cuinit("cuinit=exit:7").status.code(), Some(7));
}

#[test]
fn a_hanging_cuinit_stays_in_its_call() {
    for settings in ["cuinit=hang", "cuinit=spin", "load=constructor-hang", "cuinit=stop"] {
        let driver = Driver::new();
        let mut child = driver.entered(settings);
        let expected = match settings {
            "cuinit=spin" => 'R',
            "cuinit=stop" => 'T',
            _ => 'S',
        };
        while child.state() != expected {
            assert!(child.0.try_wait().unwrap().is_none(), "{settings} came back");
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_deaf_hang_survives_sigterm() {
    let driver = Driver::new();
    let child = driver.entered("cuinit=hang-deaf");
    let ignored = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.0.id())).unwrap();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:\t")).unwrap();
        u64::from_str_radix(mask, 16).unwrap() & (1 << 14) != 0
    };
    while !ignored() {
        std::thread::yield_now();
    }
}

#[test]
fn two_of_five_trials_succeed() {
    let driver = Driver::new();
    let counter = driver.path("counter");
    let settings = format!("cuinit=flaky:{}:999:2/5", counter.display());
    let codes: Vec<_> = (0..10).map(|_| code(&driver.cuinit(&settings))).collect();
    assert_eq!(codes, [999, 999, 0, 999, 0, 999, 999, 0, 999, 0]);
}

#[test]
fn a_flood_lasts_until_the_reader_leaves() {
    let driver = Driver::new();
    let mut command = driver.command(&artifacts::cuinit_bare().unwrap(), "cuinit=flood");
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut pipe = child.stdout.take().unwrap();
    let mut buffer = vec![0; 1 << 20];
    std::io::Read::read_exact(&mut pipe, &mut buffer).unwrap();
    drop(pipe);
    assert!(child.wait().unwrap().success());
    assert!(buffer.iter().all(|byte| *byte == b'#'));
}

#[test]
fn a_left_child_is_recorded() {
    let driver = Driver::new();
    let mut command = driver.command(&artifacts::cuinit_bare().unwrap(), "cuinit=fork-away");
    let status = command.stdout(Stdio::null()).status().unwrap();
    assert!(status.success());
    let record = driver.record();
    let pid = record.lines().find_map(|line| line.strip_prefix("fork ")).unwrap();
    assert!(Path::new("/proc").join(pid).exists());
    assert!(Command::new("kill").args(["-KILL", pid]).status().unwrap().success());
}

#[test]
fn print_leaves_half_a_line() {
    let driver = Driver::new();
    let output = driver.cuinit("cuinit=print:half a mess");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "half a mess0\n");
}

#[test]
fn a_misspelled_setting_ends_the_process() {
    let output = Driver::new().cuinit("cuinit=hagn");
    assert_eq!(output.status.signal(), Some(6));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cuinit=hagn"));
}

#[test]
fn the_whole_walk_computes_the_right_result() {
    let driver = Driver::new();
    let walk = artifacts::cuda_walk().unwrap();
    let lines = driver.lines_of(&walk, "");
    assert!(lines.ends_with("cuMemFree_v2 0\nresult ok\n"), "{lines}");
    for wrong in ["copy=wrong", "kernel=wrong"] {
        let lines = driver.lines_of(&walk, wrong);
        assert!(lines.ends_with("result wrong\n"), "{wrong}: {lines}");
    }
    for (settings, last) in [
        ("context=46", "cuDevicePrimaryCtxRetain 46"),
        ("alloc=2", "cuMemAlloc_v2 2"),
        ("kernel=700", "cuLaunchKernel 700"),
        ("cuda.cuCtxSynchronize=719", "cuCtxSynchronize 719"),
    ] {
        let lines = driver.lines_of(&walk, settings);
        assert_eq!(lines.lines().last(), Some(last));
    }
}

#[test]
fn nvml_answers_and_fails_by_function() {
    let driver = Driver::new();
    let nvml = artifacts::nvml_bare().unwrap();
    let healthy = "init 0\ncount 0 2\nhandle 0\nname 0 NVIDIA H200\n";
    assert_eq!(driver.lines_of(&nvml, "count=2"), healthy);
    assert_eq!(driver.lines_of(&nvml, "nvml=18"), "init 18\n");
    let lines = driver.lines_of(&nvml, "nvml.nvmlDeviceGetName=15");
    assert!(lines.ends_with("name 15 \n"), "{lines}");
}

#[test]
fn nvml_and_libcuda_load_on_their_own_terms() {
    let driver = Driver::new();
    assert_eq!(code(&driver.cuinit("nvml.load=exit:9")), 0);
    let nvml = artifacts::nvml_bare().unwrap();
    let status = driver.command(&nvml, "nvml.load=exit:9").status().unwrap();
    assert_eq!(status.code(), Some(9));
}

#[test]
fn mischief_is_recorded() {
    let driver = Driver::new();
    let nodes = driver.path("dev");
    std::fs::create_dir(&nodes).unwrap();
    std::fs::write(nodes.join("nvidia-uvm"), "").unwrap();
    assert_eq!(code(&driver.cuinit(&format!("cuinit=mischief:{}", nodes.display()))), 0);
    let record = driver.record();
    let deeds: Vec<_> = record.lines().filter(|line| line.contains("/nvidia-uvm ")).collect();
    assert!(deeds.first().is_some_and(|deed| deed.starts_with("unlink") && deed.ends_with("ok")));
    assert!(deeds.get(1).is_some_and(|deed| deed.starts_with("mknod")));
    assert!(record.contains("modprobe ok"), "{record}");
}
