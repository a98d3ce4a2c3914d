//! Real tasks that hang in the ways that look alike, seen by `gpudx check --stuck` from outside.
//!
//! They hold files that stand for the driver's nodes, in a /dev of their own: what descriptors
//! lead to has the nodes' names.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use libtest_mimic::{Failed, Trial};
use serde_json::Value;

use crate::common::{Outcome, Report, is_root, skipped, test};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        test("stuck_a_storm_of_ioctls_is_no_spin_and_no_loop", storm_and_loop),
        test("stuck_a_spin_in_the_kernel_is_told_apart", spin),
        test("stuck_a_task_in_state_d_is_named_with_its_call", asleep),
        test("stuck_a_call_that_waits_is_named", waits),
        test("stuck_a_task_that_locks_its_own_memory_holds_nobody", locked),
        test("stuck_without_privilege_says_what_root_would_show", without_privilege),
    ]
}

/// Longest wait for something that is sure to come.
const PATIENCE: Duration = Duration::from_mins(1);

/// A /dev of its own in a mount namespace of its own, with files in place of nodes, on a file
/// system that can be frozen. Everything in it ends when this is dropped.
struct Stage {
    folder: tempfile::TempDir,
    /// A process that keeps the namespace.
    keeper: Child,
    /// The program that hangs.
    program: PathBuf,
    hanging: Vec<Child>,
}

impl Stage {
    fn make() -> Result<Stage, String> {
        if !is_root() {
            return Err("not root".to_owned());
        }
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let program = compile(folder.path())?;
        let image = folder.path().join("image");
        let file = std::fs::File::create(&image).map_err(|error| error.to_string())?;
        file.set_len(16 << 20).map_err(|error| error.to_string())?;
        // The thaw at the end of the keeper's input comes even when this test is killed.
        let script = "set -e; mkfs.ext4 -q \"$F/image\"; mkdir \"$F/fz\"; mount -o loop \"$F/image\" \"$F/fz\"; \
            mkdir \"$F/dev\"; mount -t tmpfs none \"$F/dev\"; \
            cp -a /dev/null /dev/zero /dev/urandom \"$F/dev\"; \
            for node in nvidiactl nvidia-uvm nvidia0 nvidia1; do truncate -s 4096 \"$F/fz/$node\"; \
            touch \"$F/dev/$node\"; done; truncate -s 4096 \"$F/dev/nvidia-uvm\"; \
            for node in nvidia0 nvidia1; do mount --bind \"$F/fz/$node\" \"$F/dev/$node\"; done; \
            mount --rbind \"$F/dev\" /dev; echo ready; read word; fsfreeze -f \"$F/fz\"; echo frozen; \
            read word || true; fsfreeze -u \"$F/fz\"";
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", script]).env("F", folder.path());
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let keeper = piped.spawn().map_err(|error| error.to_string())?;
        let mut stage = Stage { folder, keeper, program, hanging: Vec::new() };
        stage.keeper_says("ready").map_err(|error| error.message().unwrap_or("").to_owned())?;
        Ok(stage)
    }

    /// Waits for a line of the keeper's.
    fn keeper_says(&mut self, expected: &str) -> Outcome {
        let line = next_line(self.keeper.stdout.as_mut())?;
        if line == expected { Ok(()) } else { Err(format!("the stage says {line:?}").into()) }
    }

