//! Causes in the device nodes, and the questions that they share.

use facts::model::node::{NodeKind, NodeOpen};
use facts::{Errno, Facts, Observed, Origin};

use crate::readings::{self, code};

pub(super) mod missing;
pub(super) mod nodev_mount;
pub(super) mod permission;
pub(super) mod wrong_number;

/// What a node is for, which decides what its fault looks like from above.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// /dev/nvidiactl: nothing starts without it.
    Control,
    /// /dev/nvidia-uvm: CUDA needs it, NVML does not.
    Uvm,
    /// /dev/nvidiaN: one GPU is lost without it, silently.
    Gpu(u32),
}

/// The role of the node at this path; `None` for nodes that cuInit does well without (measured:
/// nvidia-uvm-tools, nvidia-caps, nvidia-modeset).
pub(super) fn role(path: &str) -> Option<Role> {
    match path.strip_prefix("/dev/")? {
        "nvidiactl" => Some(Role::Control),
        "nvidia-uvm" => Some(Role::Uvm),
        name => name.strip_prefix("nvidia")?.parse().ok().map(Role::Gpu),
    }
}

/// A path without `/dev/`, which is how people speak of a node.
pub(super) fn short(path: &str) -> &str {
    path.strip_prefix("/dev/").unwrap_or(path)
}

/// The failure that a fault of a node in this role leads to, where it was seen: the statement and
/// its origin. Measured on drivers 535 to 580: without the UVM node cuInit answers 999 and NVML
/// goes on; without the control node cuInit answers 100 and NVML one of `control_nvml`; without a
/// GPU's node that GPU is not counted, and cuInit answers 100 or 101 when it was the last one.
pub(super) fn matching_failure(
    facts: &Facts,
    role: Role,
    control_nvml: &[i64],
) -> Option<(String, Origin)> {
    let init = |number: i64, why: &str| {
        let trial = readings::init_failed_with(facts, number)?;
        Some((format!("cuInit answers {number}, as it does {why}"), trial.origin.clone()))
    };
    match role {
        Role::Uvm => init(code::UNKNOWN, "when nvidia-uvm cannot be opened"),
        Role::Control => init(code::NO_DEVICE, "when nvidiactl cannot be opened").or_else(|| {
            let (number, origin) = readings::nvml_failure(facts)?;
            let fits = control_nvml.contains(&number);
            let statement = format!("NVML answers {number}, as it does for such a nvidiactl");
            fits.then_some((statement, origin))
        }),
        Role::Gpu(_) => shortfall(facts)
            .or_else(|| init(code::NO_DEVICE, "when no GPU's node can be opened"))
            .or_else(|| init(code::INVALID_DEVICE, "when a GPU's node leads nowhere")),
    }
}

/// A failure of cuInit that a fault of a node in this role does not lead to.
pub(super) fn other_failure(facts: &Facts, role: Role) -> Option<(String, Origin)> {
    let (number, trial) = readings::init_failure(facts)?;
    let expected: &[i64] = match role {
        Role::Uvm => &[code::UNKNOWN],
        Role::Control => &[code::NO_DEVICE],
        Role::Gpu(_) => &[code::NO_DEVICE, code::INVALID_DEVICE],
    };
    let statement =
        || format!("cuInit answers {number}, and for this node it would answer {}", expected[0]);
    (!expected.contains(&number)).then(|| (statement(), trial.origin.clone()))
}

/// Where it was seen that a fault of a node in this role does no harm: CUDA starts, and for a
/// GPU's node none is missing from the count.
pub(super) fn harmless(facts: &Facts, role: Role) -> Option<&Origin> {
    let works = readings::cuda_works(facts)?;
    let lost = matches!(role, Role::Gpu(_)) && shortfall(facts).is_some();
    (!lost).then_some(works)
}

/// Fewer GPUs counted than are known to be there.
pub(super) fn shortfall(facts: &Facts) -> Option<(String, Origin)> {
    let on_bus = facts.pci.gpus().count().max(facts.module.gpus.len());
    let known = u32::try_from(on_bus).unwrap_or(u32::MAX);
    if let Some(seen) = facts.nvml.count.as_seen().filter(|seen| seen.value < known) {
        return Some((format!("NVML counts {} of {known} GPUs", seen.value), seen.origin.clone()));
    }
    let known = known.max(facts.nvml.count.value().copied().unwrap_or(0));
    let seen = facts.cuda.count.as_seen().filter(|seen| seen.value < known)?;
    Some((format!("CUDA counts {} of {known} GPUs", seen.value), seen.origin.clone()))
}

