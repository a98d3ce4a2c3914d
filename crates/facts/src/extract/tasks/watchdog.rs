//! Tasks that the kernel's own watchdog found asleep for minutes: each of its lines names a task,
//! and a stack follows.

use crate::model::log::LogEvent;
use crate::model::{Facts, Task};
use crate::wire::Stuck;

/// Most lines that stand between the line that names the task and the first frame of its stack,
/// and between two frames.
const GAP_LINES: u32 = 8;
/// Most frames that are kept.
const FRAMES_LIMIT: usize = 32;

/// Adds the tasks that the log names, or what it says of those that are known.
pub(super) fn add(facts: &Facts, tasks: &mut Vec<Task>) {
    for event in facts.log.with("HUNG_TASK") {
        let pid: u32 = event.get("pid").and_then(|pid| pid.parse().ok()).unwrap_or(0);
        let seconds = event.get("s").and_then(|seconds| seconds.parse().ok());
        let known = tasks
            .iter_mut()
            .find(|task| pid != 0 && (task.stuck.tid == pid || task.stuck.pid == pid));
        match known {
            Some(task) => {
                // The watchdog repeats itself; the longest time is the last.
                task.watched_s = task.watched_s.max(seconds);
                if task.stuck.stack.is_empty() {
                    task.stuck.stack = stack(facts, event);
                }
            }
            // On a live machine a task that was not found by now has ended since.
            None if facts.live => {}
            None => tasks.push(Task {
                stuck: Stuck {
                    pid,
                    tid: pid,
                    name: event.get("comm").map(str::to_owned),
                    state: "D".to_owned(),
                    stack: stack(facts, event),
                    ..Stuck::default()
                },
                watched_s: seconds,
                from_log: true,
                origin: event.origin.clone(),
            }),
        }
    }
}

/// The scheduler's own frames, with which every stack of a sleeping task begins in the log and not
/// in the task's file.
const SCHEDULER: [&str; 3] = ["__schedule", "schedule", "schedule_preempt_disabled"];

/// The frames below the line, up to the next task's or a gap. Those after a question mark are
/// leftovers on the stack.
fn stack(facts: &Facts, event: &LogEvent) -> Vec<String> {
    let mut last = event.origin.line;
    let same_text = |origin: &crate::Origin| {
        origin.item == event.origin.item && origin.input == event.origin.input
    };
    let next = facts.log.with("HUNG_TASK").map(|other| &other.origin);
    let next = next.filter(|origin| same_text(origin) && origin.line > event.origin.line);
    let end = next.map(|origin| origin.line).min().unwrap_or(u32::MAX);
    let mut frames = Vec::new();
    let below = facts.log.frames.iter().filter(|(_, origin)| {
        same_text(origin) && origin.line > event.origin.line && origin.line < end
    });
    for (frame, origin) in below {
        if origin.line.saturating_sub(last) > GAP_LINES || frames.len() >= FRAMES_LIMIT {
            break;
        }
        last = origin.line;
        let sure = !origin.excerpt.trim_start().starts_with("? ");
        if sure && !(frames.is_empty() && SCHEDULER.contains(&frame.as_str())) {
            frames.push(frame.clone());
        }
    }
    frames
}
