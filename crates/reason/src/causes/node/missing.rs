//! `node.missing`

use facts::model::engine::EngineFault;
use facts::{Facts, Layer, Observed, Origin, Seen};

use super::{
    Role, all_needed, harmless, matching_failure, nodes_in_question, other_failure, role, short,
};
use crate::cause::{Cause, LookAlike};
use crate::causes::sandbox;
use crate::engine;
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::need::Need;
use crate::readings::{self, code};
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "node.missing",
    layer: Layer::Node,
    claim: "a device node that the driver needs is absent",
    explanation: "The driver is loaded and has registered its numbers, but /dev lacks a node that \
        leads to it. Without /dev/nvidiactl nothing starts: cuInit answers 100 and NVML says 9, \
        \"driver not loaded\", although it is. Without /dev/nvidia-uvm cuInit answers 999 while \
        NVML and nvidia-smi go on. Without /dev/nvidiaN that one GPU is not counted and nothing \
        is said. A process with CAP_MKNOD does not see the fault: the driver's own library makes \
        the node on first use, which is why the same program works for root and fails for others.",
    explains: &[
        SymptomId::CudaInitFails,
        SymptomId::NvmlFails,
        SymptomId::DriverAbsent,
        SymptomId::GpuMissing,
        SymptomId::FrameworkNoGpu,
        SymptomId::ContainerRefused,
    ],
    specializes: &[],
    look_alikes: &[
        LookAlike {
            id: "module.not-loaded",
            tell: "no /proc/driver/nvidia/version, and /proc/devices has no nvidia line",
        },
        LookAlike { id: "uvm.not-loaded", tell: "/proc/devices has no nvidia-uvm" },
        LookAlike {
            id: "sandbox.gpu-not-requested",
            tell: "in a container every node and the driver libraries are absent together",
        },
        LookAlike {
            id: "node.wrong-number",
            tell: "the node is there, with another major or minor",
        },
    ],
    references: &[
        "https://docs.nvidia.com/cuda/cuda-installation-guide-linux/#device-node-verification",
        "https://github.com/NVIDIA/nvidia-modprobe",
        "kernel-open/nvidia/nv.c",
    ],
    weigh,
    remedy,
};

/// Codes that NVML makes of ENOENT on nvidiactl.
const NVML_CODES: [i64; 1] = [code::NVML_DRIVER_NOT_LOADED];

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    let missing = missing_nodes(facts);
    if let Some(origin) = no_driver(facts).filter(|_| !missing.is_empty()) {
        weighing.rules_out("no nvidia driver is loaded that a node could lead to", origin);
        return weighing;
    }
    if let Some(works) = harmless(facts, Role::Gpu(0)) {
        weighing.rules_out("CUDA starts and counts every GPU", works);
        return weighing;
    }
    for kind in [is_control, is_uvm, is_gpu] {
        let alike: Vec<&Missing> = missing.iter().filter(|node| kind(node.role)).collect();
        weigh_alike(facts, &alike, &mut weighing);
    }
    by_the_engine(facts, &mut weighing);
    if missing.is_empty() {
        told(facts, &mut weighing);
        made_by_a_tool(facts, &mut weighing);
    }
    if !weighing.support.is_empty() {
        bare_container(facts, &missing, &mut weighing);
    } else if let Some((names, origin)) = all_needed(facts, |path| super::seen_there(facts, path)) {
        let verb = if names.len() == 1 { "is" } else { "are" };
        weighing.rules_out(format!("{} {verb} there", names.join(", ")), &origin);
    } else if missing.is_empty() {
        weighing.needs(Need::NodeListing);
    }
    weighing
}

