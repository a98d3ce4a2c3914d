//! Commands about containers and policy whose output has a meaning of its own.

use super::Output;
use crate::extract::loose::selinux_mode;
use crate::model::Facts;
use crate::model::host::ContainerKind;
use crate::observed::{Observed, Origin, Seen};
use crate::parse::command_line::Wrapper;
use crate::version::DriverVersion;

/// Notes what these commands say; none of them keeps another reader from the same output.
pub(super) fn observe(output: &Output<'_>, command_line: u32, facts: &mut Facts) {
    let first = output.text.lines().map(str::trim).find(|line| !line.is_empty());
    let origin = output.item.origin_at(1, first.unwrap_or(""));
    failing_as_root(output, &origin, facts);
    reload(output, command_line, facts);
    bubblewrap(output, &origin, facts);
    match (output.command.program(), first) {
        ("getenforce", Some(word)) => {
            if let Some(mode) = selinux_mode(word) {
                facts.sandbox.engine.selinux = Observed::seen(mode, origin);
            }
        }
        ("ls" | "ll" | "stat" | "find" | "test", _) => {
            marks(output, &origin, facts);
            folders(output, &origin, facts);
        }
        ("cat", Some(_)) => device_rules(output, &origin, facts),
        ("runsc", Some(_)) => gvisor(output, &origin, facts),
        ("nvidia-smi", Some(_)) if output.command.container().is_some() => {
            let answers =
                output.text.contains("| NVIDIA-SMI") || output.text.contains("(UUID: GPU-");
            if answers {
                facts.sandbox.engine.nvml_works_inside = Observed::seen((), origin);
            }
        }
        _ => {}
    }
}

/// A container that fails under `sudo docker run` has an engine with root.
fn failing_as_root(output: &Output<'_>, origin: &Origin, facts: &mut Facts) {
    let root = output.command.wrappers.iter().any(|wrapper| matches!(wrapper, Wrapper::Root));
    let fails = ["Failed to initialize NVML", "Error response from daemon", "Error: "];
    let failed = fails.iter().any(|words| output.text.contains(words));
    if root && failed && output.command.container().is_some() {
        facts.sandbox.engine.rootless_seen = Observed::seen(false, origin.clone());
    }
    let asks = output.line.contains("docker context show") || output.line.contains("docker info");
    if asks && output.text.contains("rootless") {
        facts.sandbox.engine.rootless_seen = Observed::seen(true, origin.clone());
    }
}

/// `bwrap --bind /dev/nvidia0 …` before a program that NVML refuses. Only `--dev-bind` binds with
/// device access; every other bind is mounted with nodev.
fn bubblewrap(output: &Output<'_>, origin: &Origin, facts: &mut Facts) {
    if output.command.program() != "bwrap" || !output.text.contains("Insufficient Permissions") {
        return;
    }
    let plain = ["--bind", "--bind-try", "--ro-bind", "--ro-bind-try"];
    let mut bound = output.command.words.windows(3).filter_map(|words| {
        let target = words[2].strip_prefix("/dev/nvidia").map(|_| &words[2]);
        target.filter(|_| plain.contains(&words[0].as_str()))
    });
    if let Some(path) = bound.next() {
        facts.host.container.or_better(Observed::seen(ContainerKind::Other, origin.clone()));
        facts.sandbox.engine.bound_nodev = Observed::seen(path.clone(), origin.clone());
    }
}

/// A container's `devices.list` of cgroup v1: GPUs that it had and has no longer.
fn device_rules(output: &Output<'_>, origin: &Origin, facts: &mut Facts) {
    let asked = output.command.operands().any(|word| word.ends_with("/devices.list"));
    if !asked || output.filtered() {
        return;
    }
    let admits = |line: &str| {
        let mut words = line.split_whitespace();
        let device = matches!(words.next(), Some("a" | "c"));
        let number = words.next().is_some_and(|word| word == "*:*" || word.starts_with("195:"));
        device && number && words.next().is_some_and(|access| access.contains("rw"))
    };
    let engine = &mut facts.sandbox.engine;
    let admitted = output.text.lines().any(|line| admits(line.trim()));
    if admitted {
        engine.rules_with_gpus = Some(origin.clone());
    } else if engine.rules_with_gpus.is_some() {
        let said = "the container's device rules had the GPUs, and have them no longer";
        engine.lost_later.insert(0, Seen::new(said.to_owned(), origin.clone()));
    }
}

/// The empty file that an engine leaves at the root of a container.
fn marks(output: &Output<'_>, origin: &Origin, facts: &mut Facts) {
    let marks =
        [("/.dockerenv", ContainerKind::Docker), ("/run/.containerenv", ContainerKind::Podman)];
    for (path, kind) in marks {
        let asked = output.command.operands().any(|word| word == path);
        let shown = output.text.lines().any(|line| line.trim_end().ends_with(path));
        if asked && shown && !output.text.contains("No such file") {
            facts.host.container.or_better(Observed::seen(kind, origin.clone()));
        }
    }
}

/// A reload that somebody typed, unless it goes with a restart of the engine, as after an
/// installation.
fn reload(output: &Output<'_>, command_line: u32, facts: &mut Facts) {
    let typed = output.command.words.iter().any(|word| word == "daemon-reload");
    let restarts = ["restart", "enable", "start"].iter().any(|word| output.line.contains(word));
    if output.command.program() == "systemctl" && typed && !restarts {
        let origin = output.typed(command_line);
        facts.sandbox.engine.reloads.push(Seen::new(output.line.to_owned(), origin));
    }
}

fn folders(output: &Output<'_>, origin: &Origin, facts: &mut Facts) {
    let operand =
        |path: &str| output.command.operands().any(|word| word.trim_end_matches('/') == path);
    let empty = output.text.trim().is_empty() || output.text.trim() == "total 0";
    let missing = output.text.contains("No such file or directory");
    if operand("/dev/char")
        || output.command.operands().any(|word| word.starts_with("/dev/char/195"))
    {
        let links = output.text.contains("nvidia");
        let whole = !output.filtered()
            || output
                .grep_pattern()
                .is_some_and(|pattern| pattern.contains("nvidia") || pattern.contains("195"));
        if links || whole {
            facts.sandbox.engine.char_links = Observed::seen(links, origin.clone());
        }
    }
    if operand("/proc") && !output.filtered() && (empty || missing) {
        facts.sandbox.engine.proc_mounted = Observed::seen(false, origin.clone());
    }
    let cdi = ["/etc/cdi", "/run/cdi", "/var/run/cdi"].iter().any(|folder| operand(folder));
    if cdi && (empty || missing) && !output.text.contains(".yaml") {
        facts.sandbox.engine.cdi.specs.or_better(Observed::Absent(origin.clone()));
    }
}

/// `runsc nvproxy list-supported-drivers`: a version a line.
fn gvisor(output: &Output<'_>, origin: &Origin, facts: &mut Facts) {
    if !output.line.contains("list-supported-drivers") || output.filtered() {
        return;
    }
    let words = output.text.split_whitespace().take(4096);
    let versions: Vec<DriverVersion> = words.filter_map(DriverVersion::parse).collect();
    if !versions.is_empty() {
        facts.mentions_gpu = true;
        facts.sandbox.engine.gvisor_supports = Observed::seen(versions, origin.clone());
    }
}
