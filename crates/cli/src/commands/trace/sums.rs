//! The sums at the end of a trace.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use probe::trace::{Ended, NodeTotal, Summary, Total};
use render::clean::clean;

use super::lines::time;

/// Most names that are listed; the rest is told as a number.
const NAMES_SHOWN: usize = 40;

/// The sums as lines.
pub(super) fn text(summary: &Summary) -> String {
    let mut text = format!("\n{}\n", head(summary));
    if summary.calls > 0 {
        by_name(&mut text, summary);
        totals(&mut text, "node", &summary.by_node);
        totals(&mut text, "GPU", &summary.by_gpu);
    }
    for (call, count) in &summary.unknown {
        line(&mut text, &format!("in no table: {} ({count})", clean(call)));
    }
    for entry in &summary.in_flight {
        let (call, elapsed) = (&entry.call, time(entry.elapsed));
        let process = clean(&call.process);
        let held = call
            .interposer
            .as_deref()
            .map_or(String::new(), |library| format!(", which {} holds", clean(library)));
        let at = format!("{} on {}{held}", call.name, clean(&call.node));
        line(&mut text, &format!("not returned: {at}, {elapsed}, {process} {}", call.tid));
    }
    for pid in &summary.left_behind {
        line(&mut text, &format!("process {pid} is left behind: SIGKILL does not end it"));
    }
    text
}

/// Writing to a String cannot fail.
fn line(text: &mut String, content: &str) {
    let _ = writeln!(text, "{content}");
}

fn head(summary: &Summary) -> String {
    let ended = match summary.ended {
        Ended::Exited(status) => format!("exited with {status}"),
        Ended::Killed(signal) => format!("ended by signal {signal}"),
        Ended::Deadline => "deadline passed".to_owned(),
        Ended::Asked => "asked to end".to_owned(),
        Ended::Gone => "gone".to_owned(),
    };
    let calls = summary.calls;
    format!("{calls} driver calls in {}; {ended}", time(summary.elapsed))
}

fn by_name(text: &mut String, summary: &Summary) {
    let names = summary.names_by_time();
    line(text, &format!("{:>10} {:>10} {:>7}  call", "time", "longest", "count"));
    for (name, total) in names.iter().take(NAMES_SHOWN) {
        let (sum, longest) = (time(total.time), time(total.longest));
        let failures = failures(total);
        line(
            text,
            &format!("{sum:>10} {longest:>10} {:>7}  {}{failures}", total.count, clean(name)),
        );
    }
    let more = names.len().saturating_sub(NAMES_SHOWN);
    if more > 0 {
        line(text, &format!("… and {more} more names"));
    }
}

fn failures(total: &Total) -> String {
    let each: Vec<String> =
        total.failures.iter().map(|(failure, count)| format!("{failure} ×{count}")).collect();
    if each.is_empty() { String::new() } else { format!("  failed: {}", each.join(", ")) }
}

fn totals(text: &mut String, what: &str, totals: &BTreeMap<String, NodeTotal>) {
    for (name, total) in totals {
        let (sum, count) = (time(total.time), total.count);
        let (slowest, call) = match &total.slowest {
            Some((call, longest)) => (time(*longest), format!("  longest: {}", clean(call))),
            None => (String::new(), String::new()),
        };
        line(text, &format!("{sum:>10} {slowest:>10} {count:>7}  {what} {}{call}", clean(name)));
    }
}
