//! Targets that a tracer must stand: many threads, descriptors that wander, rights that change,
//! programs that cannot be decoded or not be traced.

use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use libtest_mimic::{Failed, Trial};
use serde_json::Value;

use crate::support::{Outcome, Running, Trace, must, of, skipped, state, summary, until};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::test("two_hundred_threads_and_their_children_are_complete", storm),
        Trial::test("two_hundred_threads_may_be_stopped_and_killed", stopped_and_killed),
        Trial::test("descriptors_are_known_however_they_came", descriptors),
        Trial::test("the_others_go_on_when_the_first_thread_has_ended", leader_exits),
        Trial::test("rights_may_be_dropped_in_the_middle", drops_rights),
        Trial::test("a_mapping_and_a_close_are_told", maps),
        Trial::test("what_is_no_node_is_not_told", nothing),
        Trial::test("a_32_bit_program_is_said_to_be_one", thirty_two_bit),
        Trial::test("a_setuid_program_is_said_to_run_without_its_rights", setuid),
        Trial::test("whose_process_it_is_is_said_when_that_forbids_tracing", of_another),
    ]
}

/// The number that nobody's user has.
const NOBODY: u32 = 65534;

fn run(what: &[&str]) -> Result<Vec<Value>, Failed> {
    let program = synth::artifacts::driver_calls()?.display().to_string();
    let mut arguments = vec!["--", program.as_str()];
    arguments.extend(what);
    let records = Trace::new()?.run(&arguments)?;
    let summary = summary(&records)?;
    let went = summary["ended"] == "exited" && summary["code"] == 0;
    must(went, &format!("{what:?} goes as untraced"), &records[records.len().saturating_sub(3)..])?;
    Ok(records)
}

fn notes(records: &[Value]) -> String {
    of(records, "note").filter_map(|note| note["text"].as_str()).collect::<Vec<_>>().join("\n")
}

fn entered(records: &[Value], call: &str) -> usize {
    of(records, "enter").filter(|record| record["call"] == call).count()
}

fn storm() -> Outcome {
    const THREADS: usize = 200;
    const CALLS: usize = 25;
    let records = run(&["storm", &THREADS.to_string(), &CALLS.to_string()])?;
    let few = &records[..records.len().min(5)];
    // One more is from the child that executes the program anew.
    let counts = [
        ("UVM_PAGEABLE_MEM_ACCESS", THREADS * CALLS + 1),
        ("UVM_INITIALIZE", 1),
        ("UVM_MM_INITIALIZE", 1),
        ("UVM_REGISTER_GPU", 1),
    ];
    for (call, count) in counts {
        let found = entered(&records, call);
        must(found == count, &format!("{call} {found} times, not {count}"), few)?;
    }
    must(of(&records, "return").count() == of(&records, "enter").count(), "all return", few)?;
    must(of(&records, "unreturned").next().is_none(), "none is left", few)?;
    must(notes(&records).contains("traces processes itself"), "ptrace is told", few)
}

fn stopped_and_killed() -> Outcome {
    let program = synth::artifacts::driver_calls()?.display().to_string();
    let trace = Trace::new()?;
    let arguments = ["--", program.as_str(), "storm", "200", "1000000"];
    let mut running = Running(trace.command(&arguments).spawn()?);
    let many = |records: &[Value]| of(records, "return").count() > 500;
    trace.wait_until("five hundred answers", many)?;
    let pid = of(&trace.records(), "start").next().and_then(|start| start["pid"].as_u64());
    let pid = pid.ok_or("no start")?;
    let send = |signal: &str| Command::new("kill").args([signal, &pid.to_string()]).status();
    send("-STOP")?;
    until("the stop", || state(pid).is_some_and(|(state, _)| matches!(state, 't' | 'T')))?;
    let before = of(&trace.records(), "return").count();
    send("-CONT")?;
    trace.wait_until("calls after it", |records| of(records, "return").count() > before + 500)?;
    send("-KILL")?;
    running.0.wait()?;
    let records = trace.records();
    let summary = summary(&records)?;
    let killed = summary["ended"] == "killed" && summary["code"] == 9;
    must(killed, "its end", std::slice::from_ref(summary))
}

fn descriptors() -> Outcome {
    let records = run(&["descriptors"])?;
    let requests = of(&records, "enter").filter(|record| record["request"].is_u64());
    let calls: Vec<&str> = requests.filter_map(|record| record["call"].as_str()).collect();
    let expected = ["UVM_INITIALIZE", "UVM_MM_INITIALIZE", "UVM_REGISTER_GPU"];
    must(calls == expected, "by a copy, a socket and a number used again", &records)
}

fn leader_exits() -> Outcome {
    let records = run(&["leader-exits"])?;
    let call = of(&records, "return").next().ok_or("no call")?;
    let named = call["call"] == "UVM_PAGEABLE_MEM_ACCESS" && call["tid"] != call["pid"];
    must(named && call["status"] == "NV_OK", "with its parameters", &records)
}

