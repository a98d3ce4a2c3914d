//! Children that misbehave in every way, and what the supervisor says of each.

#![expect(clippy::unwrap_used, reason = "a test ends by panicking")]

use std::time::{Duration, Instant};

use facts::wire::Outcome;
use probe::supervise::{ChildSpec, Finished, Supervisor};

/// A line of a report, for `echo`.
const LINE: &str = r#"echo '{"record":"note","key":"a","value":"b"}';"#;
/// The line that ends a report.
const DONE: &str = r#"echo '{"record":"note","key":"done","value":""}';"#;

/// A child that runs a shell script.
fn shell(script: &str) -> ChildSpec {
    let mut spec = ChildSpec::probe("test", 1, Duration::from_millis(400));
    spec.program = Some("/bin/sh".into());
    spec.arguments = vec!["-c".into(), script.into()];
    spec
}

fn run(spec: ChildSpec) -> Finished {
    let mut supervisor = Supervisor::new(Instant::now() + Duration::from_mins(1));
    supervisor.start(spec);
    let mut all = supervisor.finish_all();
    assert_eq!(all.len(), 1);
    all.remove(0)
}

/// Runs a script with time enough to end by itself.
fn run_to_end(script: &str) -> Finished {
    let mut spec = shell(script);
    spec.limit = Duration::from_secs(30);
    run(spec)
}

fn notes(finished: &Finished) -> String {
    finished.end.notes.join("; ")
}

/// The probe's own lines.
fn lines(finished: &Finished) -> String {
    finished.items.last().unwrap().text().unwrap().into_owned()
}

/// True when the process is gone, or dead and only waits for its reaper.
fn is_gone(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_err() || stat.is_ok_and(|stat| stat.contains(") Z "))
}

fn assert_is_gone(pid: u32) {
    // A process that was killed a moment ago may still be on its way out.
    let until = Instant::now() + Duration::from_secs(10);
    while !is_gone(pid) {
        assert!(Instant::now() < until, "process {pid} is still there");
        std::thread::yield_now();
    }
}