/// An engine that is to pass a node on and does not find it on its host.
fn by_the_engine(facts: &Facts, weighing: &mut Weighing) {
    if let Some(seen) = not_on_the_host(facts) {
        let statement = format!("the container tools find no {} on the host", seen.value);
        weighing.confirms(statement, &seen.origin);
    }
    let node = engine::fault(facts, |fault| match fault {
        EngineFault::PathMissing(path) => path.strip_prefix("/dev/").map(str::to_owned),
        _ => None,
    });
    let Some(seen) = node.filter(|seen| seen.value.starts_with("nvidia")) else { return };
    let statement =
        format!("the engine is to pass {} on, and its host has no such node", seen.value);
    weighing.supports(Strong, statement, &seen.origin);
    if let Some(origin) = after_a_tool(facts) {
        let statement = "it starts once a tool of the driver has made the nodes on the host";
        weighing.supports(Moderate, statement, origin);
    }
    weighing.needs(Need::CharMajors);
}

/// What starts only once a tool of the driver has run as root lacked what the tool makes.
fn made_by_a_tool(facts: &Facts, weighing: &mut Weighing) {
    if readings::cuda_works(facts).is_some() {
        return;
    }
    if let Some(origin) = after_a_tool(facts) {
        let statement = "it starts once a tool of the driver, which makes nodes, has run";
        weighing.supports(Moderate, statement, origin);
        weighing.needs(Need::NodeListing);
    }
}

/// Where it is told to start once a tool that makes nodes has run.
fn after_a_tool(facts: &Facts) -> Option<&Origin> {
    engine::cured_by(facts, &["nvidia-modprobe", "nvidia-smi"])
}

/// A node that the container tools looked for on the host.
fn not_on_the_host(facts: &Facts) -> Option<Seen<String>> {
    engine::fault(facts, |fault| match fault {
        EngineFault::NodeMissing(path) => Some(path.clone()),
        _ => None,
    })
}

/// A node that a person says is not there, which nobody has looked for here.
fn told(facts: &Facts, weighing: &mut Weighing) {
    let unseen =
        |path: &str| !facts.node.at(path).is_seen() && !facts.node.opens.contains_key(path);
    let seen = facts.node.told_missing.iter().find(|seen| unseen(&seen.value));
    let Some((seen, role)) = seen.and_then(|seen| Some((seen, role(&seen.value)?))) else { return };
    if harmless(facts, role).is_some()
        || role == Role::Uvm && readings::uvm_missing(facts).is_some()
    {
        return;
    }
    let statement = format!("{} is told not to be there", short(&seen.value));
    weighing.supports(Strong, statement, &seen.origin).needs(Need::NodeListing);
    if let Some((statement, origin)) = matching_failure(facts, role, &NVML_CODES) {
        weighing.supports(Moderate, statement, &origin);
    }
}

/// A node that was looked for and is not there.
struct Missing {
    path: String,
    role: Role,
    origin: Origin,
}

fn is_control(role: Role) -> bool {
    role == Role::Control
}

fn is_uvm(role: Role) -> bool {
    role == Role::Uvm
}

fn is_gpu(role: Role) -> bool {
    matches!(role, Role::Gpu(_))
}

/// The needed nodes that were looked for and are not there.
fn missing_nodes(facts: &Facts) -> Vec<Missing> {
    let given_some = some_gpu_node(facts);
    let minors_known = facts.module.gpus.iter().any(|gpu| gpu.value.minor.is_some())
        || facts.nvml.gpus.iter().any(|gpu| gpu.value.minor.is_some());
    let mut found = Vec::new();
    for path in nodes_in_question(facts) {
        let Some(role) = role(&path) else { continue };
        if let Role::Gpu(minor) = role {
            let guessed = given_some && !minors_known;
            if guessed || super::excluded(facts, minor).is_some() {
                continue;
            }
        }
        if let Some(origin) = super::seen_gone(facts, &path) {
            found.push(Missing { path, role, origin });
        }
    }
    found
}

/// Where it was seen that there is no driver at all. A hidden /proc/driver/nvidia alone does no
/// harm and proves nothing, so the majors and the list of modules must agree.
fn no_driver(facts: &Facts) -> Option<&Origin> {
    let registered = facts.module.majors.values().any(Observed::is_seen);
    let loaded = facts.module.loaded("nvidia").is_seen() || readings::nvml_works(facts).is_some();
    facts.module.nvrm.absent().filter(|_| !registered && !loaded)
}

