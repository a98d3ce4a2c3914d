//! `node.wrong-number`

use facts::model::node::{Node, NodeKind, NodeOpen};
use facts::{Errno, Facts, Layer, Observed, Origin, Seen};

use super::{
    Role, all_needed, gone_ones, harmless, matching_failure, nodes_in_question, other_failure,
    rightly_numbered, role, seen_gone, short,
};
use crate::cause::{Cause, LookAlike};
use crate::causes::sandbox::{self, LxcConfig};
use crate::evidence::Strength::{Moderate, Strong};
use crate::machine;
use crate::need::Need;
use crate::readings::{self, code};
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "node.wrong-number",
    layer: Layer::Node,
    claim: "a device node carries a major or minor number that the kernel did not give",
    explanation: "A node is only a pair of numbers: it leads to whatever driver the kernel gave \
        the major. The major of nvidia-uvm is dynamic and changes between boots and module loads, \
        so that a node made by hand, an LXC configuration or a CDI specification with last \
        month's number leads nowhere. A file or a bind mount of /dev/null in a node's place does \
        the same, and so do exchanged minors of two GPUs. NVML does not need nvidia-uvm and goes \
        on answering, while cuInit says 999. For root with CAP_MKNOD the driver library replaces \
        such a node silently, so the fault comes and goes with who asks.",
    explains: &[
        SymptomId::CudaInitFails,
        SymptomId::NvmlFails,
        SymptomId::DriverAbsent,
        SymptomId::GpuMissing,
        SymptomId::FrameworkNoGpu,
    ],
    specializes: &[],
    look_alikes: &[
        LookAlike { id: "node.missing", tell: "nothing stands at the node's path at all" },
        LookAlike {
            id: "uvm.not-loaded",
            tell: "/proc/devices has no nvidia-uvm, whatever the node says",
        },
        LookAlike {
            id: "sandbox.cgroup-denies",
            tell: "the numbers are right and open answers EPERM",
        },
        LookAlike {
            id: "sandbox.cdi-stale",
            tell: "the numbers come from a CDI specification that no longer fits the host",
        },
    ],
    references: &[
        "https://github.com/NVIDIA/nvidia-container-toolkit/issues/1934",
        "https://www.kernel.org/doc/Documentation/admin-guide/devices.txt",
        "kernel-open/nvidia-uvm/uvm.c",
    ],
    weigh,
    remedy,
};

/// Codes that NVML makes of a control node that leads nowhere (ENXIO, ENODEV, ENOTTY).
const NVML_CODES: [i64; 3] =
    [code::NVML_DRIVER_NOT_LOADED, code::NVML_UNKNOWN, code::NVML_OPERATING_SYSTEM];

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    let wrong = wrong_nodes(facts);
    for node in &wrong {
        weigh_node(facts, node, &mut weighing);
    }
    if wrong.is_empty() {
        plain_file(facts, &mut weighing);
        numbers_fit(facts, &mut weighing);
    }
    weighing
}

/// A container whose nodes nobody has listed. NVML answers root 17 where a plain file is mounted in
/// nvidiactl's place, as LXC does for `create=file` when the host has no node yet; it answers other
/// users 999 (measured with libnvidia-ml 550.163.01).
fn plain_file(facts: &Facts, weighing: &mut Weighing) {
    let unseen = !facts.node.at("/dev/nvidiactl").is_seen();
    let elsewhere = machine::is_wsl(facts) || !machine::in_container(facts);
    if let Some(origin) = readings::nvml_failed_with(facts, code::NVML_OPERATING_SYSTEM)
        && unseen
        && !elsewhere
    {
        let statement = "NVML answers 17, as where a plain file is mounted in nvidiactl's place";
        weighing.supports(Moderate, statement, &origin);
    }
}

/// A node with the numbers that it should have.
struct Wrong {
    node: Seen<Node>,
    role: Role,
    expected: (u32, u32),
    kernel: Origin,
}

/// The nodes that CUDA needs and whose numbers are not the kernel's.
fn wrong_nodes(facts: &Facts) -> Vec<Wrong> {
    readings::misnumbered_nodes(facts)
        .into_iter()
        .filter_map(|(node, expected, kernel)| {
            let role = role(&node.value.path)?;
            Some(Wrong { node, role, expected, kernel })
        })
        .collect()
}

