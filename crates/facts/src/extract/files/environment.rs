//! Environment and limits of the process.

use super::grep::Filter;
use super::reading::{Reading, enter_complaints};
use crate::model::Facts;
use crate::observed::Seen;
use crate::parse::limits::{self as parse, NamedLimit};
use crate::parse::{Parsed, environ as variables};
use crate::raw::RawItem;

/// /proc/self/environ.
pub(super) fn environ(reading: &Reading, facts: &mut Facts) {
    enter_environ(reading.item, facts);
}

/// Enters an environment, from the kernel's file or from the output of `env`. A whole one says
/// of every other variable that it is not set; a filtered one only of those that the filter would
/// have shown.
pub fn enter_environ(item: &RawItem, facts: &mut Facts) {
    let Some(bytes) = item.bytes() else { return };
    for at in variables::environ(bytes) {
        let (name, value) = at.value;
        let origin = item.origin_at(at.line, &format!("{name}={value}"));
        facts.process.env.insert(name, Seen::new(value, origin));
    }
    match &item.filter {
        Some(pattern) => {
            let names = Filter::parse(pattern).names().collect::<Vec<String>>();
            facts.process.env_listed.extend(names.into_iter().map(|name| (name, item.origin())));
        }
        // The environment of a process is never empty in practice; an empty file is one whose
        // process is gone.
        None if item.partial || bytes.is_empty() => {}
        None => facts.process.env_listed.push((String::new(), item.origin())),
    }
}

/// /proc/self/limits.
pub(super) fn limits(reading: &Reading, facts: &mut Facts) {
    enter_limits(reading.item, parse::proc_limits, facts);
    let Some(text) = reading.text() else { return };
    let mut lines = text.lines();
    for at in parse::proc_hard_limits(text.as_str()) {
        let Seen { value: (name, limit), origin } = lines.seen(at);
        facts.process.hard_limits.insert(name.to_owned(), Seen::new(limit, origin));
    }
}

/// pids.max of the cgroup: a number, or `max`.
pub(super) fn pids_max(reading: &Reading, facts: &mut Facts) {
    if reading.item.bytes().is_none() {
        return;
    }
    let limit = reading.single(|text| match text.trim() {
        "max" => Some(None),
        number => number.parse().ok().map(Some),
    });
    facts.process.pids_max.or_better(limit);
}

/// Enters the output of `ulimit -a`.
pub fn enter_ulimit_all(item: &RawItem, facts: &mut Facts) {
    enter_limits(item, parse::ulimit_all, facts);
}

/// Enters the output of `ulimit -X` for one option letter.
pub fn enter_ulimit_one(item: &RawItem, flag: char, facts: &mut Facts) {
    let Some(text) = item.text() else { return };
    if let Some((name, limit)) = parse::ulimit_one(flag, &text) {
        let seen = Seen::new(limit, item.origin_at(1, &text));
        facts.process.limits.insert(name.to_owned(), seen);
    }
}

fn enter_limits(item: &RawItem, parser: fn(&str) -> Parsed<Vec<NamedLimit>>, facts: &mut Facts) {
    let reading = Reading::new(item, "");
    let Some(text) = reading.text() else { return };
    let parsed = parser(text.as_str());
    let mut lines = text.lines();
    for at in parsed.value {
        let Seen { value: (name, limit), origin } = lines.seen(at);
        facts.process.limits.insert(name.to_owned(), Seen::new(limit, origin));
    }
    enter_complaints(item, &parsed.complaints, facts);
}