/// Weighs the absence of nodes of one kind. Many GPUs' nodes are one piece of evidence.
fn weigh_alike(facts: &Facts, alike: &[&Missing], weighing: &mut Weighing) {
    let Some(Missing { path, role, origin }) = alike.first().copied() else {
        return;
    };
    // Without nvidia_uvm its node has nothing to lead to; and one GPU's node among others costs
    // that GPU and nothing else.
    let registered = readings::expected_numbers(facts, path).is_some();
    let idle_node = *role == Role::Uvm && !registered && readings::uvm_missing(facts).is_some();
    if idle_node
        || harmless(facts, *role).is_some()
        || (is_gpu(*role) && some_gpu_node(facts) && super::shortfall(facts).is_none())
    {
        return;
    }
    let names: Vec<&str> = alike.iter().map(|node| short(&node.path)).collect();
    let names =
        format!("{} {} not there", names.join(", "), if names.len() == 1 { "is" } else { "are" });
    if is_gpu(*role) && chosen_gpus(facts, &names, origin, weighing) {
        return;
    }
    let failure = matching_failure(facts, *role, &NVML_CODES);
    match (registration(facts, path), &failure) {
        (Some(registered), Some(_)) if !may_be_bare(facts) => {
            weighing.confirms(format!("{names}, though {registered}"), origin)
        }
        (Some(registered), _) => {
            weighing.supports(Strong, format!("{names}, though {registered}"), origin)
        }
        (None, _) => weighing.supports(Strong, names, origin).needs(Need::CharMajors),
    };
    if let Some((statement, origin)) = failure {
        weighing.supports(Moderate, statement, &origin);
    } else if let Some((statement, origin)) = other_failure(facts, *role) {
        weighing.objects(Moderate, statement, &origin);
        if registration(facts, path).is_some() && !may_be_bare(facts) {
            weighing.stands_alone();
        }
    }
    first_use(facts, weighing);
}

/// A container may have been given some GPUs and not others on purpose, so that the others' nodes
/// say little there.
fn chosen_gpus(facts: &Facts, names: &str, origin: &Origin, weighing: &mut Weighing) -> bool {
    if sandbox::container(facts).is_none() || !some_gpu_node(facts) {
        return false;
    }
    weighing.supports(Moderate, names, origin);
    if let Some((statement, origin)) = super::shortfall(facts) {
        weighing.supports(Weak, statement, &origin);
    }
    if let Observed::Seen(seen) = facts.process.env("NVIDIA_VISIBLE_DEVICES")
        && seen.value != "all"
    {
        let statement = format!("this container was given the GPUs {} and no others", seen.value);
        weighing.objects(Strong, statement, &seen.origin);
    }
    true
}

/// What shows that the kernel would answer behind this node.
fn registration(facts: &Facts, path: &str) -> Option<String> {
    if let Some((major, minor, _)) = readings::expected_numbers(facts, path) {
        return Some(format!("the kernel gave it the numbers {major}:{minor}"));
    }
    let version = facts.module.version().filter(|_| role(path) != Some(Role::Uvm))?;
    Some(format!("driver {} is loaded", version.value))
}

/// Root would have the node made on first use; who looked is therefore part of the finding.
fn first_use(facts: &Facts, weighing: &mut Weighing) {
    const CAP_MKNOD: u32 = 27;
    let Some(seen) = facts.sandbox.cap_effective.as_seen() else {
        return;
    };
    let statement = if facts.sandbox.has_capability(CAP_MKNOD) == Some(true) {
        "this user has CAP_MKNOD: a program of theirs would have the driver library make the node on first use; the probes ran without it"
    } else {
        "this user has no CAP_MKNOD, so the driver library cannot make the node on first use"
    };
    weighing.supports(Weak, statement, &seen.origin);
}

fn some_gpu_node(facts: &Facts) -> bool {
    facts.node.gpu_nodes().any(|(_, node)| node.is_seen())
}

