//! Trials of cuInit against a libcuda that does what it is told.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::collected::{Collected, collector};
use crate::frozen;

/// A folder with a libcuda.so.1, built here; `None`, and a word about it, without a C compiler.
pub(crate) fn library() -> Option<tempfile::TempDir> {
    let folder = tempfile::tempdir().unwrap();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/machine/fake_libcuda.c");
    let mut command = Command::new("cc");
    command.args(["-shared", "-fPIC", "-w", "-o"]).arg(folder.path().join("libcuda.so.1"));
    match command.arg(source).status() {
        Ok(status) if status.success() => {
            // Another user must be able to load it.
            Command::new("chmod").arg("755").arg(folder.path()).status().unwrap();
            Some(folder)
        }
        other => {
            println!("skipped: no C compiler: {other:?}");
            None
        }
    }
}

/// Collects with the library in front, in a mode.
fn collect(folder: &Path, mode: &str) -> Collected {
    Collected::from(collector().env("LD_LIBRARY_PATH", folder).env("MODE", mode))
}

fn code_of_init(run: &str) -> Option<&str> {
    let call = run.lines().find(|line| line.contains("\"record\":\"call\",\"call\":\"cuInit\""))?;
    call.split("\"code\":").nth(1)?.split(',').next()
}

pub(crate) fn one_success_is_enough() {
    let Some(folder) = library() else { return };
    let collected = collect(folder.path(), "0");
    let run = collected.probe("cuinit#1").unwrap();
    assert_eq!((collected.outcome("cuinit#1"), code_of_init(run)), (Some("returned"), Some("0")));
    assert!(collected.probe("cuinit#2").is_none());
    let mapped = folder.path().canonicalize().unwrap().join("libcuda.so.1");
    assert!(run.contains(&format!("\"mapped-libcuda\",\"value\":\"{}\"", mapped.display())));
    for answer in ["\"value\":\"Fake GPU\"", "\"value\":\"0000:01:00.0\"", "\"value\":\"9.0\""] {
        assert!(run.contains(answer), "{answer} is not in {run}");
    }
    let would_map = collected.probe("libraries#1").unwrap();
    assert!(would_map.contains("libcuda.so.1 by LD_LIBRARY_PATH"), "{would_map}");
}

pub(crate) fn failures_are_repeated() {
    let Some(folder) = library() else { return };
    let collected = collect(folder.path(), "3");
    for trial in ["cuinit#1", "cuinit#2", "cuinit#3"] {
        let run = collected.probe(trial).unwrap();
        assert_eq!((collected.outcome(trial), code_of_init(run)), (Some("returned"), Some("3")));
    }
    assert!(collected.probe("cuinit#4").is_none());
    assert!(collected.probe("kernel-log#1").is_none(), "the later reading takes its place");
    assert!(collected.probe("kernel-log#2").is_some());
}

pub(crate) fn crashes_and_exits_are_told_apart() {
    let Some(folder) = library() else { return };
    let crashed = collect(folder.path(), "crash");
    assert_eq!(crashed.outcome("cuinit#3"), Some("crashed"));
    assert!(crashed.probe("cuinit#1").unwrap().contains("\"outcome\":\"crashed\",\"code\":11"));
    let exited = collect(folder.path(), "exit");
    assert_eq!(exited.outcome("cuinit#3"), Some("malformed"));
}

pub(crate) fn a_library_that_prints_spoils_nothing() {
    let Some(folder) = library() else { return };
    let collected = collect(folder.path(), "print");
    assert_eq!(collected.outcome("cuinit#1"), Some("returned"));
    let run = collected.probe("cuinit#1").unwrap();
    assert!(run.contains("\"key\":\"stderr\""), "{run}");
}

pub(crate) fn a_library_that_does_not_load_says_why() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("libcuda.so.1"), "no ELF file").unwrap();
    let collected = collect(folder.path(), "0");
    let run = collected.probe("cuinit#1").unwrap();
    assert!(run.contains("\"call\":\"load\",\"on\":\"libcuda.so.1\",\"code\":1"), "{run}");
    assert!(run.contains("file too short") || run.contains("invalid ELF header"), "{run}");
    assert!(collected.probe("cuinit#2").is_none(), "a second trial would say the same");
}

pub(crate) fn a_hang_ends_at_the_deadline() {
    let Some(folder) = library() else { return };
    let started = Instant::now();
    let collected = Collected::from(
        collector()
            .env("LD_LIBRARY_PATH", folder.path())
            .env("MODE", "hang")
            .env("DEADLINE", "1.5"),
    );
    assert!(started.elapsed() < Duration::from_secs(20), "a call that never returns was awaited");
    assert_eq!(collected.outcome("cuinit#1"), Some("timed-out"));
    let run = collected.probe("cuinit#1").unwrap();
    assert!(
        run.contains("{\"record\":\"enter\",\"call\":\"cuInit\"}\n{\"record\":\"end\""),
        "{run}"
    );
    assert!(run.contains("\"stuck\":{"), "{run}");
    assert!(!Path::new(&format!("/proc/{}", collected.pid("cuinit#1"))).exists());
}

pub(crate) fn what_cannot_be_killed_is_named() {
    let Some(folder) = library() else { return };
    let frozen = match frozen::FileSystem::make() {
        Ok(frozen) => frozen,
        Err(why) => {
            println!("skipped: no frozen file system can be made here: {why}");
            return;
        }
    };
    let collected = Collected::from(
        collector()
            .env("LD_LIBRARY_PATH", folder.path())
            .env("MODE", "freeze")
            .env("FROZEN_FILE", frozen.path().join("file"))
            .env("DEADLINE", "1.5"),
    );
    let pid = collected.pid("cuinit#1");
    let run = collected.probe("cuinit#1").unwrap();
    assert_eq!(collected.outcome("cuinit#1"), Some("unkillable"), "{run}");
    for told in [
        "\"state\":\"D\"",
        "\"wchan\":\"percpu_rwsem_wait\"",
        "\"call\":\"openat on ",
        &format!("process {pid} is left behind"),
    ] {
        assert!(run.contains(told), "{told} is not in {run}");
    }
    assert!(collected.probe("cuinit#2").is_none(), "a second one would be stuck too");
    assert!(Path::new(&format!("/proc/{pid}")).exists());
    let others: Vec<u32> =
        ["nvml#1", "nodes#1", "passive#1"].iter().map(|probe| collected.pid(probe)).collect();
    assert!(!others.iter().any(|pid| Path::new(&format!("/proc/{pid}")).exists()));
}
