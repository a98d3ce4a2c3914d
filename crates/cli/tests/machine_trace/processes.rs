//! Processes that fork, execute, stop, die, or are attached to.

use libtest_mimic::Trial;

use crate::support::{Outcome, Running, Trace, must, nodes, of, state, summary, until};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::test("threads_children_and_execs_are_followed", followed),
        Trial::test("a_stop_stays_a_stop_and_is_ended_by_a_continue", stopped),
        Trial::test("a_killed_target_is_told", killed),
        Trial::test("what_cannot_be_started_is_refused", refused),
        Trial::test("killing_the_tracer_ends_what_it_launched", tracer_of_launched_dies),
        Trial::test("killing_the_tracer_lets_an_attached_process_go_on", tracer_of_attached_dies),
        Trial::test("an_attached_process_is_let_go_at_the_deadline", attached),
        Trial::test("who_is_traced_already_is_refused_with_the_tracer", traced_already),
    ]
}

/// Opens sixty nodes in as many processes at once, each from a shell of its own that executes
/// another.
fn followed() -> Outcome {
    let trace = Trace::new()?;
    let script = "for n in $(seq 1 60); do (exec sh -c \"true < /dev/nvidia$n\") & done; wait";
    let records = trace.run(&["--", "sh", "-c", script])?;
    let mut opened = nodes(&records);
    opened.sort_unstable();
    let mut expected: Vec<String> = (1..=60).map(|n| format!("/dev/nvidia{n}")).collect();
    expected.sort_unstable();
    must(opened == expected, "each node once", &records)?;
    must(of(&records, "return").count() == 60, "each call returned", &records)?;
    let refusals = summary(&records)?["by_name"][0]["failures"]["ENOENT"].as_u64();
    must(refusals == Some(60), "each failed with ENOENT", &records)
}

fn stopped() -> Outcome {
    let trace = Trace::new()?;
    let script = "true < /dev/nvidia1; kill -STOP $$; true < /dev/nvidia2";
    let mut running = trace.command(&["--", "sh", "-c", script]).spawn().map(Running)?;
    trace.wait_for("return")?;
    let pid = of(&trace.records(), "start").next().and_then(|start| start["pid"].as_u64());
    let pid = pid.ok_or("no start")?;
    // A group-stop shows as a trace stop while somebody traces; it must last.
    until("the stop", || state(pid).is_some_and(|(state, _)| matches!(state, 't' | 'T')))?;
    std::process::Command::new("kill").args(["-CONT", &pid.to_string()]).status()?;
    running.0.wait()?;
    let records = trace.records();
    must(nodes(&records) == ["/dev/nvidia1", "/dev/nvidia2"], "both nodes", &records)
}

fn killed() -> Outcome {
    let trace = Trace::new()?;
    let records = trace.run(&["--", "sh", "-c", "kill -KILL $$"])?;
    let summary = summary(&records)?;
    must(summary["ended"] == "killed" && summary["code"] == 9, "killed by 9", &records)
}

fn refused() -> Outcome {
    let trace = Trace::new()?;
    for program in ["no-program-has-this-name", "/dev/null", "/proc/version"] {
        let output =
            trace.command(&["--", program]).stderr(std::process::Stdio::piped()).output()?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.code() != Some(2) || !said.contains(program) {
            return Err(format!("{program}: {said}").into());
        }
    }
    Ok(())
}

fn tracer_of_launched_dies() -> Outcome {
    let trace = Trace::new()?;
    let script = "true < /dev/nvidia1; while :; do sleep 1; done";
    let tracer = trace.command(&["--", "sh", "-c", script]).spawn().map(Running)?;
    trace.wait_for("return")?;
    let pid = of(&trace.records(), "start").next().and_then(|start| start["pid"].as_u64());
    let pid = pid.ok_or("no start")?;
    drop(tracer);
    until("the end of the target", || state(pid).is_none_or(|(state, _)| state == 'Z'))
}

const LOOP: &str = "while :; do true < /dev/nvidia7; sleep 0.02; done";

fn tracer_of_attached_dies() -> Outcome {
    let target = Running::script(LOOP)?;
    let pid = u64::from(target.0.id());
    let trace = Trace::new()?;
    let tracer = trace.command(&["-p", &pid.to_string()]).spawn().map(Running)?;
    trace.wait_for("return")?;
    drop(tracer);
    goes_on(pid)
}

fn attached() -> Outcome {
    let target = Running::script(LOOP)?;
    let pid = u64::from(target.0.id());
    let trace = Trace::new()?;
    let records = trace.run(&["-p", &pid.to_string(), "--deadline", "700ms"])?;
    must(nodes(&records).contains(&"/dev/nvidia7"), "its opens", &records)?;
    must(summary(&records)?["ended"] == "deadline", "the deadline", &records)?;
    goes_on(pid)
}

/// Neither stopped nor traced, and not dead.
fn goes_on(pid: u64) -> Outcome {
    until("a process that goes on", || {
        state(pid).is_some_and(|(state, tracer)| matches!(state, 'R' | 'S') && tracer == 0)
    })
}

fn traced_already() -> Outcome {
    let target = Running::script(LOOP)?;
    let pid = target.0.id().to_string();
    let trace = Trace::new()?;
    let first = trace.command(&["-p", &pid]).spawn().map(Running)?;
    trace.wait_for("return")?;
    let second = Trace::new()?;
    let output = second.command(&["-p", &pid]).stderr(std::process::Stdio::piped()).output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let names_it = said.contains(&format!("process {} traces it", first.0.id()));
    if names_it { Ok(()) } else { Err(said.into()) }
}
