//! Tasks of the machine that do not get on: who, how, where, and what belongs to it.

use std::io::{self, Write};

use facts::model::Task;
use facts::model::task::Hang;
use facts::wire::Stuck;

use crate::Report;
use crate::screen::{Role, Screen, Span};

/// Frames that are shown of a stack, from the top, unless all are asked for.
const FRAMES_SHOWN: usize = 4;
/// Tasks that are shown unless all are asked for.
const TASKS_SHOWN: usize = 8;
/// Others at the same place that are named.
const OTHERS_SHOWN: usize = 8;

/// Writes the tasks that concern the driver; the others are counted, and listed under `-v`.
pub(super) fn write<W: Write>(screen: &mut Screen<'_, W>, report: &Report<'_>) -> io::Result<()> {
    let verbose = screen.options().verbose;
    let all = report.facts.tasks.iter();
    let (shown, others): (Vec<&Task>, Vec<&Task>) =
        all.partition(|task| verbose || is_of_interest(task));
    let at_most = if verbose { usize::MAX } else { TASKS_SHOWN };
    let left_out = others.len() + shown.len().saturating_sub(at_most);
    if shown.is_empty() {
        return Ok(());
    }
    screen.line(&[Span::new("Stuck tasks", Role::Strong)])?;
    let mut rows = Vec::new();
    for task in shown.into_iter().take(at_most) {
        for (number, line) in lines(report, task, verbose).into_iter().enumerate() {
            let who = if number == 0 { task.stuck.who() } else { String::new() };
            rows.push(vec![Span::plain(who), Span::plain(line)]);
        }
    }
    screen.labelled(2, &rows)?;
    if left_out > 0 {
        let tasks = if left_out == 1 { "task does" } else { "tasks do" };
        let text = format!("{left_out} more {tasks} not get on (-v lists)");
        screen.paragraph(2, &Span::new(text, Role::Dim))?;
    }
    Ok(())
}

/// A program that holds a node and computes is no hang; what the log alone tells of is shown as
/// evidence where it is some.
fn is_of_interest(task: &Task) -> bool {
    let hang = Hang::of(&task.stuck);
    !task.from_log && task.stuck.concerns_driver() && hang != Some(Hang::BusyInUserSpace)
}

fn lines(report: &Report<'_>, task: &Task, verbose: bool) -> Vec<String> {
    let mut lines = vec![summary(&task.stuck)];
    lines.extend(task.watched_s.map(|seconds| format!("asleep for {seconds} s by the watchdog")));
    lines.extend(particulars(&task.stuck, verbose));
    for event in reason::stuck::log_near(report.facts, task) {
        lines.push(format!(
            "log: {} ({})",
            facts::observed::clean_excerpt(&event.text),
            event.origin
        ));
    }
    if verbose {
        lines.push(format!("seen at {}", task.origin));
    }
    lines
}

/// `sleeps in the kernel (state D); no signal ends that, for 61 s, in ioctl UVM_INITIALIZE on …`
fn summary(stuck: &Stuck) -> String {
    let how = match Hang::of(stuck) {
        Some(hang) => hang.words().to_owned(),
        None => format!("is in state {}", stuck.state),
    };
    let since = stuck.asleep_s.filter(|seconds| *seconds >= 0.1);
    let since = since.map(|seconds| format!("asleep for {seconds:.1} s"));
    let parts: Vec<String> = [Some(how), since, stuck.place()].into_iter().flatten().collect();
    parts.join(", ")
}

/// What else is known of where a task is stuck, a line each.
pub(super) fn particulars(stuck: &Stuck, verbose: bool) -> Vec<String> {
    let mut lines = Vec::new();
    if !stuck.stack.is_empty() {
        let at_most = if verbose { usize::MAX } else { FRAMES_SHOWN };
        let frames: Vec<&str> = stuck.stack.iter().map(String::as_str).take(at_most).collect();
        let more = if frames.len() < stuck.stack.len() { " < …" } else { "" };
        lines.push(format!("stack {}{more}", frames.join(" < ")));
    }
    if let (Some(user), Some(system)) = (stuck.user_share, stuck.system_share)
        && user + system > 0.0
    {
        lines.push(format!("{:.0} % user, {:.0} % system time", user * 100.0, system * 100.0));
    }
    if !stuck.descriptors.is_empty() {
        lines.push(format!("holds {}", stuck.descriptors.join(", ")));
    }
    if stuck.kill_pending {
        lines.push("SIGKILL was sent and is pending".to_owned());
    }
    if !stuck.same_place.is_empty() {
        let named = stuck.same_place.iter().take(OTHERS_SHOWN).map(u32::to_string);
        let named: Vec<String> = named.collect();
        let count = stuck.same_place.len();
        lines.push(format!("{count} more at the same place: {}", named.join(", ")));
    }
    if let Some(age_s) = stuck.age_s.filter(|_| verbose) {
        lines.push(format!("started {age_s:.0} s ago"));
    }
    lines.extend(stuck.not_readable.iter().map(|what| format!("not readable: {what}")));
    lines
}
