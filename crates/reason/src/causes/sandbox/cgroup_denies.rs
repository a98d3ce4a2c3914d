//! `sandbox.cgroup-denies`

use facts::model::host::ContainerKind;
use facts::model::node::NodeOpen;
use facts::model::process::Lever;
use facts::{Errno, Facts, Layer, Origin, Seen};

use super::{LxcConfig, container};
use crate::cause::{Cause, LookAlike};
use crate::causes::node::{
    self, Role, all_needed, matching_failure, nodes_in_question, rightly_numbered, role, short,
};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::need::Need;
use crate::readings::{self, code};
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "sandbox.cgroup-denies",
    layer: Layer::Sandbox,
    claim: "the cgroup's device policy denies the driver's nodes",
    explanation: "A container's cgroup carries a list of the device numbers that may be opened. \
        The node itself is in order, its mode and numbers are right, and open still answers EPERM. \
        When the policy leaves out major 195, NVML answers 999, \"Unknown Error\", and cuInit 100. \
        When it has 195 and not the dynamic major of nvidia-uvm, nvidia-smi works and cuInit \
        answers 999; that happens with LXC configurations after the kernel gave another major.",
    explains: &[
        SymptomId::CudaInitFails,
        SymptomId::NvmlFails,
        SymptomId::GpuMissing,
        SymptomId::FrameworkNoGpu,
    ],
    specializes: &[],
    look_alikes: &[
        LookAlike {
            id: "sandbox.cgroup-lost",
            tell: "it worked in this same container until systemd re-applied its unit (daemon-reload)",
        },
        LookAlike { id: "node.permission", tell: "open answers EACCES, and the mode says why" },
        LookAlike {
            id: "node.wrong-number",
            tell: "the node's major is not the one in /proc/devices",
        },
        LookAlike {
            id: "sandbox.seccomp",
            tell: "the nodes open, and ioctl or a micro-probe answers EPERM",
        },
    ],
    references: &[
        "https://docs.kernel.org/admin-guide/cgroup-v2.html#device-controller",
        "https://linuxcontainers.org/lxc/manpages/man5/lxc.container.conf.5.html",
        "https://github.com/NVIDIA/libnvidia-container/issues/111",
    ],
    weigh,
    remedy,
};

/// Codes that NVML makes of EPERM on nvidiactl.
const NVML_CODES: [i64; 1] = [code::NVML_UNKNOWN];

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    let denied = denied_nodes(facts);
    for node in &denied {
        weigh_denied(facts, node, &mut weighing);
    }
    configuration(facts, &mut weighing);
    if let Some(origin) = facts.process.helped_by(Lever::DevicePolicy) {
        let statement = "it works once the service's unit lets the device nodes in";
        weighing.supports(Strong, statement, origin);
    }
    let by_hand = facts.process.helped_by(Lever::OutsideUnit);
    if let Some(origin) = by_hand.filter(|_| denied.is_empty()) {
        // A unit also has another user, another environment, and starts earlier.
        let statement = "it works when a person starts it, and not as a service";
        weighing.supports(Moderate, statement, origin);
        weighing.needs(Need::UnitDevices);
    }
    if weighing.support.is_empty() {
        not_denied(facts, &denied, &mut weighing);
        return weighing;
    }
    let role = denied.first().map_or(Role::Uvm, |node| node.role);
    if let Some((statement, origin)) = matching_failure(facts, role, &NVML_CODES) {
        weighing.supports(Moderate, statement, &origin);
    }
    if let Some(kind) = container(facts) {
        let statement = format!("the process is in a container ({})", kind.value.name());
        weighing.supports(Weak, statement, &kind.origin);
    } else {
        weighing.needs(Need::Container);
    }
    weighing
}

/// A node whose open answered EPERM.
struct Denied {
    path: String,
    role: Role,
    origin: Origin,
}

/// The nodes that answer EPERM, without the GPUs that the driver itself leaves out with EPERM.
fn denied_nodes(facts: &Facts) -> Vec<Denied> {
    let tried = facts.node.opens.iter();
    tried
        .filter(|(_, (open, _))| *open == NodeOpen::Failed(Errno::EPERM))
        .filter_map(|(path, (_, origin))| {
            let role = role(path)?;
            let excluded =
                matches!(role, Role::Gpu(minor) if node::excluded(facts, minor).is_some());
            (!excluded).then(|| Denied { path: path.clone(), role, origin: origin.clone() })
        })
        .collect()
}