#[test]
fn a_whole_report_has_returned() {
    let finished = run_to_end(&format!("{LINE} {DONE} exit 3"));
    assert_eq!((finished.end.outcome, finished.end.code), (Outcome::Returned, Some(3)));
    assert!(finished.end.notes.is_empty(), "{}", notes(&finished));
    let lines = lines(&finished);
    assert!(lines.starts_with(r#"{"record":"note","key":"a","value":"b"}"#), "{lines}");
    assert!(lines.contains(r#""record":"end","outcome":"returned","code":3"#), "{lines}");
    assert!(!lines.contains(r#""key":"done""#), "{lines}");
}

#[test]
fn a_report_that_breaks_off_is_malformed() {
    for script in [
        "exit 3",
        "true",
        LINE,
        r#"echo '{"record":"note","#,
        &format!("{LINE} {DONE} printf '{{\"rec'"),
        &format!("echo garbage; {DONE}"),
    ] {
        let finished = run_to_end(script);
        assert_eq!(finished.end.outcome, Outcome::Malformed, "{script}");
    }
    assert_eq!(run_to_end("exit 3").end.code, Some(3));
}

#[test]
fn a_crash_is_told_by_its_signal() {
    for (name, number) in [("SEGV", 11), ("ABRT", 6), ("KILL", 9), ("TERM", 15)] {
        let finished = run_to_end(&format!("{LINE} kill -{name} $$; sleep 60"));
        assert_eq!((finished.end.outcome, finished.end.code), (Outcome::Crashed, Some(number)));
        assert!(lines(&finished).contains(r#""key":"a""#));
    }
}

#[test]
fn what_cannot_be_started_says_why() {
    let mut spec = shell("true");
    spec.program = Some("/no/such/binary".into());
    let finished = run(spec);
    assert_eq!(finished.end.outcome, Outcome::NotStarted);
    assert_eq!(finished.end.code, Some(2), "ENOENT");
    let mut spec = shell("true");
    spec.program = Some("/etc/passwd".into());
    assert_eq!(run(spec).end.code, Some(13), "EACCES");
}

#[test]
fn a_hang_is_ended_and_told_where_it_was() {
    let finished = run(shell("exec sleep 1000"));
    assert_eq!(finished.end.outcome, Outcome::TimedOut);
    let stuck = finished.end.stuck.as_ref().unwrap();
    assert_eq!(stuck.state, "S");
    assert_is_gone(finished.end.pid.unwrap());
    if let Some(call) = &stuck.call {
        assert!(call.contains("nanosleep"), "{call}");
    }
}

#[test]
fn a_busy_loop_uses_time() {
    let finished = run(shell("while :; do :; done"));
    let stuck = finished.end.stuck.unwrap();
    assert_eq!((finished.end.outcome, stuck.state.as_str()), (Outcome::TimedOut, "R"));
    assert!(stuck.user_share.unwrap() + stuck.system_share.unwrap() > 0.0);
}

#[test]
fn ignoring_the_request_to_end_does_not_help() {
    let finished = run(shell("trap '' TERM; while :; do sleep 1; done"));
    assert_eq!(finished.end.outcome, Outcome::TimedOut);
    assert_is_gone(finished.end.pid.unwrap());
    let children = notes(&finished);
    assert!(children.contains("it has started sleep"), "{children}");
}

#[test]
fn stopping_itself_is_told() {
    let finished = run(shell("kill -STOP $$; sleep 1"));
    assert_eq!(finished.end.outcome, Outcome::TimedOut);
    assert!(notes(&finished).contains("stopped itself"), "{}", notes(&finished));
    assert_is_gone(finished.end.pid.unwrap());
}

#[test]
fn a_flood_is_cut() {
    let mut spec = shell("yes");
    spec.limit = Duration::from_secs(30);
    spec.output_limit_bytes = 3 << 20;
    let finished = run(spec);
    assert_eq!(finished.end.outcome, Outcome::Malformed);
    assert!(notes(&finished).contains("output cut at 3 MiB"), "{}", notes(&finished));
    assert_is_gone(finished.end.pid.unwrap());
    let mut spec = shell("yes >&2");
    spec.limit = Duration::from_secs(30);
    spec.output_limit_bytes = 3 << 20;
    assert_eq!(run(spec).end.outcome, Outcome::Malformed);
}

#[test]
fn a_grandchild_that_holds_the_pipe_is_not_waited_for() {
    let script = format!(
        "sleep 1000 & echo \"{{\\\"record\\\":\\\"note\\\",\\\"key\\\":\\\"pid\\\",\\\"value\\\":\\\"$!\\\"}}\"; {DONE}"
    );
    let finished = run_to_end(&script);
    assert_eq!(finished.end.outcome, Outcome::Returned);
    assert!(notes(&finished).contains("held by a grandchild"), "{}", notes(&finished));
    let lines = lines(&finished);
    let pid = lines.split("\"pid\",\"value\":\"").nth(1).unwrap().split('"').next().unwrap();
    assert_is_gone(pid.parse().unwrap());
}

#[test]
fn what_a_child_says_on_standard_error_is_kept_from_its_end() {
    let finished = run_to_end("seq 1 20000 >&2; echo last words >&2; exit 1");
    let lines = lines(&finished);
    assert!(lines.contains(r"last words\n"), "{lines}");
    assert!(lines.len() < 10_000, "{} bytes", lines.len());
}

#[test]
fn one_deadline_holds_for_all() {
    let started = Instant::now();
    let mut supervisor = Supervisor::new(started + Duration::from_millis(600));
    for script in ["sleep 1000", "trap '' TERM; while :; do sleep 1; done", "kill -STOP $$"] {
        let mut spec = shell(script);
        spec.limit = Duration::from_secs(1000);
        supervisor.start(spec);
    }
    supervisor.start(shell(&format!("{LINE} {DONE}")));
    let all = supervisor.finish_all();
    assert!(started.elapsed() < Duration::from_secs(20), "children that sleep 1000 s were awaited");
    let ended = |outcome| all.iter().filter(|one| one.end.outcome == outcome).count();
    assert_eq!((ended(Outcome::TimedOut), ended(Outcome::Returned)), (3, 1));
    supervisor.start(shell("true"));
    assert_eq!(supervisor.finish_all()[0].end.outcome, Outcome::NotStarted, "no time is left");
}

#[test]
fn dropping_the_supervisor_ends_its_children() {
    let mut supervisor = Supervisor::new(Instant::now() + Duration::from_secs(1000));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let mut spec = shell(&format!("echo $$ > {}; {LINE} exec sleep 1000", file.display()));
    spec.limit = Duration::from_secs(1000);
    supervisor.start(spec);
    while !std::fs::read_to_string(&file).is_ok_and(|text| text.ends_with('\n')) {
        assert!(supervisor.next_finished(Duration::from_millis(10)).is_none());
    }
    drop(supervisor);
    let pid: u32 = std::fs::read_to_string(file).unwrap().trim().parse().unwrap();
    assert_is_gone(pid);
}

#[test]
fn a_child_inherits_nothing_but_its_three_descriptors() {
    let open = std::fs::File::open("/etc/passwd").unwrap();
    let finished = run_to_end(&format!("ls -l /proc/$$/fd >&2; {DONE}"));
    drop(open);
    let lines = lines(&finished);
    assert!(lines.contains("0 -> /dev/null"), "{lines}");
    assert!(!lines.contains("passwd"), "{lines}");
}