fn drops_rights() -> Outcome {
    if !is_root() {
        return skipped("not root, who alone can drop rights");
    }
    let records = run(&["drop"])?;
    let statuses = of(&records, "return").filter(|record| record["status"] == "NV_OK").count();
    must(statuses == 2 && entered(&records, "UVM_PAGEABLE_MEM_ACCESS") == 1, "both", &records)
}

fn maps() -> Outcome {
    let records = run(&["map"])?;
    let returned: Vec<&Value> = of(&records, "return").collect();
    let [map, close] = returned.as_slice() else { return must(false, "two calls", &records) };
    let asked = map["call"] == "mmap" && map["length"] == 0x3000 && map["offset"] == 0x1_0000;
    let got = map["returned"].as_i64().is_some_and(|address| address % 4096 == 0 && address > 0);
    must(asked && got && map["node"] == "/dev/nvidia0", "the mapping", &records)?;
    must(close["call"] == "close" && close["fd"] == map["fd"], "the close", &records)
}

fn nothing() -> Outcome {
    let records = run(&["ioctls", "200"])?;
    must(summary(&records)?["calls"] == 0, "no call of the driver's", &records)
}

/// The least program of i386: it leaves with 0.
fn i386_program() -> Vec<u8> {
    const BASE: u32 = 0x0804_8000;
    // mov $1,%eax; xor %ebx,%ebx; int $0x80
    let code = [0xb8, 1, 0, 0, 0, 0x31, 0xdb, 0xcd, 0x80];
    let headers: u32 = 52 + 32;
    let length = headers + u32::try_from(code.len()).unwrap_or(0);
    let mut bytes = b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    for half in [2_u16, 3] {
        bytes.extend(half.to_le_bytes());
    }
    for word in [1, BASE + headers, 52, 0, 0] {
        bytes.extend(word.to_le_bytes());
    }
    for half in [52_u16, 32, 1, 0, 0, 0] {
        bytes.extend(half.to_le_bytes());
    }
    for word in [1, 0, BASE, BASE, length, length, 5, 0x1000] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend(code);
    bytes
}

fn thirty_two_bit() -> Outcome {
    let folder = Public::new()?;
    let file = folder.path().join("program");
    std::fs::write(&file, i386_program())?;
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755))?;
    match Command::new(&file).status() {
        Ok(status) if status.success() => {}
        other => return skipped(format!("this kernel runs no 32-bit programs: {other:?}")),
    }
    let records = Trace::new()?.run(&["--", &file.display().to_string()])?;
    must(notes(&records).contains("32-bit program"), "what it is", &records)?;
    must(summary(&records)?["code"] == 0, "it runs", &records)
}

fn setuid() -> Outcome {
    if !is_root() {
        return skipped("not root, who alone can make a setuid program of root's");
    }
    let folder = Public::new()?;
    let gpudx = folder.copy(Path::new(env!("CARGO_BIN_EXE_gpudx")), "gpudx")?;
    let program = folder.copy(&synth::artifacts::driver_calls()?, "driver-calls")?;
    chown(&program, Some(0), Some(0))?;
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o4755))?;
    let arguments = ["trace", "--format", "json", "--", &program.display().to_string(), "one"];
    let output = as_nobody(&gpudx, &arguments)?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let records: Vec<Value> =
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    must(notes(&records).contains("setuid"), "that it is setuid", &records)?;
    must(entered(&records, "UVM_PAGEABLE_MEM_ACCESS") == 1, "and its call", &records)
}

fn of_another() -> Outcome {
    if !is_root() {
        return skipped("not root, who alone can be another user");
    }
    let folder = Public::new()?;
    let gpudx = folder.copy(Path::new(env!("CARGO_BIN_EXE_gpudx")), "gpudx")?;
    let target = Running::script("while :; do sleep 1; done")?;
    let output = as_nobody(&gpudx, &["trace", "-p", &target.0.id().to_string()])?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let tells = said.contains("belongs to user 0") && said.contains("CAP_SYS_PTRACE");
    if tells && output.status.code() == Some(2) { Ok(()) } else { Err(said.into()) }
}

/// Runs a program as nobody's user.
fn as_nobody(program: &Path, arguments: &[&str]) -> Result<Output, Failed> {
    let mut command = Command::new(program);
    command.args(arguments).uid(NOBODY).gid(NOBODY).stdin(Stdio::null());
    Ok(command.output()?)
}

pub(crate) fn is_root() -> bool {
    std::fs::read_to_string("/proc/self/status")
        .is_ok_and(|status| status.lines().any(|line| line.starts_with("Uid:\t0\t")))
}

/// A folder that every user may read.
struct Public(tempfile::TempDir);

impl Public {
    fn new() -> Result<Public, Failed> {
        let folder = tempfile::tempdir()?;
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755))?;
        Ok(Public(folder))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn copy(&self, file: &Path, name: &str) -> Result<PathBuf, Failed> {
        let copy = self.path().join(name);
        std::fs::copy(file, &copy)?;
        std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(0o755))?;
        Ok(copy)
    }
}