    /// A command that runs in the namespace.
    fn inside(&self, program: &Path) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["-t", &self.keeper.id().to_string(), "-m", "--"]).arg(program);
        command
    }

    /// Starts the program that hangs and gives its process id.
    fn hang(&mut self, how: &str, node: &str) -> Result<u64, Failed> {
        let program = self.program.clone();
        let mut command = self.inside(&program);
        command.args([how, node]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let ready = next_line(child.stdout.as_mut());
        let pid = u64::from(child.id());
        self.hanging.push(child);
        if ready? == "ready" {
            Ok(pid)
        } else {
            Err(format!("{how} on {node} did not start").into())
        }
    }

    /// Freezes the file system under nvidia0 and nvidia1, and lets those that wait for it go on.
    fn freeze(&mut self) -> Outcome {
        writeln!(self.keeper.stdin.as_mut().ok_or("no input")?, "freeze")?;
        self.keeper_says("frozen")?;
        for child in &mut self.hanging {
            // Those that do not wait for a line leave it alone.
            let _ = writeln!(child.stdin.as_mut().ok_or("no input")?, "go");
        }
        Ok(())
    }

    /// A copy of gpudx where any user may run it.
    fn binary(&self) -> Result<PathBuf, Failed> {
        use std::os::unix::fs::PermissionsExt as _;
        let copy = self.folder.path().join("gpudx");
        if !copy.exists() {
            let all = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(self.folder.path(), all)?;
            std::fs::copy(env!("CARGO_BIN_EXE_gpudx"), &copy)?;
        }
        Ok(copy)
    }

    /// `gpudx check --stuck` until the task is seen as wanted: a processor that many share may show
    /// too little of it at first.
    fn check(
        &self,
        before: &[&str],
        pid: u64,
        holds: impl Fn(&Value) -> bool,
    ) -> Result<(Report, Value), Failed> {
        let until = Instant::now() + PATIENCE;
        loop {
            let mut words: Vec<PathBuf> = before.iter().map(PathBuf::from).collect();
            words.push(self.binary()?);
            let (first, rest) = words.split_first().ok_or("no command")?;
            let mut command = self.inside(first);
            command.args(rest).args(["check", "--stuck", "--format", "json"]);
            let report = Report::of(command.stdin(Stdio::null()))?;
            let found = tasks(&report).find(|task| task["pid"] == pid).cloned();
            match found {
                Some(task) if holds(&task) => return Ok((report, task)),
                other if Instant::now() > until => {
                    return Err(format!("not as wanted: {other:#?}").into());
                }
                _ => {}
            }
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // The end of its input thaws the file system; until then nobody there can end.
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
        for child in &mut self.hanging {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn tasks(report: &Report) -> impl Iterator<Item = &Value> {
    report.json["tasks"].as_array().into_iter().flatten()
}

fn next_line(from: Option<&mut impl std::io::Read>) -> Result<String, Failed> {
    let mut line = String::new();
    BufReader::with_capacity(1, from.ok_or("no output")?).read_line(&mut line)?;
    Ok(line.trim().to_owned())
}

fn compile(folder: &Path) -> Result<PathBuf, String> {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/machine/hanging.c");
    let program = folder.join("hanging");
    let mut command = Command::new("cc");
    command.args(["-O1", "-pthread", "-o"]).arg(&program).arg(source);
    match command.status() {
        Ok(status) if status.success() => Ok(program),
        Ok(status) => Err(format!("cc: {status}")),
        Err(error) => Err(format!("cc: {error}")),
    }
}

/// Makes the stage, or lets the test pass where that cannot be had.
fn staged(play: impl FnOnce(&mut Stage) -> Outcome) -> Outcome {
    match Stage::make() {
        Ok(mut stage) => play(&mut stage),
        Err(why) => skipped(why),
    }
}

fn must(holds: bool, what: &str, task: &Value) -> Outcome {
    if holds { Ok(()) } else { Err(format!("{what}: {task:#?}").into()) }
}

fn storm_and_loop() -> Outcome {
    staged(|stage| {
        let storm = stage.hang("storm", "/dev/nvidiactl")?;
        let busy = stage.hang("busy", "/dev/nvidiactl")?;
        let (_, task) = stage.check(&[], storm, |task| task["hang"] == "repeats-calls")?;
        must(task["descriptors"] == serde_json::json!(["/dev/nvidiactl"]), "its node", &task)?;
        let (report, task) = stage.check(&[], busy, |task| task["hang"] == "busy-in-user-space")?;
        must(task["state"] == "R", "it runs", &task)?;
        // Tasks of other tests may hang at the same time.
        let hangs = report.json["symptoms"].to_string().contains(&format!("pid {busy}"));
        report.must(!hangs, "a program that computes is no hang")
    })
}

/// One that the kernel computes for makes no calls and takes no time of its own.
fn spin() -> Outcome {
    staged(|stage| {
        let pid = stage.hang("spin", "/dev/nvidiactl")?;
        let (_, task) = stage.check(&[], pid, |task| task["hang"] == "spins-in-kernel")?;
        must(task["state"] == "R", "it runs", &task)?;
        let share = |key: &str| task[key].as_f64().unwrap_or(f64::NAN);
        must(share("system_share") > 10.0 * share("user_share"), "for the kernel", &task)?;
        must(task["descriptors"][0] == "/dev/nvidiactl", "its node", &task)
    })
}

fn asleep() -> Outcome {
    staged(|stage| {
        let pid = stage.hang("flags", "/dev/nvidia0")?;
        let other = stage.hang("flags", "/dev/nvidia0")?;
        stage.freeze()?;
        let both = |task: &Value| task["same_place"] == serde_json::json!([other]);
        let (_, task) = stage.check(&[], pid, both)?;
        must(task["state"] == "D" && task["hang"] == "sleeps-in-kernel", "state D", &task)?;
        must(task["call"] == "ioctl 0x40086602 on /dev/nvidia0", "its call and node", &task)?;
        must(task["wchan"] == "percpu_rwsem_wait", "where it waits", &task)?;
        must(task["stack"][0] == "percpu_rwsem_wait", "its stack", &task)?;
        must(task["switches"] == 0 && task["kill_pending"] == false, "it slept through", &task)?;
        // SIGKILL does not end it, and that is seen.
        let script = format!("kill -9 {pid}");
        Command::new("sh").args(["-c", &script]).status()?;
        let (report, _) = stage.check(&[], pid, |task| task["kill_pending"] == true)?;
        report.must(report.ids("symptoms").contains(&"cuda.init-hangs"), "now it is a symptom")
    })
}

fn waits() -> Outcome {
    staged(|stage| {
        let pid = stage.hang("fault", "/dev/nvidia-uvm")?;
        let in_call = |task: &Value| task["call"] == "ioctl UVM_RELEASE_VA on /dev/nvidia-uvm";
        let (_, task) = stage.check(&[], pid, in_call)?;
        must(task["hang"] == "waits" && task["state"] == "S", "a signal would end it", &task)
    })
}

/// The memory of a task that hangs in UVM_INITIALIZE cannot be read, nor its command line: `ps`
/// hangs. Its thread and the call are named all the same.
fn locked() -> Outcome {
    staged(|stage| {
        let pid = stage.hang("lock", "/dev/nvidia1")?;
        stage.freeze()?;
        let in_call = |task: &Value| {
            task["call"] == "ioctl 0x40086602 on /dev/nvidia1"
                && task["not_readable"][0].is_string()
        };
        let (report, task) = stage.check(&[], pid, in_call)?;
        let refused = task["not_readable"][0].as_str().unwrap_or("");
        must(refused.contains("its memory does not answer"), "it was tried", &task)?;
        let threads = tasks(&report).filter(|task| task["pid"] == pid && task["state"] == "D");
        must(threads.count() == 3, "each thread that sleeps", &report.json["tasks"])?;
        let probes = report.json["probes"].as_array().map(Vec::as_slice).unwrap_or_default();
        let probe = probes.iter().find(|probe| probe["probe"] == "stuck").unwrap_or(&Value::Null);
        must(probe["outcome"] == "returned", "the look itself came back", probe)
    })
}

/// As nobody in particular: the state shows, and what does not is named with who may see it.
fn without_privilege() -> Outcome {
    staged(|stage| {
        let pid = stage.hang("flags", "/dev/nvidia0")?;
        stage.freeze()?;
        let nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--"];
        let (report, task) = stage.check(&nobody, pid, |task| task["state"] == "D")?;
        let refused: Vec<&str> = task["not_readable"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        for (file, privilege) in
            [("stack", "root on the host"), ("syscall", "CAP_SYS_PTRACE"), ("fd", "root sees")]
        {
            let told =
                refused.iter().any(|text| text.starts_with(file) && text.contains(privilege));
            must(told, file, &task)?;
        }
        must(task["call"].is_null() && task["stack"] == serde_json::json!([]), "no more", &task)?;
        let notes = report.json["notes"].to_string();
        report.must(notes.contains("as root, those that hold nodes"), "what root would see")
    })
}
