//! What opening a device node (or the name of a thread in /proc) gave, as traces, shells,
//! programs and people tell it.

use super::Line;
use super::pattern::{captures, matches, pattern};
use crate::model::Facts;
use crate::model::node::NodeOpen;
use crate::observed::{Errno, Seen};

pattern! {
    /// `openat(AT_FDCWD, "/dev/nvidiactl", O_RDWR|O_CLOEXEC) = -1 EPERM (Operation not permitted)`.
    TRACED = r#"\bopen(?:at)?\((?:AT_FDCWD, ?)?"(?P<path>/dev/nvidia[\w\-]*|/proc/[\w/]*/comm)", ?(?P<flags>[A-Z_|0]+)[^)]*\)\s*=\s*(?P<result>-?\d+)(?: (?P<errno>E[A-Z]+))?"#
}
pattern! {
    /// `PermissionError: [Errno 1] Operation not permitted: '/dev/nvidiactl'`.
    PYTHON = r"\[Errno (?P<number>\d{1,3})\] [^:]{1,60}: '(?P<path>/dev/nvidia[\w\-]*)'"
}
pattern! {
    /// `cat: /dev/nvidiactl: Operation not permitted`; `ls` and `chmod` speak of other calls.
    SHELL = r"\b(?:cat|dd|head|hexdump|xxd|od|bash|sh|dash|zsh|ash)(?:: line \d+)?: (?:can(?:not|'t) open |failed to open )?['‘`]?(?P<path>/dev/nvidia[\w\-]*)['’`]?(?: for (?:reading|writing))?: (?P<why>Operation not permitted|Permission denied|No such device or address|Invalid argument)"
}
pattern! {
    /// `open("/dev/nvidiactl") gives EPERM`.
    TOLD = r"(?i)\bopen(?:ing|s|ed|at)?\b(?:\(\))?[^.\n]{0,30}(?P<path>/dev/nvidia[\w\-]*)[^.\n=]{0,40}[=\s:]\s*(?:-1 )?(?P<errno>EPERM|EACCES|ENXIO|EIO|ENODEV)\b"
}

pattern! {
    /// `/dev/nvidia-uvm is missing`, "there is no /dev/nvidiactl".
    ABSENT = r"(?i)(?P<a>/dev/nvidia[\w\-]*)\*?[`'\x22]?(?: (?:device )?(?:files?|nodes?|devices?|entr(?:y|ies)))?(?: \w+)? (?:(?:is|are|was|were) (?:missing|absent|not (?:there|present|created))|(?:does|do|did)(?: not|n['’]t) exist)\b|\b(?:there (?:is|are|was|were) no|missing) (?:device )?(?:files?|nodes?)? ?[`'\x22]?(?P<b>/dev/nvidia[\w\-]*)|\bbwrap: Can't (?:get type of|find|bind mount|stat)[^\n]{0,40}(?P<c>/dev/nvidia[\w\-]*): No such file"
}
pattern! { DOUBT = r"(?i)\b(?:if|whether|check|unless|no longer|not|n['’]t)\b[^\n]{0,40}$|\?\s*$" }

/// Most nodes that are told to be absent.
const LIMIT: usize = 16;

pattern! {
    /// What the driver's libraries look at in /proc and /sys, in a trace by strace or by gVisor.
    HIDDEN = r#"\b(?:access|faccessat2?|stat|lstat|newfstatat|open|openat)\([^\n"]{0,60}"?(?P<path>/sys/module/nvidia/initstate|/sys/bus/pci/devices|/proc/devices|/proc/driver/nvidia/(?:params|version))\b[^\n]{0,120}(?:= -1 ENOENT|errno=2\b)"#
}

/// What a person says is not there.
pub(super) fn read_prose(line: &Line<'_>, facts: &mut Facts) {
    if !line.has("/dev/nvidia") {
        return;
    }
    for said in super::statement::sentences(line.text) {
        let Some(found) = captures(&ABSENT, said) else { continue };
        let Some(path) = found.name("a").or(found.name("b")).or(found.name("c")) else { continue };
        let before = found.get(0).map_or("", |whole| &said[..whole.start()]);
        if matches(&DOUBT, before) || said.trim_end().ends_with('?') {
            continue;
        }
        // `/dev/nvidia*`: the one without which nothing starts is among them.
        let path = if path.as_str() == "/dev/nvidia" { "/dev/nvidiactl" } else { path.as_str() };
        let told = &mut facts.node.told_missing;
        if told.len() < LIMIT && !told.iter().any(|known| known.value == path) {
            facts.mentions_gpu = true;
            told.push(Seen::new(path.to_owned(), line.origin()));
        }
    }
}

pub(super) fn read(line: &Line<'_>, facts: &mut Facts) {
    if line.has("ENOENT") || line.has("errno=2") {
        hidden(line, facts);
    }
    if !(line.has("/dev/nvidia") || line.has("/comm\"")) {
        return;
    }
    if let Some((path, open)) = traced(line.text).or_else(|| told(line.text)) {
        enter(path, open, line, facts);
    }
}

