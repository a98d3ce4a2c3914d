//! Commands that print one fact about the machine.

use super::Output;
use crate::model::Facts;
use crate::model::fabric::ServiceState;
use crate::model::host::ContainerKind;
use crate::observed::{Observed, Seen};
use crate::raw::ItemName;
use crate::version::{CudaVersion, KernelRelease};

pub(super) fn apply(output: &Output<'_>, facts: &mut Facts) -> bool {
    let first = output.text.lines().map(str::trim).find(|line| !line.is_empty());
    let origin = output.item.origin_at(1, first.unwrap_or(""));
    match (output.command.program(), first) {
        ("uname", Some(line)) => uname(output, line, facts),
        ("hostname", Some(line)) => facts.host.hostname = Observed::seen(line.to_owned(), origin),
        ("pveversion", Some(_)) => pve(output, facts),
        ("systemd-detect-virt", Some(line)) => virtualization(line, output, facts),
        ("whoami", Some("root")) => facts.node.euid = Observed::seen(0, origin),
        ("id", Some(line)) => {
            let uid = line.strip_prefix("uid=").and_then(|rest| rest.split('(').next());
            if let Some(uid) = uid.or(Some(line)).and_then(|text| text.parse().ok()) {
                facts.node.euid = Observed::seen(uid, origin);
            }
        }
        ("nvcc", Some(_)) => nvcc(output, facts),
        ("env" | "printenv" | "set" | "export" | "declare", _) => environment(output, facts),
        ("echo", Some(line)) => return echoed(output, line, facts),
        ("ulimit", Some(_)) => {
            let item = output.renamed(output.item.name.clone());
            let flag = output.command.arguments().first().and_then(|word| word.strip_prefix('-'));
            match flag.and_then(|letters| letters.chars().next()) {
                Some('a') | None => crate::extract::files::enter_ulimit_all(&item, facts),
                Some(flag) => crate::extract::files::enter_ulimit_one(&item, flag, facts),
            }
        }
        ("systemctl" | "service", Some(_)) => return service(output, facts),
        _ => return false,
    }
    true
}

fn uname(output: &Output<'_>, line: &str, facts: &mut Facts) {
    let origin = output.item.origin_at(1, line);
    let words: Vec<&str> = line.split_whitespace().collect();
    let release = if output.command.has_option("-a") { words.get(2) } else { words.first() };
    if let Some(release) = release.and_then(|text| KernelRelease::parse(text)) {
        facts.host.kernel = Observed::seen(release, origin.clone());
    }
    if output.command.has_option("-a") && words.len() > 3 {
        facts.host.hostname = Observed::seen(words[1].to_owned(), origin.clone());
    }
    let arch = words.iter().rev().find(|word| matches!(**word, "x86_64" | "aarch64"));
    if let Some(arch) = arch {
        facts.host.arch = Observed::seen((*arch).to_owned(), origin);
    }
}

/// `pve-manager/8.4.1 (running kernel: 6.8.12-9-pve)`.
fn pve(output: &Output<'_>, facts: &mut Facts) {
    let item = output.renamed(ItemName::Command("pveversion".to_owned()));
    crate::extract::files::enter_pveversion(&item, facts);
}

fn virtualization(word: &str, output: &Output<'_>, facts: &mut Facts) {
    let origin = output.item.origin_at(1, word);
    let kind = match word {
        "lxc" | "lxc-libvirt" => Some(ContainerKind::Lxc),
        "docker" => Some(ContainerKind::Docker),
        "podman" => Some(ContainerKind::Podman),
        "systemd-nspawn" => Some(ContainerKind::Nspawn),
        "container-other" | "openvz" | "proot" | "pouch" => Some(ContainerKind::Other),
        "wsl" => {
            facts.host.wsl = Observed::seen(true, origin.clone());
            None
        }
        "none" => {
            // Asked for containers alone, it says nothing of a virtual machine.
            let containers = output.command.has_option("-c")
                || output.command.arguments().iter().any(|word| word == "--container");
            if !containers {
                facts.host.hypervisor = Observed::seen(word.to_owned(), origin.clone());
            }
            Some(ContainerKind::None)
        }
        _ => None,
    };
    match kind {
        Some(kind) => facts.host.container = Observed::seen(kind, origin),
        None => facts.host.hypervisor = Observed::seen(word.to_owned(), origin),
    }
}

/// `Cuda compilation tools, release 12.8, V12.8.93`.
fn nvcc(output: &Output<'_>, facts: &mut Facts) {
    for (number, line) in crate::parse::numbered(output.text) {
        let Some((_, rest)) = line.split_once("release ") else { continue };
        let version = rest.split(',').next().and_then(CudaVersion::parse);
        if let Some(version) = version {
            let origin = output.item.origin_at(number, line);
            facts.framework.nvcc = Observed::seen(version, origin);
        }
    }
}

/// `env | grep CUDA`: what is not listed is unset, as far as the pattern would have shown it.
fn environment(output: &Output<'_>, facts: &mut Facts) {
    let listing = matches!(output.command.program(), "env" | "printenv")
        && output.command.operands().next().is_none();
    if listing {
        let mut item = output.renamed(output.item.name.clone());
        // The origin of an absence is the command: its output has no line for it.
        item.partial |= output.filtered() && item.filter.is_none();
        crate::extract::files::enter_environ(&item, facts);
        return;
    }
    for (number, line) in crate::parse::numbered(output.text) {
        assigned(output, number, line, facts);
    }
    for word in output.command.arguments() {
        assigned(output, 0, word, facts);
    }
}

/// `NAME=value`, as `export` takes and prints it.
fn assigned(output: &Output<'_>, number: u32, line: &str, facts: &mut Facts) {
    let line = line.trim().trim_start_matches("export ").trim_start_matches("declare -x ");
    let Some((name, value)) = line.split_once('=') else { return };
    let legal = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if legal && !name.is_empty() {
        let value = value.trim_matches('"').to_owned();
        let seen = Seen::new(value, output.item.origin_at(number, line));
        facts.process.env.insert(name.to_owned(), seen);
    }
}

/// `echo $CUDA_VISIBLE_DEVICES`: an empty line is an unset or empty variable, and the two differ,
/// so that only a value is taken.
fn echoed(output: &Output<'_>, line: &str, facts: &mut Facts) -> bool {
    let variable = output.command.operands().next().and_then(|word| word.strip_prefix('$'));
    let Some(name) = variable.map(|name| name.trim_matches(['{', '}'])) else { return false };
    let seen = Seen::new(line.to_owned(), output.item.origin_at(1, line));
    facts.process.env.insert(name.to_owned(), seen);
    true
}

/// `systemctl status|is-active nvidia-fabricmanager`.
fn service(output: &Output<'_>, facts: &mut Facts) -> bool {
    if !output.command.operands().any(|word| word.contains("fabricmanager")) {
        return false;
    }
    facts.mentions_gpu = true;
    for (number, line) in crate::parse::numbered(output.text) {
        let line = line.trim();
        let state = line.strip_prefix("Active:").map_or(line, str::trim);
        let origin = output.item.origin_at(number, line);
        let state = match state.split_whitespace().next().unwrap_or("") {
            "active" => ServiceState::Running,
            "inactive" | "failed" | "activating" | "deactivating" => {
                ServiceState::Stopped(state.to_owned())
            }
            _ if line.contains("could not be found") || line.contains("not-found") => {
                ServiceState::NotInstalled
            }
            _ => continue,
        };
        facts.fabric.manager = Observed::seen(state, origin);
        return true;
    }
    false
}
