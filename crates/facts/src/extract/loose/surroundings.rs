//! How the engine is packaged and set up, as its own tools and people tell it: lines that stand in
//! the output of `docker info`, `snap list`, `mount`, `flatpak list` or in a description.

use super::Line;
use super::pattern::{Lazy, captures, group, matches, pattern};
use crate::model::Facts;
use crate::model::engine::CdiNode;
use crate::observed::{Observed, Seen};
use crate::parse::mount_line;
use crate::version::DriverVersion;

pattern! {
    CGROUP_DRIVER = r#"(?i)(?:cgroup[ -]?driver["']?\s*[:=]\s*|native\.cgroupdriver=|cgroup driver (?:is )?)["'`]?(?P<driver>systemd|cgroupfs)\b|\bSystemdCgroup\s*=\s*(?P<flag>true|false)"#
}
pattern! { HIERARCHY = r"(?i)(?:\bcgroup[ -]?(?:version|hierarchy)\b\W{1,3}(?:v|cgroupv)?(?P<info>[12])\b|\bcgroup(?P<fs>2)fs\b|\bcgroups? ?v(?P<said>[12])\b)" }
pattern! { PODMAN = r"(?i)\bpodman(?: version)?[ :]{1,2}v?(?P<major>\d)\.(?P<minor>\d{1,2})(?:\.\d+)?\b" }
pattern! {
    SNAP = r"(?i)(?:\bsnap (?:install|services|list|info|start|restart|logs|connect|set|get|refresh)\b[^\n]{0,24}\bdocker\b|^\W*docker\.dockerd\s+(?:enabled|disabled)\b|/(?:var/)?snap/docker\b|\bdocker\b[^.\n]{0,24}\b(?:from|via|as|through|is) (?:a |the |an )?(?:ubuntu )?snap\b|\bsnap(?:ped)? (?:version of |package of |build of )?docker\b|\bdocker[ -]snap\b|^\s*docker\s+\d+\.\d+\.\d+\S*\s+\d+\s+\S+\s+canonical)"
}
pattern! {
    DESKTOP = r"(?i)(?P<name>\bdocker desktop\b|\bdesktop-linux\b|\brancher desktop\b|\bpodman[ -]machine\b|\bcolima\b)"
}
pattern! { ROOTLESS = r"(?i)\brootless\b|/run/user/[1-9]\d*/(?:docker|podman)|\bdockerd-rootless" }
pattern! { NOT_ROOTLESS = r"(?i)\b(?:not|non|no|isn['’]t|without)[ -]rootless|rootless: ?false|\brootful\b|\bdocker \(root\)|\bas root\b[^.\n]{0,20}\bdocker\b" }
pattern! { ASIDE = r"(?i)\b(?:works?|worked|working|fine|how-?to|guide|instructions?|tutorial|docs|documentation|earlier|formerly|also)\b" }
pattern! { NO_CGROUPS = r"(?i)\bno-cgroups\b\W{0,3}(?:=|:|is|to|set to)?\W{0,3}(?P<value>true|false)\b" }
pattern! { CURE = r"(?i)\b(?:set(?:ting)?|chang(?:ed|ing)|switch(?:ed|ing)|turn(?:ed|ing)|flip(?:ped|ping)|with|once|after|when)\b[^.;\n]{0,60}?\b(?P<value>true|false)\b" }
pattern! { FLATPAK = r"\bnvidia-(?P<version>\d{3}-\d{2,3}(?:-\d{2})?)\b" }
pattern! { FLATPAK_CONTEXT = r"(?i)org\.freedesktop\.Platform\.GL|flatpak" }
pattern! { POD = r"(?P<pod>\bnvidia-driver-daemonset-\S+)\s+\d+/\d+\s+(?P<status>[A-Z][\w:]+)" }
pattern! { CDI_TOLD = r"(?i)\bcdi\b[^\n]{0,80}\b(?P<node>nvidia-uvm(?:-tools)?|nvidia-caps)\b[^\n]{0,80}\bmajor\b\W{1,3}(?:number )?(?:is )?(?P<major>\d{1,4})\b" }
pattern! { CDI_FOUND = r"(?i)\bFound (?P<count>\d+) CDI devices?\b" }
pattern! { CDI_DEVICE = r"^\s*(?P<device>nvidia\.com/gpu=[\w\-:]+)\s*$" }

