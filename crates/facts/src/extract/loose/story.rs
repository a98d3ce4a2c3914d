//! What a report tells of the course of things around a container: it had its GPUs and lost them,
//! it fails from its start, systemd re-read its units, only Flatpak programs fail, /proc is not
//! there. Such statements support a cause and never confirm one alone.

use super::Line;
use super::pattern::{Lazy, captures, matches, pattern};
use crate::model::Facts;
use crate::observed::{Observed, Seen, clean_excerpt};

pattern! {
    LOST = r"(?i)(?:\b(?:loses?|losing|lost|dropp?(?:s|ed))\b[^.\n]{0,40}\b(?:GPUs?|devices|NVML|CUDA|nvidia)\b|\b(?:work(?:s|ed|ing)?|runs?|ran|fine|ok|okay)\b[^.\n]{0,60}\b(?:for (?:a|an|some|several|few|about|~?\d+)|at first|initially|until|then|and (?:suddenly|after)|but (?:after|later|suddenly|some))\b|\bafter (?:a while|some (?:time|hours|days|minutes)|a few \w+|several \w+|running for|~?\d+ (?:minutes|hours|days|min|h))\b[^.\n]{0,80}|\bsuddenly\b[^.\n]{0,60}\b(?:fail|stop|unknown error|lost|NVML)|\b(?:arbitrary|random|some) (?:later )?(?:moment|point|time)s?\b|\b(?:about |roughly )?(?:once|twice|every|each) (?:a |an |few |other |\d+ )?(?:day|night|week|hour|morning)s?\b|\b(?:from time to time|randomly|sporadically|intermittently)\b)"
}
pattern! {
    RESTART_CURES = r"(?i)(?:\b(?:restart(?:ing|s)?|recreat(?:e|es|ing)|re-?creat\w+|delet(?:e|ing)|stopp?(?:ing)? and start(?:ing)?)\b[^.\n]{0,40}\b(?:containers?|pods?|it)\b[^.\n]{0,60}\b(?:fix\w*|bring\w*|help\w*|cure\w*|solve\w*|works?|resolve\w*|back|again|fine)\b|\b(?:works?|back|fixed|cured)\b[^.\n]{0,40}\b(?:after|when|until|once)\b[^.\n]{0,30}\b(?:restart|recreat)\w*[^.\n]{0,30}\b(?:containers?|pods?)\b)"
}
pattern! {
    RELOAD = r"(?i)(?:\bdaemon-re(?:load|exec)\b|\bsystemd\[1\]: Re(?:load|execut)ing\b|\bsystemd(?:\[1\])?: Reload(?:ing)? (?:requested|finished))"
}
pattern! { RELOAD_TO_CURE = r"(?i)daemon-reload\b[^\n]{0,40}(?:&&|;|and)\s*(?:sudo )?systemctl (?:restart|enable|start)|\bexpected\b" }
pattern! {
    FROM_START = r"(?i)\b(?:from the (?:very )?(?:first|start|beginning)|right (?:at|from) (?:the )?start|immediately|at (?:container )?start(?:up)?|every (?:new )?container|never worked|first second)\b"
}
pattern! { FLATPAK_ONLY = r"(?i)\bflatpaks?\b" }
pattern! { NATIVE_WORKS = r"(?i)\b(?:native|host|outside|non-flatpak|system)\b[^.\n]{0,40}\b(?:works?|fine|ok|okay|unaffected)\b" }
pattern! { AFTER_UPDATE = r"(?i)\b(?:after|since|with)\b[^\n]{0,40}\bdrivers?\b[^\n]{0,24}\b(?:update|upgrade|version)|\b(?:updat|upgrad)\w+\b[^\n]{0,24}\bdrivers?\b" }
pattern! { FLATPAK_CURE = r"(?i)\bflatpak update\b" }
pattern! {
    NO_PROC = r"(?i)(?:/(?:proc|sys)\b[^.\n]{0,24}\b(?:is|was) (?:not (?:mounted|available|there)|missing|empty|hidden)|\b(?:no|without(?: an?)?(?: mounted)?) /(?:proc|sys)\b(?:$|[\s,;.])|\bdo this: mount -t proc)"
}
pattern! { CHAR_LINKS = r"(?i)(?:\bno (?:sym)?(?:bolic )?(?:links?|symlinks|entr(?:y|ies))\b[^\n]{0,40}/dev/char\b|/dev/char\b[^\n]{0,40}\b(?:is empty|has no|contains no|no links)|/dev/char/195:\S{1,40}[^\n]{0,24}\bNo such file)" }

pattern! { NVML_FAILED = r"(?i)Failed to initialize NVML: (?P<text>[A-Za-z/ ]+)" }
pattern! { UNCONFINED = r"(?i)label[=:]disable|container_use_devices|setenforce 0|spc_t" }
pattern! { DENIED = r"(?i)(?:not|no|n['’]t|without|same|still|neither|nor)|n['’]t\b" }

/// Most statements of a kind that are kept.
const LIMIT: usize = 16;