/// EPERM from open comes after the mode bits were passed, and before any driver is asked: only a
/// device policy says it, when the numbers are right and no filter of system calls is at work.
fn weigh_denied(facts: &Facts, denied: &Denied, weighing: &mut Weighing) {
    let name = short(&denied.path);
    if node::wrong_number::is_wrong(facts, &denied.path) {
        let statement =
            format!("{name} has a number that the kernel did not give; no policy knows it");
        weighing.objects(Strong, statement, &denied.origin);
        return;
    }
    let filtered = super::seccomp::refused_calls(facts);
    match (rightly_numbered(facts, &denied.path), filtered.first()) {
        (Some((major, minor, _)), None) => {
            let statement =
                format!("open of {name} answers EPERM, and its numbers {major}:{minor} are right");
            weighing.confirms(statement, &denied.origin);
        }
        (_, None) => {
            weighing.supports(Strong, format!("open of {name} answers EPERM"), &denied.origin);
            weighing.needs(Need::NodeListing).needs(Need::CharMajors);
        }
        (_, Some((call, origin))) => {
            weighing.supports(Moderate, format!("open of {name} answers EPERM"), &denied.origin);
            weighing.objects(
                Moderate,
                format!("{call} is refused as well, which no cgroup does"),
                origin,
            );
        }
    }
}

/// The device rules of an LXC configuration against the majors that the kernel gave.
fn configuration(facts: &Facts, weighing: &mut Weighing) {
    let rules = device_rules(facts);
    let Some(first) = rules.first() else { return };
    for (name, major) in needed_majors(facts) {
        let allowed = rules.iter().any(|rule| allows(&rule.value, major.value));
        if allowed {
            continue;
        }
        let statement = format!("the configuration has no rule for {name}'s major {}", major.value);
        weighing.supports(Strong, statement, &first.origin);
        weighing.supports(
            Weak,
            format!("the kernel gave {name} the major {}", major.value),
            &major.origin,
        );
    }
}

/// The values of `lxc.cgroup2.devices.allow` (and of its cgroup v1 form) in the input.
fn device_rules(facts: &Facts) -> Vec<Seen<String>> {
    let settings = facts.sandbox.settings.iter();
    settings
        .filter(|setting| setting.value.0.ends_with("devices.allow"))
        .map(|setting| Seen::new(setting.value.1.clone(), setting.origin.clone()))
        .collect()
}

fn needed_majors(facts: &Facts) -> Vec<(&'static str, Seen<u32>)> {
    let uvm = facts.module.major("nvidia-uvm").as_seen().cloned();
    let ctl = readings::expected_numbers(facts, "/dev/nvidiactl")
        .map(|(major, _, origin)| Seen::new(major, origin));
    [("nvidia-uvm", uvm), ("nvidiactl", ctl)]
        .into_iter()
        .filter_map(|(name, major)| Some((name, major?)))
        .collect()
}

/// Whether a rule such as `c 195:* rwm` or `a` lets this major be read and written.
fn allows(rule: &str, major: u32) -> bool {
    let mut words = rule.split_whitespace();
    let kind = words.next().unwrap_or_default();
    if kind == "a" {
        return true;
    }
    let numbers = words.next().unwrap_or_default();
    let access = words.next().unwrap_or("rwm");
    let of_major = numbers.split(':').next().unwrap_or_default();
    let covers = of_major == "*" || of_major.parse() == Ok(major);
    kind == "c" && covers && access.contains('r') && access.contains('w')
}

fn not_denied(facts: &Facts, denied: &[Denied], weighing: &mut Weighing) {
    if let Some((names, origin)) = all_needed(facts, |path| readings::opens(facts, path)) {
        weighing.rules_out(format!("{} open read-write from here", names.join(", ")), &origin);
        return;
    }
    let outcomes: Vec<(String, Errno, Origin)> = nodes_in_question(facts)
        .iter()
        .filter_map(|path| match facts.node.opens.get(path)? {
            (NodeOpen::Failed(errno), origin) => {
                Some((short(path).to_owned(), *errno, origin.clone()))
            }
            _ => None,
        })
        .collect();
    let tried = nodes_in_question(facts).iter().all(|path| {
        let open = facts.node.opens.get(path);
        matches!(open, Some((NodeOpen::Opened | NodeOpen::Failed(_), _)))
            || node::seen_gone(facts, path).is_some()
    });
    match outcomes.first() {
        Some((name, errno, origin)) if tried && denied.is_empty() => {
            let statement = if *errno == Errno::EPERM {
                format!("{name} answers EPERM because the driver excludes that GPU")
            } else {
                format!("{name} answers {errno}, and a device policy answers EPERM")
            };
            weighing.rules_out(statement, origin);
        }
        _ => {
            suspicion(facts, weighing);
            weighing.needs(Need::NodeOpen);
        }
    }
}

