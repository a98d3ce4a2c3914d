//! Messages of container engines and their hooks, and settings of their configuration.

use super::pattern::{captures, group, matches, pattern};
use super::{Line, bounded};
use crate::model::Facts;
use crate::model::host::ContainerKind;
use crate::observed::{Observed, Seen};
use crate::parse::numbered;
use crate::raw::RawItem;

/// Longest command line that is put together, in bytes.
const COMMAND_BYTES: usize = 8192;

pattern! {
    HOOK = r"(?i)(?:nvidia-container-cli: (?P<cli>.+)|unresolvable CDI devices? (?P<cdi>.+)|could not select device driver (?P<driver>.+)|registering nvproxy driver: (?P<gvisor>.+)|driver rpc error: (?P<rpc>.+))"
}
pattern! {
    SETTING = r"^\s*#?\s*(?P<key>lxc\.[\w.]+|no-cgroups|dev\d+|devices\.allow)\s*[=:]\s*(?P<value>.+?)\s*$"
}
pattern! { RUN = r"(?P<run>(?:(?:nvidia-)?docker|podman|nerdctl) run [^`\n]+)" }
pattern! {
    /// The prefix that compose puts before the lines of a service: `webui-auto-1  | …`.
    COMPOSE = r"^\s*[a-z0-9][\w.]*(?:[-_][\w.]+)*[-_]\d{1,2}\s{1,4}\| \S"
}
pattern! {
    /// A compose file that asks for GPUs.
    COMPOSE_FILE = r"^\s*(?:-\s+driver:\s+nvidia|runtime:\s+nvidia)\s*$"
}
pattern! {
    /// libnvidia-container's log: `nvc.c:255] using root /run/nvidia/driver`.
    USING_ROOT = r"\bnvc\.c:\d+\] using root (?P<root>/\S*)"
}
pattern! { IN_LXC = r"(?i)\b(?:in|inside|an?|the|privileged|unprivileged) (?:\w+ )?(?:LXC|LXD|CT)\b|\(\s*LX[CD]\s*\)" }
pattern! { IN_DOCKER = r"(?i)\b(?:in|inside|within) (?:a |the |my )?(?:docker|podman)\b" }
pattern! { IN_POD = r"(?i)\b(?:in|inside|within) (?:a |the |my )?(?:pod|kubernetes|k8s)\b" }

pub(super) fn read(line: &Line<'_>, facts: &mut Facts) {
    if let Some(found) = captures(&HOOK, line.text) {
        facts.mentions_gpu = true;
        let kind = ["cdi", "driver", "gvisor", "rpc", "cli"]
            .into_iter()
            .find(|name| found.name(name).is_some())
            .unwrap_or("cli");
        let text = crate::observed::clean_excerpt(line.text);
        facts.sandbox.engine_messages.push(Seen::new((kind, text), line.origin()));
    }
    if let Some(found) = captures(&SETTING, line.text)
        && !line.text.trim_start().starts_with('#')
    {
        let text = |name: &str| found.name(name).map_or("", |m| m.as_str()).to_owned();
        let seen = Seen::new((text("key"), text("value")), line.origin());
        facts.sandbox.settings.push(seen);
    }
    if let Some(root) = group(&USING_ROOT, line.text, "root") {
        let seen = Seen::new(("root".to_owned(), root.to_owned()), line.origin());
        facts.sandbox.settings.push(seen);
    }
    for (pattern, kind) in [
        (&COMPOSE, ContainerKind::Docker),
        (&COMPOSE_FILE, ContainerKind::Docker),
        (&IN_LXC, ContainerKind::Lxc),
        (&IN_DOCKER, ContainerKind::Docker),
        (&IN_POD, ContainerKind::Kubernetes),
    ] {
        if matches(pattern, line.text) && !facts.host.container.is_seen() {
            facts.host.container = Observed::seen(kind, line.origin());
        }
    }
}

/// The engines' command lines within prose or code. One may go on over several lines, and what it
/// asks for often stands in the last; one that is cut off tells nothing.
pub(super) fn commands(item: &RawItem, text: &str, facts: &mut Facts) {
    let mut lines = numbered(text);
    while let Some((number, first)) = lines.next() {
        let first = bounded(first);
        let Some(run) = group(&RUN, first, "run") else { continue };
        if let Some(command) = whole(run, lines.by_ref().map(|(_, line)| bounded(line))) {
            request(&command, &Line { item, number, text: first }, facts);
        }
    }
}

/// A command with the lines that a backslash at the end of each joins to it; `None` when the last of
/// them is not there.
fn whole<'a>(first: &str, mut more: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut command = first.trim_end().to_owned();
    while let Some(begun) = command.strip_suffix('\\') {
        if begun.len() > COMMAND_BYTES {
            return None;
        }
        // A quoted command has the mark of a quotation before each line.
        let next = more.next()?.trim_end().trim_start_matches(['>', ' ', '\t']);
        command = format!("{begun} {next}");
    }
    Some(command)
}

/// An option, or the name of an image with its folder or tag: "docker run failed as follows:" is a
/// sentence.
fn is_command(words: &[String]) -> bool {
    words.iter().skip(2).any(|word| {
        let inner = word.trim_end_matches([':', '.', ',']);
        inner.starts_with('-') || inner.contains(['/', ':'])
    })
}

/// `docker run …` within prose or in a code span.
fn request(run: &str, line: &Line<'_>, facts: &mut Facts) {
    if facts.sandbox.started_with.is_seen() {
        return;
    }
    let words: Vec<String> = run.split_whitespace().map(str::to_owned).collect();
    if !is_command(&words) {
        return;
    }
    crate::extract::commands::engine::request(&words, line.origin(), facts);
}