/// Lines in any output: only what programs print.
pub(super) fn read(line: &Line<'_>, facts: &mut Facts) {
    if line.has("eload") || line.has("eexec") {
        push(line, &RELOAD, |facts| &mut facts.sandbox.engine.reloads, facts);
    }
    nvml_failure(line, facts);
    if (line.has("/proc") || line.has("/sys")) && matches(&NO_PROC, line.text) {
        facts.sandbox.engine.proc_mounted = Observed::seen(false, line.origin());
    }
}

/// NVML's failure in nvidia-smi's words.
fn nvml_failure(line: &Line<'_>, facts: &mut Facts) {
    if !line.has("NVML") {
        return;
    }
    let failures = &mut facts.sandbox.engine.nvml_failures;
    if failures.len() < LIMIT
        && let Some(said) = captures(&NVML_FAILED, line.text).and_then(|found| found.get(0))
        && let Some(code) = nvabi::error_text::in_line(said.as_str()).and_then(|text| text.code)
    {
        failures.push(Seen::new(code, line.origin()));
    }
}

/// "It works with --security-opt label=disable", or it does not.
fn unconfined(line: &Line<'_>, facts: &mut Facts) {
    if !matches(&UNCONFINED, line.text) {
        return;
    }
    let helps = if matches(&DENIED, line.text) {
        false
    } else if super::statement::condition(line.text).is_some() {
        true
    } else {
        return;
    };
    facts.sandbox.engine.unconfined_cures.or_better(Observed::seen(helps, line.origin()));
}

/// What people say.
pub(super) fn read_prose(line: &Line<'_>, facts: &mut Facts) {
    push(line, &LOST, |facts| &mut facts.sandbox.engine.lost_later, facts);
    push(line, &RESTART_CURES, |facts| &mut facts.sandbox.engine.restart_cures, facts);
    push(line, &FROM_START, |facts| &mut facts.sandbox.engine.from_start, facts);
    unconfined(line, facts);
    let about_flatpak = matches(&FLATPAK_ONLY, line.text);
    let tells = [&NATIVE_WORKS, &FLATPAK_CURE, &AFTER_UPDATE];
    if about_flatpak && tells.iter().any(|pattern| matches(pattern, line.text)) {
        push(line, &FLATPAK_ONLY, |facts| &mut facts.sandbox.engine.flatpak_only, facts);
    }
    if line.has("/dev/char") && matches(&CHAR_LINKS, line.text) {
        facts.sandbox.engine.char_links.or_better(Observed::seen(false, line.origin()));
    }
}

fn push(
    line: &Line<'_>,
    pattern: &Lazy,
    list: fn(&mut Facts) -> &mut Vec<Seen<String>>,
    facts: &mut Facts,
) {
    if !matches(pattern, line.text) || matches(&RELOAD_TO_CURE, line.text) {
        return;
    }
    let list = list(facts);
    if list.len() < LIMIT {
        list.push(Seen::new(clean_excerpt(line.text), line.origin()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::loose::lines_of;

    #[test]
    fn every_expression_compiles() {
        let all = [
            &LOST,
            &RESTART_CURES,
            &RELOAD,
            &RELOAD_TO_CURE,
            &FROM_START,
            &FLATPAK_ONLY,
            &NATIVE_WORKS,
            &FLATPAK_CURE,
            &AFTER_UPDATE,
            &NO_PROC,
            &CHAR_LINKS,
            &NVML_FAILED,
            &UNCONFINED,
            &DENIED,
        ];
        assert!(all.iter().all(|pattern| pattern.is_some()));
    }

    #[test]
    fn courses_of_things() {
        for text in [
            "The container works fine for a few hours and then nvidia-smi fails.",
            "After some time the pod loses access to the GPU.",
            "A running container loses all GPUs at some arbitrary later moment",
            "It worked until yesterday evening.",
        ] {
            assert_eq!(lines_of(text).sandbox.engine.lost_later.len(), 1, "{text}");
        }
        for text in [
            "Restarting the container brings them back.",
            "It works again after I restart the container",
            "deleting the pod fixes it",
        ] {
            assert_eq!(lines_of(text).sandbox.engine.restart_cures.len(), 1, "{text}");
        }
        for text in [
            "Nov 03 10:11:12 gpu1 systemd[1]: Reloading.",
            "systemd[1]: Reloading requested from client PID 4711 ('systemctl')...",
            "It starts right after systemctl daemon-reload on the host",
        ] {
            assert_eq!(lines_of(text).sandbox.engine.reloads.len(), 1, "{text}");
        }
        let ritual = "sudo systemctl daemon-reload && sudo systemctl restart docker";
        assert!(lines_of(ritual).sandbox.engine.reloads.is_empty());
    }

    #[test]
    fn a_missing_proc() {
        for text in [
            "Error, do this: mount -t proc proc /proc",
            "/proc is not mounted in the chroot",
            "a jail without /proc",
        ] {
            assert_eq!(lines_of(text).sandbox.engine.proc_mounted.value(), Some(&false), "{text}");
        }
        let facts = lines_of("there is no /proc/driver/nvidia folder");
        assert!(facts.sandbox.engine.proc_mounted.is_unknown());
    }
}
