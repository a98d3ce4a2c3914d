//! Running a program inside a fault: injected, bounded, cleaned up.

use std::fs;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::fault::{Caps, Fault};
use crate::machine::Machine;
use crate::{leftovers, paths};

/// Exit status with which an injection says that it could not be made.
const NOT_INJECTED: i32 = 97;
/// Options of setpriv by which a process is killed when the thread that started it ends.
const DIE_WITH_PARENT: [&str; 2] = ["--pdeathsig", "KILL"];
/// An ordinary user.
const USER: &str = "65534";
/// The devices controller of cgroup v1, where there is one.
pub(crate) const CGROUP_V1: &str = "/sys/fs/cgroup/devices";
/// Variable by which processes of a run are known.
pub(crate) const MARK: &str = "GPUDX_LAB_RUN";

static RUNS: AtomicU32 = AtomicU32::new(0);

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    /// With an exit status.
    Status(i32),
    /// By a signal.
    Signal(i32),
    /// It was killed when its time was over.
    Hung,
    /// The fault could not be made, for this reason.
    NotInjected(String),
}

/// What a run left.
#[derive(Debug, Clone)]
pub(crate) struct Ran {
    pub(crate) end: End,
    /// Standard output.
    pub(crate) stdout: String,
    /// Standard error.
    pub(crate) stderr: String,
    /// How long it took.
    pub(crate) time: Duration,
    /// What it left behind: processes, a cgroup.
    pub(crate) left: Vec<String>,
}

/// Runs `program` inside `fault`, at most for `limit`.
pub(crate) fn inside(
    machine: &Machine,
    fault: &Fault,
    program: &[String],
    limit: Duration,
) -> Result<Ran> {
    let number = RUNS.fetch_add(1, Ordering::Relaxed);
    let run = Run { machine, fault, mark: format!("{}-{number}", std::process::id()) };
    run.make(program, limit)
}

struct Run<'lab> {
    machine: &'lab Machine,
    fault: &'lab Fault,
    mark: String,
}

