//! Device nodes: listings, single nodes, links.

use super::grep;
use super::reading::{Learn, Reading, enter_complaints};
use crate::model::Facts;
use crate::observed::{Errno, Observed, Origin};
use crate::parse::At;
use crate::parse::ls_long::{self as parse, Listed};
use crate::raw::RawItem;

/// A listing of /dev or of a folder in it. A name in it is a node whose particulars are not known
/// yet, which is less than `Seen` and more than `Absent`.
pub(super) fn folder(reading: &Reading, facts: &mut Facts) {
    let Some(text) = reading.text() else {
        if let Some(absent @ Observed::Absent(_)) = reading.without_bytes()
            && reading.path != "/dev"
        {
            facts.node.nodes.entry(reading.path.to_owned()).or_default().learn(absent);
        }
        return;
    };
    let names = || text.as_str().lines().map(|name| name.trim().trim_end_matches('/'));
    for name in names().filter(|name| is_of_interest(name)) {
        facts.node.nodes.entry(format!("{}/{name}", reading.path)).or_default();
        facts.mentions_gpu |= name.starts_with("nvidia");
    }
    let origin = reading.item.silence();
    if reading.path != "/dev" {
        if grep::silence_counts(reading.item, "", false, false) {
            facts.node.listed_beginnings.push((format!("{}/", reading.path), origin));
        }
    } else if grep::silence_counts(reading.item, "", false, false) {
        let wsl = names().any(|name| name == "dxg");
        facts.host.wsl.learn(Observed::seen(wsl, origin.clone()));
        facts.node.listed.learn(Observed::seen((), origin));
    } else if grep::silence_counts(reading.item, "nvidia", true, false) {
        facts.node.listed_beginnings.push(("/dev/nvidia".to_owned(), origin));
    }
}

fn is_of_interest(name: &str) -> bool {
    name.starts_with("nvidia") || name.starts_with("channel") || name == "dxg"
}

/// One node, in the form that gpudx records or as a line of `ls -l`.
pub(super) fn node(reading: &Reading, facts: &mut Facts) {
    let found = reading.single(|text| parse::node_at(reading.path, text));
    facts.node.nodes.entry(reading.path.to_owned()).or_default().or_later(found);
}

/// /dev/dxg, the paravirtual GPU of WSL.
pub(super) fn dxg(reading: &Reading, facts: &mut Facts) {
    let wsl = match reading.without_bytes() {
        None => Observed::seen(true, reading.item.origin()),
        Some(Observed::Absent(origin)) => Observed::seen(false, origin),
        Some(other) => other,
    };
    facts.host.wsl.learn(wsl);
}

/// A symbolic link, such as /dev/char/195:255.
pub(super) fn link(reading: &Reading, facts: &mut Facts) {
    let target = reading.single(|text| Some(text.trim().to_owned()));
    facts.node.links.entry(reading.path.to_owned()).or_default().or_later(target);
}

/// Enters the output of `ls -l` of nodes. `operands` are the paths and patterns that were given to
/// it, as typed: what a pattern or a folder would have shown and did not is absent.
pub fn enter_ls_long(item: &RawItem, operands: &[&str], facts: &mut Facts) {
    let reading = Reading::new(item, "");
    let Some(text) = reading.text() else { return };
    let folder = match operands {
        [] => "",
        [one, ..] => one.trim_end_matches('/'),
    };
    let parsed = parse::ls_long(text.as_str(), folder);
    let unreadable = parsed.value.is_empty() && !parsed.complaints.is_empty();
    let mut lines = text.lines();
    for At { line, value } in parsed.value {
        let origin = lines.origin(line);
        enter_listed(value, origin, facts);
    }
    if !unreadable && !item.partial {
        for operand in operands {
            enter_scope(operand, item.silence(), facts);
        }
    }
    enter_complaints(item, &parsed.complaints, facts);
}

fn enter_listed(listed: Listed, origin: Origin, facts: &mut Facts) {
    match listed {
        Listed::Node(node) if node.path.starts_with("/dev/") => {
            facts.mentions_gpu |= node.path.contains("nvidia");
            let path = node.path.clone();
            facts.node.nodes.entry(path).or_default().or_later(Observed::seen(node, origin));
        }
        Listed::Link { path, target } if path.starts_with("/dev/") => {
            facts.node.links.entry(path).or_default().or_later(Observed::seen(target, origin));
        }
        Listed::Failed { path, errno } if path.starts_with("/dev/") => {
            facts.mentions_gpu |= path.contains("nvidia");
            // A pattern that nothing matches is the scope of the listing; see `enter_scope`.
            if !path.contains('*') {
                let failed = match errno {
                    Errno::ENOENT => Observed::Absent(origin),
                    errno => Observed::Denied(errno, origin),
                };
                facts.node.nodes.entry(path).or_default().or_later(failed);
            }
        }
        Listed::Name { path } if path.starts_with("/dev/") => {
            facts.mentions_gpu |= path.contains("nvidia");
            facts.node.nodes.entry(path).or_default();
        }
        Listed::Node(_) | Listed::Link { .. } | Listed::Name { .. } | Listed::Failed { .. } => {}
    }
}

/// What an operand covers whole: all of /dev, or all names with a beginning.
fn enter_scope(operand: &str, origin: Origin, facts: &mut Facts) {
    let operand = operand.trim_matches(['\'', '"']);
    if matches!(operand, "/dev" | "/dev/" | "/dev/*") {
        facts.node.listed.learn(Observed::seen((), origin));
        return;
    }
    if let Some(beginning) = operand.strip_suffix('*')
        && beginning.starts_with("/dev/")
        && !beginning.contains(['*', '?', '[', '{'])
    {
        facts.node.listed_beginnings.push((beginning.to_owned(), origin));
    }
}