/// A file of the driver's or of the bus's that its libraries did not find.
fn hidden(line: &Line<'_>, facts: &mut Facts) {
    let Some(path) = super::pattern::group(&HIDDEN, line.text, "path") else { return };
    let hidden = &mut facts.sandbox.engine.hidden_files;
    if hidden.len() < LIMIT && !hidden.iter().any(|known| known.value == path) {
        hidden.push(Seen::new(path.to_owned(), line.origin()));
    }
}

fn enter(path: String, open: NodeOpen, line: &Line<'_>, facts: &mut Facts) {
    if path.starts_with("/proc/") {
        let errno = match open {
            NodeOpen::Failed(errno) => Some(errno),
            _ => None,
        };
        facts.sandbox.micro.insert("comm".to_owned(), (errno, line.origin()));
        return;
    }
    facts.mentions_gpu = true;
    facts.node.opens.insert(path, (open, line.origin()));
}

fn traced(text: &str) -> Option<(String, NodeOpen)> {
    let found = captures(&TRACED, text)?;
    let path = found["path"].to_owned();
    let writes = found["flags"].contains("O_RDWR") || found["flags"].contains("O_WRONLY");
    // The driver opens its nodes for both; an open for reading alone is another program's.
    if !writes {
        return None;
    }
    let failed = found["result"].starts_with('-');
    match found.name("errno").and_then(|errno| Errno::from_name(errno.as_str())) {
        Some(errno) if failed => Some((path, NodeOpen::Failed(errno))),
        _ if failed => None,
        _ => Some((path, NodeOpen::Opened)),
    }
}

fn told(text: &str) -> Option<(String, NodeOpen)> {
    if matches(&TRACED, text) {
        return None;
    }
    if let Some(found) = captures(&PYTHON, text) {
        let number = found["number"].parse().ok()?;
        return Some((found["path"].to_owned(), NodeOpen::Failed(Errno(number))));
    }
    if let Some(found) = captures(&SHELL, text) {
        let open = match &found["why"] {
            "Operation not permitted" => NodeOpen::Failed(Errno::EPERM),
            "Permission denied" => NodeOpen::Failed(Errno::EACCES),
            "No such device or address" => NodeOpen::Failed(Errno::ENXIO),
            // read is what the driver refuses: the open before it went well.
            _ => NodeOpen::Opened,
        };
        return Some((found["path"].to_owned(), open));
    }
    let found = captures(&TOLD, text)?;
    let errno = Errno::from_name(&found["errno"])?;
    Some((found["path"].to_owned(), NodeOpen::Failed(errno)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_expression_compiles() {
        let all = [&TRACED, &PYTHON, &SHELL, &TOLD, &ABSENT, &DOUBT, &HIDDEN];
        assert!(all.iter().all(|pattern| pattern.is_some()));
    }

    #[test]
    fn nodes_that_are_told_to_be_absent() {
        let told = |text: &str| {
            let told = crate::extract::loose::lines_of(text).node.told_missing;
            told.first().map(|seen| seen.value.clone())
        };
        for (text, path) in [
            ("`/dev/nvidia*` files are missing when I add `-c`", "/dev/nvidiactl"),
            ("/dev/nvidia-uvm is missing inside", "/dev/nvidia-uvm"),
            ("After a boot there is no /dev/nvidia-uvm", "/dev/nvidia-uvm"),
            ("/dev/nvidia0 does not exist", "/dev/nvidia0"),
        ] {
            assert_eq!(told(text).as_deref(), Some(path), "{text}");
        }
        for text in [
            "Check whether /dev/nvidia-uvm is missing",
            "Is it that /dev/nvidia-uvm is missing?",
            "/dev/nvidia-uvm is there",
        ] {
            assert_eq!(told(text), None, "{text}");
        }
    }

    #[test]
    fn opens_as_they_are_told() {
        let refused = |errno| Some(("/dev/nvidiactl".to_owned(), NodeOpen::Failed(errno)));
        for (text, errno) in [
            (
                "[pid 7] openat(AT_FDCWD, \"/dev/nvidiactl\", O_RDWR|O_CLOEXEC) = -1 EPERM (Operation not permitted)",
                Errno::EPERM,
            ),
            ("PermissionError: [Errno 13] Permission denied: '/dev/nvidiactl'", Errno::EACCES),
            ("cat: /dev/nvidiactl: Operation not permitted", Errno::EPERM),
            ("dd: failed to open '/dev/nvidiactl': Operation not permitted", Errno::EPERM),
            ("opening /dev/nvidiactl gives EPERM although the mode is 0666", Errno::EPERM),
            ("open(\"/dev/nvidiactl\", O_RDWR) returns EACCES", Errno::EACCES),
        ] {
            let found = traced(text).or_else(|| told(text));
            assert_eq!(found, refused(errno), "{text}");
        }
        for text in [
            "ls: cannot access '/dev/nvidiactl': Permission denied",
            "chmod: changing permissions of '/dev/nvidiactl': Operation not permitted",
            "openat(AT_FDCWD, \"/dev/nvidiactl\", O_RDONLY) = -1 EACCES (Permission denied)",
        ] {
            assert_eq!(traced(text).or_else(|| told(text)), None, "{text}");
        }
    }
}