/// Lines in any output.
pub(super) fn read(line: &Line<'_>, facts: &mut Facts) {
    mount(line, facts);
    flatpak(line, facts);
    cdi(line, facts);
    packaging(line, facts);
    no_cgroups(line, facts);
    let engine = &mut facts.sandbox.engine;
    if let Some(found) = captures(&CGROUP_DRIVER, line.text) {
        let by_flag = found
            .name("flag")
            .map(|flag| if flag.as_str() == "true" { "systemd" } else { "cgroupfs" });
        let driver = found.name("driver").map(|driver| driver.as_str().to_ascii_lowercase());
        if let Some(driver) = driver.or_else(|| by_flag.map(str::to_owned)) {
            engine.cgroup_driver = Observed::seen(driver, line.origin());
        }
    }
    if let Some(found) = captures(&HIERARCHY, line.text)
        && super::statement::condition(line.text).is_none()
        && let Some(version) = found.name("info").or(found.name("fs")).or(found.name("said"))
    {
        engine.cgroup_v2.or_better(Observed::seen(version.as_str() == "2", line.origin()));
    }
    if let Some(found) = captures(&PODMAN, line.text)
        && let (Ok(major), Ok(minor)) = (found["major"].parse(), found["minor"].parse())
    {
        engine.podman.or_better(Observed::seen((major, minor), line.origin()));
    }
    if let Some(found) = captures(&POD, line.text) {
        let pod = (found["pod"].to_owned(), found["status"].to_owned());
        facts.mentions_gpu = true;
        facts.sandbox.engine.driver_pods.push(Seen::new(pod, line.origin()));
    }
}

/// A mount over the device nodes or /proc.
fn mount(line: &Line<'_>, facts: &mut Facts) {
    if !(line.has("/dev") || line.has("/proc")) {
        return;
    }
    let Some(mount) = mount_line::mount_line(line.text) else { return };
    let about = mount.target == "/dev" || mount.target.starts_with("/dev/nvidia");
    if mount.target == "/proc" {
        facts.sandbox.engine.proc_mounted = Observed::seen(true, line.origin());
    }
    if !about {
        return;
    }
    match &mut facts.sandbox.mounts {
        Observed::Seen(seen) if seen.value.len() < 256 => {
            seen.value.push(mount);
            seen.origin = line.origin();
        }
        Observed::Seen(_) => {}
        mounts => *mounts = Observed::seen(vec![mount], line.origin()),
    }
}

fn flatpak(line: &Line<'_>, facts: &mut Facts) {
    if !line.has("nvidia-") || !matches(&FLATPAK_CONTEXT, line.text) {
        return;
    }
    let Some(text) = group(&FLATPAK, line.text, "version") else { return };
    let Some(version) = DriverVersion::parse(&text.replace('-', ".")) else { return };
    facts.mentions_gpu = true;
    let known = &mut facts.sandbox.engine.flatpak;
    if known.len() < 64 && !known.iter().any(|seen| seen.value == version) {
        known.push(Seen::new(version, line.origin()));
    }
}

/// The output of `nvidia-ctk cdi list`.
fn cdi(line: &Line<'_>, facts: &mut Facts) {
    let listed = &mut facts.sandbox.engine.cdi.listed;
    if let Some(count) = group(&CDI_FOUND, line.text, "count") {
        facts.mentions_gpu = true;
        if count == "0" || !listed.is_seen() {
            *listed = Observed::seen(Vec::new(), line.origin());
        }
        if let (Observed::Seen(seen), true) = (listed, count != "0") {
            seen.value.push(format!("{count} devices"));
        }
        return;
    }
    if let Some(found) = captures(&CDI_TOLD, line.text)
        && let Ok(major) = found["major"].parse()
    {
        let path = format!("/dev/{}", &found["node"]);
        let node = CdiNode { path, major: Some(major), minor: None };
        facts.sandbox.engine.cdi.nodes.push(Seen::new(node, line.origin()));
        return;
    }
    if let Some(device) = group(&CDI_DEVICE, line.text, "device") {
        match listed {
            Observed::Seen(seen) if seen.value.len() < 256 => seen.value.push(device.to_owned()),
            Observed::Seen(_) => {}
            listed => *listed = Observed::seen(vec![device.to_owned()], line.origin()),
        }
    }
}

