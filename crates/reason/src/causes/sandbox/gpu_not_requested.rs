//! `sandbox.gpu-not-requested`

use facts::model::host::ContainerKind;
use facts::{Facts, Layer, Observed, Origin};

use super::container;
use crate::cause::{Cause, LookAlike};
use crate::engine;
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::need::Need;
use crate::readings::{self, code};
use crate::remedy::Remedy;
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "sandbox.gpu-not-requested",
    layer: Layer::Sandbox,
    claim: "the container was started without GPUs",
    explanation: "The device nodes and the driver's libraries do not belong to an image: the engine \
        puts both into the container at its start, when it is asked to. An image built on \
        nvidia/cuda brings nvcc and the toolkit's libraries, which looks like GPU support and is \
        none. Without the request there is no /dev/nvidia*, no libcuda.so.1 and no nvidia-smi \
        inside, while /proc and /sys, which the host's kernel fills, still show its GPUs.",
    explains: &[
        SymptomId::DriverAbsent,
        SymptomId::CudaInitFails,
        SymptomId::NvmlFails,
        SymptomId::GpuMissing,
        SymptomId::FrameworkNoGpu,
    ],
    specializes: &["node.missing", "library.missing"],
    look_alikes: &[
        LookAlike {
            id: "node.missing",
            tell: "the driver libraries are there and only nodes are absent",
        },
        LookAlike {
            id: "library.missing",
            tell: "the nodes are there and a library is absent (capability not requested)",
        },
        LookAlike {
            id: "module.not-loaded",
            tell: "/proc/driver/nvidia/version, which a container shares with its host, is absent",
        },
        LookAlike {
            id: "sandbox.engine-blind",
            tell: "GPUs were requested and the engine refuses or finds no driver",
        },
    ],
    references: &[
        "https://github.com/open-edge-platform/anomalib/issues/584",
        "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html",
        "https://docs.docker.com/engine/containers/gpu/",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let kind = container(facts);
    if facts.host.container.value() == Some(&ContainerKind::None) {
        return Weighing::not_applicable();
    }
    let mut weighing = Weighing::new();
    if let Some(origin) = given(facts) {
        weighing.rules_out("the container was given device nodes of the driver", &origin);
        return weighing;
    }
    if let Some(origin) = readings::nvml_failed_with(facts, code::NVML_NO_PERMISSION) {
        let statement = "NVML answers 4, so libraries and nodes are there, and closed";
        weighing.rules_out(statement, &origin);
        return weighing;
    }
    entry_point(facts, &mut weighing);
    let nodes = nodes_absent(facts);
    let library = library_absent(facts);
    let unasked = not_asked(facts);
    if nodes.is_none() && library.is_none() && unasked.is_none() && cured(facts).is_none() {
        if kind.is_some() {
            weighing.needs(Need::NodeListing).needs(Need::EngineRequest);
        }
        return weighing;
    }
    let Some(kind) = kind else {
        weighing.needs(Need::Container);
        return weighing;
    };
    let driver = facts.module.version();
    let everything = nodes.is_some() && library.is_some() && driver.is_some();
    if let Some((statement, origin, shown)) = unasked {
        let strength = if shown { Strong } else { Moderate };
        if everything && shown {
            weighing.confirms(statement, &origin);
        } else {
            weighing.supports(strength, statement, &origin);
        }
    } else {
        weighing.needs(Need::EngineRequest);
    }
    absences(facts, nodes, library, &mut weighing);
    if let Some(origin) = cured(facts) {
        weighing.supports(Strong, "it works once the container asks for GPUs", origin);
    }
    let statement = format!("the process is in a container ({})", kind.value.name());
    weighing.supports(Weak, statement, &kind.origin);
    host_has_gpus(facts, &mut weighing);
    nvml_inside(facts, &mut weighing);
    requested(facts, &mut weighing);
    weighing
}

/// What the image says when it starts.
fn entry_point(facts: &Facts, weighing: &mut Weighing) {
    let Some(origin) = &facts.sandbox.image_lacks_driver else { return };
    let statement = "the image's entry point finds no driver in the container";
    weighing.supports(Strong, statement, origin);
    let statement = "it asks for a start by the container tools of NVIDIA";
    weighing.supports(Moderate, statement, origin);
    requested(facts, weighing);
}

/// Where it is told that a request for GPUs was all that was lacking.
fn cured(facts: &Facts) -> Option<&Origin> {
    engine::cured_by(facts, &["nvidia_visible_devices=all", "--gpus", "--runtime=nvidia"])
}

/// Where a node of the driver was seen inside.
fn given(facts: &Facts) -> Option<Origin> {
    let nodes = facts.node.nodes.iter();
    let seen = nodes
        .filter(|(path, _)| crate::causes::node::role(path).is_some())
        .find_map(|(_, node)| node.as_seen().map(|seen| seen.origin.clone()));
    seen.or_else(|| readings::cuda_works(facts).cloned())
}