/// Where it was seen that something stands at this path: a listing, or an open that reached it.
pub(super) fn seen_there(facts: &Facts, path: &str) -> Option<Origin> {
    if let Observed::Seen(seen) = facts.node.at(path) {
        return Some(seen.origin);
    }
    match facts.node.opens.get(path) {
        Some((NodeOpen::Opened, origin)) => Some(origin.clone()),
        Some((NodeOpen::Failed(errno), origin)) if *errno != Errno::ENOENT => Some(origin.clone()),
        _ => None,
    }
}

/// Where it was seen that nothing stands at this path.
pub(super) fn seen_gone(facts: &Facts, path: &str) -> Option<Origin> {
    match facts.node.opens.get(path) {
        Some((NodeOpen::Failed(Errno::ENOENT), origin)) => Some(origin.clone()),
        Some((NodeOpen::Opened | NodeOpen::Failed(_), _)) => None,
        _ => facts.node.at(path).absent().cloned(),
    }
}

/// Those of these nodes that are not there, as an apposition; empty when all are.
pub(super) fn gone_ones(facts: &Facts, names: &[String]) -> String {
    let gone = |name: &&String| seen_gone(facts, &format!("/dev/{name}")).is_some();
    let gone: Vec<&str> = names.iter().filter(gone).map(String::as_str).collect();
    match gone.as_slice() {
        [] => String::new(),
        names => format!("; nothing stands in the place of {}", names.join(", ")),
    }
}

/// The GPUs that the driver leaves out on purpose, by minor (NVreg_ExcludedGpus).
pub(super) fn excluded(facts: &Facts, minor: u32) -> Option<&Origin> {
    let found = facts
        .module
        .gpus
        .iter()
        .find(|gpu| gpu.value.minor == Some(minor) && gpu.value.excluded == Some(true))?;
    Some(&found.origin)
}

/// True when the kernel gave this node's numbers, as far as both are known.
pub(super) fn rightly_numbered(facts: &Facts, path: &str) -> Option<(u32, u32, Origin)> {
    let (major, minor, _) = readings::expected_numbers(facts, path)?;
    let node = facts.node.at(path);
    let node = node.as_seen()?;
    let right = node.value.kind == NodeKind::Char { major, minor };
    right.then(|| (major, minor, node.origin.clone()))
}

/// The needed nodes for which `good` holds, and where the first was seen: all of them, or the
/// control node, the UVM node and at least one GPU's while no GPU is missing from any count, since
/// a fault of one GPU's node costs that GPU and nothing else. `None` when that is not so.
pub(super) fn all_needed(
    facts: &Facts,
    good: impl Fn(&str) -> Option<Origin>,
) -> Option<(Vec<String>, Origin)> {
    let mut names = Vec::new();
    let mut first: Option<Origin> = None;
    let mut gpus = 0_usize;
    let mut gap = false;
    for path in nodes_in_question(facts) {
        match (good(&path), role(&path)) {
            (Some(origin), role) => {
                gpus += usize::from(matches!(role, Some(Role::Gpu(_))));
                names.push(short(&path).to_owned());
                first.get_or_insert(origin);
            }
            (None, Some(Role::Gpu(_))) => gap = true,
            (None, _) => return None,
        }
    }
    if gpus == 0 || (gap && shortfall(facts).is_some()) {
        return None;
    }
    Some((names, first?))
}

/// The needed nodes and every other GPU's node that is known of.
pub(super) fn nodes_in_question(facts: &Facts) -> Vec<String> {
    let mut paths = readings::needed_nodes(facts);
    let listed = facts.node.nodes.iter().filter(|(_, node)| node.is_seen()).map(|(path, _)| path);
    for path in listed.chain(facts.node.opens.keys()) {
        if role(path).is_some() && !paths.contains(path) {
            paths.push(path.clone());
        }
    }
    paths
}