impl Run<'_> {
    fn make(&self, program: &[String], limit: Duration) -> Result<Ran> {
        let folder = self.machine.work.join(&self.mark);
        paths::make_open(&folder)?;
        let cgroup = self.cgroup()?;
        let mut command = self.command(&folder, cgroup.as_deref(), program);
        let (out, errors) = (folder.join("stdout"), folder.join("stderr"));
        command
            .stdin(Stdio::null())
            .stdout(fs::File::create(&out)?)
            .stderr(fs::File::create(&errors)?)
            .process_group(0);
        let started = Instant::now();
        let child = command.spawn().context("cannot start the injection")?;
        let status = wait(child, limit);
        let time = started.elapsed();
        // Whatever the program has started belongs to the run and ends with it.
        let mut left = leftovers::end_marked(&self.mark);
        let name = format!("{}{}", leftovers::CGROUP, self.mark);
        let v1 = Path::new(CGROUP_V1).join(name);
        for cgroup in cgroup.into_iter().chain([v1]) {
            left.extend(leftovers::remove_cgroup(&cgroup));
        }
        let text =
            |path: &Path| fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let (stdout, stderr) = (text(&out)?, text(&errors)?);
        fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
        let end = end(status, &stderr);
        if end == End::Hung {
            // That a program which had to be killed has children is no surprise.
            left.clear();
        }
        Ok(Ran { end, stdout, stderr, time, left })
    }

    /// A cgroup of the run's own, if the fault needs one.
    fn cgroup(&self) -> Result<Option<PathBuf>> {
        let Some(root) = self.machine.cgroup_v2.as_ref().filter(|_| self.denies()) else {
            return Ok(None);
        };
        let folder = root.join(format!("{}{}", leftovers::CGROUP, self.mark));
        fs::create_dir(&folder).with_context(|| folder.display().to_string())?;
        Ok(Some(folder))
    }

    fn denies(&self) -> bool {
        !self.fault.deny_devices.is_empty()
    }

    /// `setpriv` → `unshare` → `bash` with the setup → who, what is refused, limits, environment → program.
    fn command(&self, folder: &Path, cgroup: Option<&Path>, program: &[String]) -> Command {
        // A lab that is killed takes its runs with it.
        let mut command = Command::new("setpriv");
        command.args(DIE_WITH_PARENT);
        if self.machine.root {
            command.args(["unshare", "--mount", "--propagation", "private"]);
        }
        if self.machine.root && self.fault.pid_namespace {
            command.args(["--pid", "--fork", "--kill-child"]);
        }
        command.arg("bash");
        let script = format!(
            "set -eEu; trap 'echo \"not injected: line $LINENO\" >&2; exit {NOT_INJECTED}' ERR; \
             . \"$LAB/inject.sh\"\n{}\nexec \"$@\"",
            self.fault.setup
        );
        command
            .args(["-c", &script, "lab"])
            .args(self.chain(folder, cgroup))
            .args(program)
            .env(MARK, &self.mark)
            .env("LAB", &self.machine.lab)
            .env("WORK", folder)
            .env("BIN", &self.machine.bin)
            .current_dir("/");
        command
    }

    /// The words between the setup and the program.
    fn chain(&self, folder: &Path, cgroup: Option<&Path>) -> Vec<String> {
        let mut words: Vec<String> = Vec::new();
        let mut push = |more: &[&str]| words.extend(more.iter().map(|word| (*word).to_owned()));
        let inject = self.machine.bin.join("inject").display().to_string();
        if let Some(cgroup) = cgroup {
            push(&[&inject, "--cgroup", &cgroup.display().to_string()]);
            for device in &self.fault.deny_devices {
                push(&["--deny-device", &Machine::major(device)]);
            }
            push(&["--"]);
        }
        match self.fault.caps {
            _ if !self.machine.root => {}
            Caps::Root => {}
            Caps::RootMknod => push(&["setpriv", "--bounding-set=-mknod", "--inh-caps=-mknod"]),
            Caps::User => {
                push(&["setpriv", "--reuid", USER, "--regid", USER, "--clear-groups"]);
                // Another user is another life to the kernel, which forgets the wish.
                push(&DIE_WITH_PARENT);
            }
        }
        if !self.fault.inject.is_empty() {
            push(&[&inject]);
            self.fault.inject.iter().for_each(|word| push(&[word]));
            push(&["--"]);
        }
        self.fault.wrap.iter().for_each(|word| push(&[word]));
        if !self.fault.limits.is_empty() {
            push(&["prlimit"]);
            self.fault.limits.iter().for_each(|word| push(&[word]));
        }
        push(&["env"]);
        words.extend(self.environment(folder));
        words
    }

    /// `NAME=VALUE` for the program: the machine's own, then the fault's.
    fn environment(&self, folder: &Path) -> Vec<String> {
        let mut words = Vec::new();
        if let Some(kernel_side) = &self.machine.kernel_side {
            words.extend(kernel_side.environment(self.fault.fakerm.as_deref()));
        }
        for (name, value) in &self.fault.env {
            words.push(format!("{name}={}", self.machine.expand(value, folder)));
        }
        if let Some(settings) = &self.fault.interpose {
            let library = self.machine.bin.join("libinterposer.so");
            words.push(format!("LD_PRELOAD={}", library.display()));
            words.push(format!("GPUDX_INTERPOSE={settings}"));
        }
        words
    }
}

/// Waits at most for `limit`; `None` when the group had to be killed.
fn wait(mut child: Child, limit: Duration) -> Option<ExitStatus> {
    let deadline = Instant::now() + limit;
    let mut pause = Duration::from_millis(2);
    while Instant::now() < deadline {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) => std::thread::sleep(pause),
            Err(_) => return None,
        }
        pause = (pause * 2).min(Duration::from_millis(20));
    }
    leftovers::kill_group(child.id());
    // Reaps it if it went; one that cannot be killed is found among what is left behind.
    for _ in 0..50 {
        if matches!(child.try_wait(), Ok(Some(_))) {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    None
}

fn end(status: Option<ExitStatus>, stderr: &str) -> End {
    let Some(status) = status else { return End::Hung };
    match (status.code(), status.signal()) {
        (Some(NOT_INJECTED), _) => {
            End::NotInjected(stderr.lines().take(3).collect::<Vec<_>>().join("; "))
        }
        // Behind `unshare --fork` a signal shows as 128 and its number.
        (Some(code), _) if code > 128 => End::Signal(code - 128),
        (Some(code), _) => End::Status(code),
        (None, signal) => End::Signal(signal.unwrap_or(0)),
    }
}
