//! `sandbox.cdi-stale`

use facts::model::engine::{CdiNode, EngineFault};
use facts::version::DriverVersion;
use facts::{Facts, Layer, Observed, Origin, Seen};

use crate::cause::{Cause, LookAlike};
use crate::causes::node::short;
use crate::engine;
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::need::Need;
use crate::readings::{self, code};
use crate::remedy::{Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "sandbox.cdi-stale",
    layer: Layer::Sandbox,
    claim: "the CDI spec names files or numbers that are no longer there",
    explanation: "A CDI spec is a photograph of the host: paths of libraries with the driver's \
        version in their names, and device numbers. After a driver upgrade the files are gone, and \
        the engine cannot mount them. nvidia-uvm's major is given anew at each load, so a spec \
        that records it leads the container's node to nowhere after a reboot: nvidia-smi works \
        there and cuInit answers 999.",
    explains: &[
        SymptomId::ContainerRefused,
        SymptomId::CudaInitFails,
        SymptomId::NvmlFails,
        SymptomId::GpuMissing,
        SymptomId::FrameworkNoGpu,
        SymptomId::DriverAbsent,
    ],
    specializes: &["node.wrong-number", "library.missing", "node.missing"],
    look_alikes: &[
        LookAlike {
            id: "node.wrong-number",
            tell: "the wrong node was made by hand or by a configuration of LXC, not by a CDI spec",
        },
        LookAlike {
            id: "sandbox.cdi-unresolvable",
            tell: "the engine finds no device of that name in any spec",
        },
        LookAlike {
            id: "uvm.hmm",
            tell: "cuInit answers 3 or hangs, and the node's major is the kernel's",
        },
        LookAlike { id: "node.missing", tell: "the node is not in the container at all" },
    ],
    references: &[
        "https://github.com/NVIDIA/nvidia-container-toolkit/issues/1934",
        "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/cdi-support.html",
        "https://github.com/cncf-tags/container-device-interface/blob/main/SPEC.md",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    if let Some(origin) = readings::cuda_works(facts) {
        weighing.rules_out("cuInit answers 0", origin);
        return weighing;
    }
    let agreed = numbers(facts, &mut weighing);
    let same = libraries(facts, &mut weighing);
    missing_path(facts, &mut weighing);
    if weighing.support.is_empty() {
        match (agreed, same) {
            (Some(origin), _) | (None, Some(origin)) => {
                let statement = "what the CDI spec records is what the host has";
                weighing.rules_out(statement, &origin);
            }
            (None, None) => suspicion(facts, &mut weighing),
        }
        return weighing;
    }
    if let Some(trial) = readings::init_failed_with(facts, code::UNKNOWN) {
        let statement = "cuInit answers 999, as it does when nvidia-uvm leads nowhere";
        weighing.supports(Moderate, statement, &trial.origin);
    }
    weighing
}

/// A number in the spec that is not the kernel's. Returns where they agree, when all do.
fn numbers(facts: &Facts, weighing: &mut Weighing) -> Option<Origin> {
    let mut agreed = None;
    for seen in &facts.sandbox.engine.cdi.nodes {
        let CdiNode { path, major: Some(major), .. } = &seen.value else { continue };
        let Some((expected, origin)) = kernel_major(facts, path) else { continue };
        if *major == expected {
            agreed.get_or_insert(seen.origin.clone());
            continue;
        }
        let name = short(path);
        let statement = format!("the spec gives {name} the major {major}, the kernel {expected}");
        weighing.confirms(statement, &seen.origin);
        weighing.supports(Weak, format!("/proc/devices: {expected} is {name}'s"), &origin);
    }
    let recorded = facts.sandbox.engine.cdi.nodes.iter().find(|seen| dynamic(&seen.value));
    if let (Some(seen), None, true) = (recorded, &agreed, weighing.support.is_empty()) {
        by_the_node(facts, seen, weighing);
    }
    agreed.filter(|_| weighing.support.is_empty())
}

/// nvidia-uvm's major is given anew at each load; 195 is fixed.
fn dynamic(node: &CdiNode) -> bool {
    node.path.starts_with("/dev/nvidia-uvm") && node.major.is_some()
}

fn kernel_major(facts: &Facts, path: &str) -> Option<(u32, Origin)> {
    if path.starts_with("/dev/nvidia-caps/") {
        let seen = facts.module.major("nvidia-caps");
        let seen = seen.as_seen()?;
        return Some((seen.value, seen.origin.clone()));
    }
    let (major, _, origin) = readings::expected_numbers(facts, path)?;
    Some((major, origin))
}

/// The kernel's numbers are not in the input: a spec that records a dynamic one is a suspect when
/// cuInit answers 999 and NVML works.
fn by_the_node(facts: &Facts, seen: &Seen<CdiNode>, weighing: &mut Weighing) {
    let Some(trial) = readings::init_failed_with(facts, code::UNKNOWN) else { return };
    let major = seen.value.major.unwrap_or_default();
    let statement = format!(
        "the spec records the major {major} for {}, which changes",
        short(&seen.value.path)
    );
    weighing.supports(Moderate, statement, &seen.origin);
    weighing.supports(
        Moderate,
        "cuInit answers 999, as it does when nvidia-uvm leads nowhere",
        &trial.origin,
    );
    if let Some(origin) = readings::nvml_works(facts) {
        weighing.supports(Weak, "NVML answers, which does not need nvidia-uvm", &origin);
    }
    weighing.needs(Need::CharMajors);
}

/// Versions in the names of the spec's files. Returns where they agree with the driver's.
fn libraries(facts: &Facts, weighing: &mut Weighing) -> Option<Origin> {
    let recorded = &facts.sandbox.engine.cdi.libraries;
    let driver = readings::driver_version(facts)?;
    let same = recorded.iter().find(|seen| seen.value.1.same_release(&driver.value));
    if let Some(seen) = same {
        return Some(seen.origin.clone());
    }
    let other = recorded.first()?;
    let statement =
        format!("the spec mounts files of {}, and the driver is {}", other.value.1, driver.value);
    weighing.supports(Strong, statement, &other.origin);
    weighing.supports(Weak, format!("the driver is {}", driver.value), &driver.origin);
    None
}

/// A path that the engine was to put into the container and did not find.
fn missing_path(facts: &Facts, weighing: &mut Weighing) {
    let missing = engine::fault(facts, |fault| match fault {
        EngineFault::PathMissing(path) => Some(path.clone()),
        _ => None,
    });
    let Some(seen) = missing else { return };
    let path = &seen.value;
    let driver = readings::driver_version(facts);
    let version = version_in(path);
    // A mount or device that somebody wrote into a command line or a pod fails in the same words.
    let strength = if by_cdi(facts) { Strong } else { Moderate };
    match (version, driver) {
        (Some(version), Some(driver)) if !version.same_release(&driver.value) => {
            let statement =
                format!("the engine is to mount {path}, and the driver is {}", driver.value);
            weighing.confirms(statement, &seen.origin);
        }
        (Some(version), _) => {
            let statement =
                format!("the engine is to mount {path} of driver {version}, which is not there");
            weighing.supports(strength, statement, &seen.origin);
            weighing.needs(Need::CdiSpec).needs(Need::ModuleVersion);
        }
        (None, _) if of_a_gpu(path) => {
            let statement = format!("the engine is to give {path}, which is not there");
            weighing.supports(strength, statement, &seen.origin);
            weighing.needs(Need::CdiSpec);
        }
        (None, _) => {}
    }
    if weighing.support.is_empty() {
        return;
    }
    if let Observed::Seen(specs) = &facts.sandbox.engine.cdi.specs {
        weighing.supports(Weak, "a CDI spec is in use", &specs.origin);
    }
    let asked = facts.sandbox.started_with.as_seen();
    if let Some(asked) = asked.filter(|asked| asks_by_cdi(&asked.value)) {
        weighing.supports(Moderate, "GPUs were asked for by their CDI names", &asked.origin);
    }
    if let Some(origin) = engine::driver_works(facts) {
        weighing.supports(Weak, "outside the container the driver works", &origin);
    }
}

/// By name, or by podman's `--gpus`, which stands for the name.
fn asks_by_cdi(started: &str) -> bool {
    started.contains("nvidia.com/gpu") || (started.contains("podman") && started.contains("--gpus"))
}

/// The driver's own, and what a GPU draws with, whose number may be another after each boot.
fn of_a_gpu(path: &str) -> bool {
    path.contains("nvidia") || path.contains("libcuda") || path.starts_with("/dev/dri/")
}

/// What shows that a CDI spec is at work at all.
fn by_cdi(facts: &Facts) -> bool {
    let cdi = &facts.sandbox.engine.cdi;
    let named = |text: &str| text.contains("nvidia.com/gpu") || text.contains("CDI");
    cdi.specs.is_seen()
        || cdi.listed.is_seen()
        || !cdi.nodes.is_empty()
        || !cdi.libraries.is_empty()
        || facts
            .sandbox
            .started_with
            .value()
            .is_some_and(|words| named(words) || asks_by_cdi(words))
        || facts.sandbox.engine_messages.iter().any(|message| named(&message.value.1))
}

fn version_in(path: &str) -> Option<DriverVersion> {
    let (_, version) = path.rsplit('/').next()?.split_once(".so.")?;
    DriverVersion::parse(version)
}

fn suspicion(facts: &Facts, weighing: &mut Weighing) {
    let by_cdi = facts.sandbox.engine.cdi.specs.is_seen()
        || facts.sandbox.started_with.value().is_some_and(|words| words.contains("nvidia.com/gpu"));
    if by_cdi && readings::init_failed_with(facts, code::UNKNOWN).is_some() {
        weighing.needs(Need::CdiSpec).needs(Need::CharMajors);
    }
}

fn remedy(_: &Facts) -> Remedy {
    super::recreate()
        .step_to(
            Place::Host,
            "nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml",
            "as root, with nvidia_uvm loaded (nvidia-modprobe -u); in the place of the spec that is read",
        )
        .step_to(
            Place::Host,
            "systemctl enable --now nvidia-cdi-refresh.path nvidia-cdi-refresh.service",
            "toolkit 1.18 and later: writes the spec anew at boot and after upgrades",
        )
        .step_to(Place::Engine, "podman rm CONTAINER, and run it anew", "a container keeps what it was made with")
        .undo("put the former spec back from a copy")
        .verify("grep nvidia-uvm /proc/devices agrees with the spec, and cuInit answers 0 in a new container")
        .will_not_help("passing --device /dev/nvidia-uvm beside it: the spec's entry for the same path wins")
        .will_not_help("another image or framework: they get the same nodes")
}