/// True in a container of which it is not known that it was given the driver's libraries: what
/// lacks may be more than nodes.
fn may_be_bare(facts: &Facts) -> bool {
    let given = facts.library.cuda.is_seen() || !facts.cuda.trials.is_empty();
    sandbox::container(facts).is_some() && !given
}

/// Nothing of the driver in a container: then it was given no GPUs, and the nodes are the least.
fn bare_container(facts: &Facts, missing: &[Missing], weighing: &mut Weighing) {
    let nothing_there =
        nodes_in_question(facts).len() == missing.len() && facts.cuda.trials.is_empty();
    if let (Some(_), Observed::Absent(origin), true) =
        (sandbox::container(facts), &facts.library.cuda, nothing_there)
    {
        let statement = "the driver library is absent as well: this container was given nothing";
        weighing.objects(Strong, statement, origin);
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let missing: Vec<String> = missing_nodes(facts).into_iter().map(|node| node.path).collect();
    let on_host = not_on_the_host(facts).map(|seen| seen.value);
    let remedy = if let Some(path) = on_host.filter(|_| missing.is_empty()) {
        on_the_machine(facts, &[path])
    } else if sandbox::container(facts).is_some() {
        sandbox::request_gpus(facts, sandbox::recreate())
            .undo("take the lines or options out again and start the container anew")
    } else {
        on_the_machine(facts, &missing)
    };
    let listed = if missing.is_empty() { "/dev/nvidia*".to_owned() } else { missing.join(" ") };
    remedy
        .verify(format!("ls -l {listed} lists each node, and cuInit answers 0 for a user without CAP_MKNOD"))
        .will_not_help("reinstalling the driver: it is loaded and has registered its numbers")
        .will_not_help(
            "trying once as root: root's driver library makes the node on first use, and after the next boot it is gone again",
        )
}

/// nvidia-modprobe makes nodes with the right numbers, owner and mode; mknod does where it lacks.
fn on_the_machine(facts: &Facts, missing: &[String]) -> Remedy {
    let mut remedy = Remedy::new(Impact::None, "nothing");
    let options: Vec<String> = missing.iter().filter_map(|path| modprobe_option(path)).collect();
    if !options.is_empty() {
        let command = format!("nvidia-modprobe {}", options.join(" "));
        remedy = remedy.step_to(Place::Here, command, "makes the nodes as the driver wants them");
    }
    for path in missing {
        remedy = remedy.step_to(Place::Here, mknod(facts, path), "the same by hand, as root");
    }
    remedy
        .step_to(
            Place::Here,
            "systemctl enable --now nvidia-persistenced",
            "has the nodes made at every boot",
        )
        .undo(format!("rm {}", missing.join(" ")))
}

/// The option of nvidia-modprobe that makes this node.
fn modprobe_option(path: &str) -> Option<String> {
    if path == MODESET {
        return Some("-m".to_owned());
    }
    match role(path)? {
        Role::Uvm => Some("-u".to_owned()),
        Role::Gpu(minor) => Some(format!("-c {minor}")),
        Role::Control => Some("-c 255".to_owned()),
    }
}

/// The node of nvidia_modeset, which is no compute program's; containers that draw ask for it.
const MODESET: &str = "/dev/nvidia-modeset";

fn mknod(facts: &Facts, path: &str) -> String {
    if path == MODESET {
        // kernel-open/nvidia-modeset: NV_CONTROL_DEVICE_MINOR - 1.
        return format!("mknod -m 666 {path} c 195 254");
    }
    if let Some((major, minor, _)) = readings::expected_numbers(facts, path) {
        return format!("mknod -m 666 {path} c {major} {minor}");
    }
    match role(path) {
        Some(Role::Gpu(minor)) => format!("mknod -m 666 {path} c 195 {minor}"),
        Some(Role::Control) => format!("mknod -m 666 {path} c 195 255"),
        Some(Role::Uvm) | None => {
            format!("mknod -m 666 {path} c $(awk '$2==\"nvidia-uvm\"{{print $1}}' /proc/devices) 0")
        }
    }
}