fn packaging(line: &Line<'_>, facts: &mut Facts) {
    let lower = line.text.to_ascii_lowercase();
    if !["snap", "desktop", "rootless", "rootful", "podman", "colima", "docker"]
        .iter()
        .any(|word| lower.contains(word))
    {
        return;
    }
    let engine = &mut facts.sandbox.engine;
    let denied =
        |lower: &str| ["not ", "no ", "n't ", "without "].iter().any(|word| lower.contains(word));
    let named = |pattern: &Lazy| matches(pattern, line.text) && !denied(&lower);
    if named(&SNAP) {
        engine.enclosed.or_better(Observed::seen("snap".to_owned(), line.origin()));
    } else if let Some(name) = group(&DESKTOP, line.text, "name").filter(|_| !denied(&lower)) {
        let name = if name.eq_ignore_ascii_case("desktop-linux") { "Docker Desktop" } else { name };
        engine.enclosed.or_better(Observed::seen(name.to_owned(), line.origin()));
    }
    // The engine that works, or a guide for another one, is not the engine in question.
    if matches(&ASIDE, line.text) {
        return;
    }
    if matches(&NOT_ROOTLESS, line.text) {
        engine.rootless = Observed::seen(false, line.origin());
    } else if matches(&ROOTLESS, line.text) {
        engine.rootless.or_better(Observed::seen(true, line.origin()));
    }
}

/// `no-cgroups = true` in words: the state of things, or the value with which it works.
fn no_cgroups(line: &Line<'_>, facts: &mut Facts) {
    if !line.has("no-cgroups") || line.text.trim_start().starts_with('#') {
        return;
    }
    let cured = super::statement::condition(line.text).is_some();
    if cured
        && let Some(value) = CURE.as_ref().and_then(|cure| cure.captures_iter(line.text).last())
    {
        let works_with = Seen::new(&value["value"] == "true", line.origin());
        facts.sandbox.engine.no_cgroups_cure = Some(works_with);
    }
    let Some(found) = captures(&NO_CGROUPS, line.text) else { return };
    let value = found["value"].to_ascii_lowercase();
    let cure = facts.sandbox.engine.no_cgroups_cure.as_ref().filter(|_| cured);
    let is_the_cure = cure.is_some_and(|cure| cure.value == (value == "true"));
    let settings = &mut facts.sandbox.settings;
    // The reader of whole lines of configuration takes what follows for part of the value.
    settings.retain(|seen| {
        seen.value.0 != "no-cgroups" || matches!(seen.value.1.as_str(), "true" | "false")
    });
    let known = settings.iter().any(|seen| seen.value.0 == "no-cgroups" && seen.value.1 == value);
    if !is_the_cure && !known {
        settings.push(Seen::new(("no-cgroups".to_owned(), value), line.origin()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::loose::lines_of;

    #[test]
    fn every_expression_compiles() {
        let all = [
            &CGROUP_DRIVER,
            &HIERARCHY,
            &PODMAN,
            &SNAP,
            &DESKTOP,
            &ROOTLESS,
            &NOT_ROOTLESS,
            &ASIDE,
            &NO_CGROUPS,
            &CURE,
            &FLATPAK,
            &FLATPAK_CONTEXT,
            &POD,
            &CDI_TOLD,
            &CDI_FOUND,
            &CDI_DEVICE,
        ];
        assert!(all.iter().all(|pattern| pattern.is_some()));
    }

    #[test]
    fn the_engine_as_it_is_told() {
        let facts = lines_of(
            " Cgroup Driver: systemd\npodman version 4.4.1\ndocker         24.0.5   2915   latest/stable  canonical**  -\ntmpfs on /dev type tmpfs (rw,nosuid,nodev)\nnvidia-550-120   org.freedesktop.Platform.GL.nvidia-550-120   1.4  system\nINFO[0000] Found 0 CDI devices\n",
        );
        let engine = &facts.sandbox.engine;
        assert_eq!(engine.cgroup_driver.value().map(String::as_str), Some("systemd"));
        assert_eq!(engine.podman.value(), Some(&(4, 4)));
        assert_eq!(engine.enclosed.value().map(String::as_str), Some("snap"));
        assert_eq!(engine.flatpak[0].value.to_string(), "550.120");
        assert_eq!(engine.cdi.listed.value().map(Vec::len), Some(0));
        assert_eq!(facts.sandbox.mounts.value().map(Vec::len), Some(1));
    }

    #[test]
    fn the_switch_and_its_cure() {
        let text = "no-cgroups = true in /etc/nvidia-container-runtime/config.toml; works after setting false and restarting docker";
        let facts = lines_of(text);
        assert_eq!(facts.sandbox.settings[0].value.1, "true");
        assert_eq!(
            facts.sandbox.engine.no_cgroups_cure.as_ref().map(|seen| seen.value),
            Some(false)
        );
        let facts = lines_of("It works with no-cgroups = true.");
        assert!(facts.sandbox.settings.is_empty());
        assert_eq!(
            facts.sandbox.engine.no_cgroups_cure.as_ref().map(|seen| seen.value),
            Some(true)
        );
    }
}