fn weigh_node(facts: &Facts, wrong: &Wrong, weighing: &mut Weighing) {
    let name = short(&wrong.node.value.path);
    let (major, minor) = wrong.expected;
    let statement = match wrong.node.value.kind {
        NodeKind::Char { major: 1, minor: 3 } => {
            format!("/dev/null stands in {name}'s place, whose numbers are {major}:{minor}")
        }
        NodeKind::Char { major: found, minor: found_minor } => {
            format!(
                "{name} has the numbers {found}:{found_minor}, and the kernel gave {major}:{minor}"
            )
        }
        NodeKind::Other => format!("{name} is no device node; its numbers are {major}:{minor}"),
    };
    if let Some(works) = harmless(facts, wrong.role) {
        weighing.rules_out(format!("{statement}; CUDA starts all the same"), works);
        return;
    }
    if let Some((failure, origin)) = matching_failure(facts, wrong.role, &NVML_CODES) {
        weighing.confirms(statement, &wrong.node.origin);
        weighing.supports(Moderate, failure, &origin);
    } else {
        weighing.supports(Strong, statement, &wrong.node.origin);
        if let Some((failure, origin)) = other_failure(facts, wrong.role) {
            weighing.objects(Moderate, failure, &origin);
        } else {
            weighing.needs(Need::CudaInit);
        }
    }
    if !matches!(wrong.node.value.kind, NodeKind::Char { major: found, .. } if found == major) {
        let statement = format!("the kernel gave {name} the major {major}");
        weighing.supports(Moderate, statement, &wrong.kernel);
    }
    if let Some((NodeOpen::Failed(errno @ (Errno::ENXIO | Errno::ENODEV)), origin)) =
        facts.node.opens.get(&wrong.node.value.path)
    {
        let statement =
            format!("opening {name} answers {errno}: nothing answers behind its numbers");
        weighing.supports(Moderate, statement, origin);
    }
}

/// The comparison of each needed node with the kernel's numbers, when it comes out even.
fn numbers_fit(facts: &Facts, weighing: &mut Weighing) {
    let fit = all_needed(facts, |path| {
        let right = rightly_numbered(facts, path).map(|(.., origin)| origin);
        right.or_else(|| seen_gone(facts, path))
    });
    let Some((names, origin)) = fit else {
        let paths = nodes_in_question(facts);
        let seen = paths.iter().all(|path| facts.node.at(path).is_seen());
        weighing.needs(if seen { Need::CharMajors } else { Need::NodeListing });
        return;
    };
    let compared: Vec<String> = names
        .iter()
        .filter_map(|name| {
            let (major, ..) = rightly_numbered(facts, &format!("/dev/{name}"))?;
            Some(format!("{name} {major} = {major}"))
        })
        .collect();
    let gone = gone_ones(facts, &names);
    if compared.is_empty() {
        weighing.rules_out("/dev has no node that could carry a number", &origin);
    } else {
        let compared = compared.join(", ");
        let statement = format!("majors as in /proc/devices: {compared}{gone}");
        if gone.is_empty() {
            weighing.rules_out(statement, &origin);
        } else {
            weighing.rules_out_by_all(statement, &origin);
        }
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let wrong = wrong_nodes(facts);
    let remedy = if sandbox::in_lxc(facts) {
        in_lxc(facts, &wrong)
    } else if sandbox::container(facts).is_some() {
        sandbox::recreate()
            .step_to(
                Place::Host,
                "nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml",
                "writes the specification anew with today's numbers; after each driver load where the majors change",
            )
            .step_to(
                Place::Engine,
                "docker rm -f CONTAINER && docker run --gpus all …",
                "a container keeps the nodes that it was created with",
            )
            .undo("nothing to undo: the old numbers lead nowhere")
    } else {
        on_the_machine(&wrong)
    };
    remedy
        .verify("the majors of ls -l /dev/nvidia* are those of grep nvidia /proc/devices, and cuInit answers 0")
        .will_not_help("chmod: the mode is not what refuses")
        .will_not_help("passing the node to the container once more with --device: it carries the same number")
}

fn in_lxc(facts: &Facts, wrong: &[Wrong]) -> Remedy {
    let config = LxcConfig::of(facts);
    let mut remedy = sandbox::recreate();
    for node in wrong {
        let path = &node.node.value.path;
        let entry =
            format!("{path} {} none bind,optional,create=file", path.trim_start_matches('/'));
        remedy = remedy.step_to(
            Place::Host,
            config.add("lxc.mount.entry", &entry),
            "binds the host's own node instead of one made by number",
        );
        let rule = format!("c {}:* rwm", node.expected.0);
        remedy = remedy.step_to(
            Place::Host,
            config.add("lxc.cgroup2.devices.allow", &rule),
            "and takes the place of the line with the old number",
        );
    }
    remedy
        .step(Place::Host, config.restart)
        .undo("take the lines out of the container's configuration again")
}

fn on_the_machine(wrong: &[Wrong]) -> Remedy {
    let mut remedy = Remedy::new(Impact::None, "nothing");
    for Wrong { node, expected: (major, minor), .. } in wrong {
        let path = &node.value.path;
        let command = format!("rm {path} && mknod -m 666 {path} c {major} {minor}");
        remedy = remedy.step(Place::Here, command);
    }
    remedy
        .step_to(
            Place::Here,
            "grep -rn 'mknod.*nvidia' /etc/rc.local /etc/systemd /etc/init.d /etc/udev",
            "finds the script that makes the node with a fixed number",
        )
        .undo("nothing to undo: the old numbers lead nowhere")
}

/// True when this node's numbers are known to be wrong; its open then says nothing of policy.
pub(in crate::causes) fn is_wrong(facts: &Facts, path: &str) -> bool {
    let node = facts.node.at(path);
    matches!(node, Observed::Seen(_))
        && wrong_nodes(facts).iter().any(|wrong| wrong.node.value.path == path)
}
