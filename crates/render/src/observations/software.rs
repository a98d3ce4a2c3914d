//! Device nodes, policy around the process, libraries, the process itself.

use facts::model::library::{LibraryFile, LibraryKind};
use facts::model::node::{Node, NodeKind, NodeOpen};
use facts::model::{Library, Nodes, Process, Sandbox};
use facts::{Layer, Observed};

use super::listing::{Listing, known_parts};

pub(super) fn node(nodes: &Nodes, listing: &mut Listing) {
    listing.observed(Layer::Node, "listing of /dev", &nodes.listed, |()| "whole".to_owned());
    listing.shown(Layer::Node, "euid", &nodes.euid);
    listing.map(Layer::Node, "", &nodes.nodes, node_text);
    for (path, (open, origin)) in &nodes.opens {
        listing.value(Layer::Node, format!("open {path}"), open_text(open), origin);
    }
}

fn node_text(node: &Node) -> String {
    let numbers = match node.kind {
        NodeKind::Char { major, minor } => format!("character device {major}:{minor}"),
        NodeKind::Other => "no character device".to_owned(),
    };
    known_parts(&[
        ("", Some(numbers)),
        ("mode", node.mode.map(|mode| format!("{mode:04o}"))),
        ("owner", node.owner.clone()),
        ("group", node.group.clone()),
    ])
}

fn open_text(open: &NodeOpen) -> String {
    match open {
        NodeOpen::Opened => "opened".to_owned(),
        NodeOpen::Failed(errno) => format!("failed ({errno})"),
        NodeOpen::Hung => "did not return".to_owned(),
        NodeOpen::NotTried(why) => format!("not tried: {why}"),
    }
}

pub(super) fn sandbox(sandbox: &Sandbox, listing: &mut Listing) {
    listing.observed(Layer::Sandbox, "capabilities", &sandbox.cap_effective, |mask| {
        format!("{mask:#018x}")
    });
    listing.shown(Layer::Sandbox, "seccomp", &sandbox.seccomp);
    listing.yes_no(Layer::Sandbox, "no_new_privs", &sandbox.no_new_privs);
    listing.observed(Layer::Sandbox, "cgroups", &sandbox.cgroups, |lines| lines.join(" "));
    listing.observed(Layer::Sandbox, "mounts", &sandbox.mounts, |mounts| {
        let mut targets: Vec<&str> = mounts.iter().map(|mount| mount.target.as_str()).collect();
        targets.retain(|target| target.contains("nvidia") || target.starts_with("/dev"));
        format!("{}, of interest: {}", mounts.len(), targets.join(" "))
    });
    listing.observed(Layer::Sandbox, "uid_map", &sandbox.uid_map, |ranges| {
        let text = |range: &facts::model::sandbox::IdMapRange| {
            format!("{}+{} is {}", range.inside, range.count, range.outside)
        };
        ranges.iter().map(text).collect::<Vec<_>>().join(", ")
    });
    for (name, (errno, origin)) in &sandbox.micro {
        let text = errno.map_or("works".to_owned(), |errno| errno.to_string());
        listing.value(Layer::Sandbox, format!("call {name}"), text, origin);
    }
    for seen in &sandbox.settings {
        let (key, value) = &seen.value;
        listing.value(Layer::Sandbox, key.clone(), value, &seen.origin);
    }
    listing.list(Layer::Sandbox, "engine", &sandbox.engine_messages, |(_, text)| text.clone());
    listing.shown(Layer::Sandbox, "started_with", &sandbox.started_with);
    listing.yes_no(Layer::Sandbox, "gpu_requested", &sandbox.gpu_requested);
    listing.yes_no(Layer::Sandbox, "host_has_gpus", &sandbox.host_has_gpus);
}

pub(super) fn library(library: &Library, listing: &mut Listing) {
    listing.observed(Layer::Library, "libcuda", &library.cuda, file_text);
    listing.observed(Layer::Library, "libnvidia-ml", &library.nvml, file_text);
    for file in &library.others {
        listing.value(Layer::Library, file.path.clone(), file_text(file), &file.origin);
    }
    load_error("libcuda load error", &library.cuda_load_error, listing);
    load_error("libnvidia-ml load error", &library.nvml_load_error, listing);
    listing.shown(Layer::Library, "nvidia-smi", &library.smi);
    listing.shown(Layer::Library, "reported version", &library.reported);
    for (path, origin) in &library.interposers {
        listing.value(Layer::Library, "interposer", path, origin);
    }
}

/// An error that nobody saw is not worth a line among what was not looked at.
fn load_error(name: &str, error: &Observed<String>, listing: &mut Listing) {
    if error.is_seen() {
        listing.shown(Layer::Library, name, error);
    }
}

fn file_text(file: &LibraryFile) -> String {
    let kind = match file.kind {
        LibraryKind::Driver => "driver",
        LibraryKind::Stub => "stub",
        LibraryKind::Compat => "compat",
        LibraryKind::Wsl => "WSL",
        LibraryKind::Broken => "broken",
    };
    known_parts(&[
        ("", Some(file.real_path.clone())),
        ("", file.version.as_ref().map(ToString::to_string)),
        ("", Some(kind.to_owned())),
    ])
}

pub(super) fn process(process: &Process, listing: &mut Listing) {
    for (name, seen) in &process.env {
        listing.value(Layer::Process, format!("env {name}"), &seen.value, &seen.origin);
    }
    for (filter, origin) in &process.env_listed {
        let text = if filter.is_empty() { "whole".to_owned() } else { format!("of {filter}*") };
        listing.value(Layer::Process, "env listing", text, origin);
    }
    for (name, seen) in &process.limits {
        let text = seen.value.map_or("unlimited".to_owned(), |limit| limit.to_string());
        listing.value(Layer::Process, format!("limit {name}"), text, &seen.origin);
    }
    listing.shown(Layer::Process, "shm_bytes", &process.shm_bytes);
    listing.list(Layer::Process, "forking_workers", &process.forking_workers, |name| {
        (*name).to_owned()
    });
}
