//! The command line itself: usage errors, help, and what a shell does to a program.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;

use crate::support::{Run, gpudx, run};

#[test]
fn a_wrong_command_line_is_one_line_and_64() {
    run(&["chekc"]).one_line(64, "chekc");
    run(&["--no-such-option"]).one_line(64, "--no-such-option");
    run(&["--deadline", "5h"]).one_line(64, "5s");
    run(&["check", "--trials", "0"]).one_line(64, "--trials");
    run(&["check", "--layer", "cloud"]).one_line(64, "framework");
    run(&["read"]).one_line(64, "FILE");
    run(&["explain"]).one_line(64, "WORD");
    run(&["read", "-", "--format", "html"]).one_line(64, "html");
    run(&["--deadline", "5s", "explain", "803"]).one_line(64, "after its name");
    run(&["demo", "no-such-case"]).one_line(64, "no-such-case");
}

#[test]
fn an_argument_that_is_no_text_is_a_usage_error() {
    let run = Run::of(gpudx().arg("explain").arg(OsStr::from_bytes(b"\xff\xfe")).output().unwrap());
    run.one_line(64, "");
}

#[test]
fn surroundings_that_are_no_text_do_no_harm() {
    let odd = OsStr::from_bytes(b"\xff\xfe");
    let mut command = gpudx();
    command.env("COLUMNS", odd).env("TERM", odd).env("NO_COLOR", odd).args(["explain", "803"]);
    let run = Run::of(command.output().unwrap());
    assert_eq!((run.status, run.err.as_str()), (0, ""));
    assert!(run.out.contains("CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"));
}

#[test]
fn help_and_version_are_answers() {
    let help = run(&["--help"]);
    assert_eq!((help.status, help.err.as_str()), (0, ""));
    for word in ["check", "read", "explain", "firmware", "demo", "Exit status"] {
        assert!(help.out.contains(word), "{word}");
    }
    assert!(!help.out.contains("__probe"));
    let version = run(&["--version"]);
    assert_eq!(version.status, 0);
    assert_eq!(version.out, format!("gpudx {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let mut command = gpudx();
    command.args(["demo"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    let status = child.wait().unwrap();
    assert_eq!((status.code(), err.as_str()), (Some(0), ""));
}

#[test]
fn an_answer_that_cannot_be_written_is_told() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = gpudx();
    command.args(["explain", "803"]).stdout(full).stderr(Stdio::piped());
    let output = command.spawn().unwrap().wait_with_output().unwrap();
    Run::of(output).one_line(2, "cannot write");
}

#[test]
fn every_width_has_its_answer() {
    for columns in ["1", "0", "-3", "40", "200", "99999999999999999999"] {
        let run = Run::of(gpudx().env("COLUMNS", columns).args(["demo"]).output().unwrap());
        assert_eq!((run.status, run.err.as_str()), (0, ""), "{columns}");
        assert!(run.out.contains("uvm.hmm"), "{columns}");
    }
}

#[test]
fn color_comes_only_when_asked_for_or_on_a_terminal() {
    assert!(!run(&["demo"]).out.contains('\u{1b}'));
    assert!(!run(&["--color", "never", "demo"]).out.contains('\u{1b}'));
    assert!(run(&["--color", "always", "demo"]).out.contains('\u{1b}'));
    let quiet = Run::of(gpudx().env("NO_COLOR", "1").args(["demo"]).output().unwrap());
    assert!(!quiet.out.contains('\u{1b}'));
}

#[test]
fn the_child_of_a_probe_does_not_reach_the_command_line() {
    let run = run(&["__probe", "no-such-probe"]);
    assert_eq!(run.status, 64);
    assert_eq!(run.out, "");
}
