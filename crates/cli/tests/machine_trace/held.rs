//! A task in state D under the tracer.

use std::process::{Command, Stdio};

use libtest_mimic::Trial;

use crate::frozen::FileSystem;
use crate::support::{Outcome, Running, Trace, must, nodes, skipped, state, summary, until};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::test("a_launched_task_in_state_d_is_left_behind", launched),
        Trial::test("a_task_in_state_d_does_not_hold_who_attaches", attached),
    ]
}

/// The trace ends although the task cannot be ended, and says so.
fn launched() -> Outcome {
    let frozen = match FileSystem::make() {
        Ok(frozen) => frozen,
        Err(why) => return skipped(why),
    };
    let trace = Trace::new()?;
    let file = frozen.path().join("file");
    let script = format!("true < /dev/nvidia1; echo x > {}", file.display());
    let records = trace.run(&["--deadline", "1500ms", "--", "sh", "-c", &script])?;
    must(nodes(&records) == ["/dev/nvidia1"], "its open", &records)?;
    let summary = summary(&records)?;
    must(summary["ended"] == "deadline", "the deadline", &records)?;
    let left = summary["left_behind"].as_array().map_or(0, Vec::len);
    must(left == 1, "one process is left behind", &records)?;
    let pid = summary["left_behind"][0].as_u64().unwrap_or(0);
    drop(frozen);
    until("the end of the task once it is let go", || {
        state(pid).is_none_or(|(state, _)| state == 'Z')
    })
}

fn attached() -> Outcome {
    let frozen = match FileSystem::make() {
        Ok(frozen) => frozen,
        Err(why) => return skipped(why),
    };
    let file = frozen.path().join("file");
    let mut command = Command::new("sh");
    command.args(["-c", &format!("echo x > {}", file.display())]);
    let target = Running(command.stdin(Stdio::null()).spawn()?);
    let pid = u64::from(target.0.id());
    until("state D", || state(pid).is_some_and(|(state, _)| state == 'D'))?;
    let trace = Trace::new()?;
    let mut tracer =
        trace.command(&["-p", &pid.to_string(), "--deadline", "500ms"]).spawn().map(Running)?;
    until("the end of the trace", || tracer.0.try_wait().is_ok_and(|end| end.is_some()))?;
    let records = trace.records();
    must(summary(&records)?["ended"] == "deadline", "the deadline", &records)?;
    // Thawed first: until then the target cannot be reaped.
    drop(frozen);
    until("a task that is traced no more", || {
        state(pid).is_none_or(|(state, tracer)| tracer == 0 && state != 't')
    })?;
    Ok(())
}