fn nodes_absent(facts: &Facts) -> Option<Origin> {
    facts.node.at("/dev/nvidiactl").absent().cloned()
}

/// The library that the engine would have put there, or nvidia-smi, which comes with it.
fn library_absent(facts: &Facts) -> Option<(&'static str, Origin)> {
    if let Observed::Absent(origin) = &facts.library.cuda {
        return Some(("libcuda.so.1 is nowhere on the loader's path", origin.clone()));
    }
    let origin = facts.library.smi.absent()?;
    Some(("nvidia-smi is not installed here", origin.clone()))
}

/// What shows that no GPU was asked for: the statement, its origin, and whether it is the request
/// itself that was seen.
fn not_asked(facts: &Facts) -> Option<(String, Origin, bool)> {
    if let Observed::Seen(seen) = &facts.sandbox.gpu_requested
        && !seen.value
    {
        return Some((
            "the container was started without a request for GPUs".to_owned(),
            seen.origin.clone(),
            true,
        ));
    }
    match facts.process.env("NVIDIA_VISIBLE_DEVICES") {
        Observed::Seen(seen) if matches!(seen.value.as_str(), "void" | "none" | "") => {
            let statement = format!("NVIDIA_VISIBLE_DEVICES={} asks for no GPU", seen.value);
            Some((statement, seen.origin, true))
        }
        Observed::Absent(origin) => {
            Some(("NVIDIA_VISIBLE_DEVICES is not set".to_owned(), origin, false))
        }
        _ => None,
    }
}

fn absences(
    facts: &Facts,
    nodes: Option<Origin>,
    library: Option<(&'static str, Origin)>,
    weighing: &mut Weighing,
) {
    match nodes {
        Some(origin) => {
            weighing.supports(Moderate, "/dev has no node of the driver", &origin);
        }
        None => {
            weighing.needs(Need::NodeListing);
        }
    }
    match library {
        Some((statement, origin)) => {
            weighing.supports(Moderate, statement, &origin);
        }
        None => {
            weighing.needs(Need::LibcudaMapped);
        }
    }
    if let Observed::Seen(seen) = &facts.library.cuda {
        let statement = format!("a driver library is there: {}", seen.value.path);
        weighing.objects(Moderate, statement, &seen.origin);
    }
}

fn host_has_gpus(facts: &Facts, weighing: &mut Weighing) {
    if let Some(version) = facts.module.version() {
        let statement =
            format!("the kernel that the container shares has driver {}", version.value);
        weighing.supports(Weak, statement, &version.origin);
    } else if let Some(seen) = facts.sandbox.host_has_gpus.as_seen().filter(|seen| seen.value) {
        weighing.supports(Weak, "outside the container the GPUs work", &seen.origin);
    } else if let Some(origin) = facts.module.nvrm.absent() {
        weighing.objects(
            Strong,
            "the kernel that the container shares has no driver loaded",
            origin,
        );
    } else if let Some(origin) =
        facts.pci.devices.origin().filter(|_| facts.pci.gpus().next().is_some())
    {
        weighing.supports(Weak, "the PCI bus that the container shares has GPUs", origin);
    }
}

/// NVML's answers speak against it, unless the input shows that they come from outside: they are
/// told of the host, or nvidia-smi is not there inside.
fn nvml_inside(facts: &Facts, weighing: &mut Weighing) {
    let Some(origin) = readings::nvml_works(facts) else { return };
    let of_the_host = facts.sandbox.host_has_gpus.as_seen();
    let told = of_the_host.is_some_and(|seen| seen.value && seen.origin == origin);
    if told || facts.library.smi.absent().is_some() {
        weighing.supports(Weak, "outside the container nvidia-smi works", &origin);
    } else {
        weighing.objects(Strong, "NVML answers", &origin);
    }
}

/// A request that was seen. The images of nvidia/cuda set NVIDIA_VISIBLE_DEVICES=all themselves,
/// so that the variable alone is no request; a command line is.
fn requested(facts: &Facts, weighing: &mut Weighing) {
    let Some(seen) = facts.sandbox.gpu_requested.as_seen().filter(|seen| seen.value) else {
        return;
    };
    if facts.sandbox.started_with.is_seen() {
        weighing.rules_out("the container was started with a request for GPUs", &seen.origin);
    } else {
        weighing.objects(Weak, "something asks for GPUs", &seen.origin);
    }
}

fn remedy(facts: &Facts) -> Remedy {
    super::request_gpus(facts, super::recreate())
        .undo("start the container without the option")
        .verify("nvidia-smi -L inside the new container lists the GPUs")
        .will_not_help(
            "installing a driver inside the container: nodes and libraries come from the host",
        )
        .will_not_help("another CUDA image or PyTorch build: no image carries the driver")
}