/// NVML's "Unknown Error" in a container whose nodes are there is what a policy looks like from
/// outside, and what a lost policy looks like as well.
fn suspicion(facts: &Facts, weighing: &mut Weighing) {
    let Some(origin) = readings::nvml_failed_with(facts, code::NVML_UNKNOWN) else {
        return;
    };
    let Some(kind) = container(facts) else { return };
    let statement = "NVML answers 999, which it makes of EPERM on nvidiactl";
    weighing.supports(Moderate, statement, &origin);
    let privileged = &facts.sandbox.engine.privileged_works;
    if let Some(seen) = privileged.as_seen().filter(|seen| seen.value) {
        let statement = "it works when the container is privileged, which has no device policy";
        weighing.supports(Moderate, statement, &seen.origin);
    }
    let statement = format!("the process is in a container ({})", kind.value.name());
    weighing.supports(Weak, statement, &kind.origin);
}

fn remedy(facts: &Facts) -> Remedy {
    let remedy = match container(facts).map(|kind| kind.value) {
        Some(ContainerKind::Lxc) => in_lxc(facts),
        Some(_) => super::request_gpus(facts, super::recreate()),
        None if !device_rules(facts).is_empty() => in_lxc(facts),
        None => in_unit(),
    };
    remedy
        .undo("take the added lines or options out again and start the container or unit anew")
        .verify("every node opens read-write from inside, and cuInit answers 0")
        .will_not_help("chmod or running as root: the policy is asked after the mode, and root is no exception")
        .will_not_help("another driver or image: the same nodes open outside this cgroup")
}

fn in_lxc(facts: &Facts) -> Remedy {
    let config = LxcConfig::of(facts);
    let rules = device_rules(facts);
    let mut remedy = super::recreate();
    let lacking: Vec<String> = needed_majors(facts)
        .into_iter()
        .filter(|(_, major)| !rules.iter().any(|rule| allows(&rule.value, major.value)))
        .map(|(_, major)| format!("c {}:* rwm", major.value))
        .collect();
    let lines = if lacking.is_empty() { super::device_rules(facts) } else { lacking };
    for rule in lines {
        remedy = remedy.step_to(
            Place::Host,
            config.add("lxc.cgroup2.devices.allow", &rule),
            "lxc.cgroup.devices.allow is the key under cgroup v1",
        );
    }
    remedy.step_to(
        Place::Host,
        config.restart,
        "nvidia-uvm's major may change at the next boot; grep nvidia-uvm /proc/devices shows it",
    )
}

/// Outside containers a systemd unit or a batch system sets the policy.
fn in_unit() -> Remedy {
    Remedy::new(Impact::RestartsService, "the unit or job in question")
        .step_to(
            Place::Here,
            "systemctl edit UNIT, and under [Service]: DeviceAllow=char-nvidia rw, DeviceAllow=char-nvidiactl rw, DeviceAllow=char-nvidia-uvm rw",
            "systemd resolves the names through /proc/devices",
        )
        .step_to(
            Place::Engine,
            "srun --gres=gpu:1 …",
            "under Slurm with ConstrainDevices a job has only the GPUs that it asked for",
        )
}

#[cfg(test)]
mod tests {
    use super::allows;

    #[test]
    fn rules_of_lxc() {
        for rule in ["c 507:* rwm", "c 507:0 rw", "c *:* rwm", "a", "c 507:*"] {
            assert!(allows(rule, 507), "{rule}");
        }
        for rule in ["c 195:* rwm", "b 507:* rwm", "c 507:* m", "c 50:* rwm", ""] {
            assert!(!allows(rule, 507), "{rule}");
        }
    }
}
