//! `sandbox.engine-blind`

use facts::model::engine::EngineFault;
use facts::{Facts, Layer, Observed, Origin, Seen};

use crate::cause::{Cause, LookAlike};
use crate::engine;
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::machine;
use crate::need::Need;
use crate::readings;
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "sandbox.engine-blind",
    layer: Layer::Sandbox,
    claim: "the container engine itself cannot reach the host's driver",
    explanation: "Before a container starts, a hook of NVIDIA's toolkit loads libnvidia-ml.so.1 \
        where the engine runs. An engine in a snap, in the virtual machine of a desktop product, \
        or told by 'root =' to look below /run/nvidia/driver sees another file system and finds no \
        driver, although nvidia-smi works in the host's shell. An engine that was never told of \
        the toolkit has no hook to call at all.",
    explains: &[
        SymptomId::ContainerRefused,
        SymptomId::DriverAbsent,
        SymptomId::NvmlFails,
        SymptomId::GpuMissing,
    ],
    specializes: &["library.missing", "sandbox.gpu-not-requested", "module.not-loaded"],
    look_alikes: &[
        LookAlike {
            id: "library.missing",
            tell: "nvidia-smi fails on the host too: the library is not installed there",
        },
        LookAlike {
            id: "sandbox.gpu-not-requested",
            tell: "the container starts, and has no nodes and libraries: nobody asked",
        },
        LookAlike {
            id: "module.not-loaded",
            tell: "the hook's words are 'nvml error: driver not loaded'",
        },
        LookAlike {
            id: "sandbox.cdi-unresolvable",
            tell: "the engine speaks of CDI devices, and no hook runs",
        },
    ],
    references: &[
        "https://github.com/canonical/docker-snap/issues/148",
        "https://github.com/NVIDIA/nvidia-container-toolkit/issues/154",
        "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html",
        "https://github.com/NVIDIA/libnvidia-container",
    ],
    weigh,
    remedy,
};

/// What the engine lacks.
enum Lack {
    /// The hook cannot load this library.
    Library(String),
    /// The hook looks for the driver under a root that is not there.
    Root,
    /// There is no hook or runtime for GPUs.
    Runtime(String),
    /// A device plugin runs without the runtime.
    Plugin,
}

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    let Some(lack) = lack(facts) else { return weighing };
    let statement = match &lack.value {
        Lack::Library(library) => format!("the engine's hook cannot load {library}"),
        Lack::Root => {
            "the root under which the engine's hook looks for the driver is not there".to_owned()
        }
        Lack::Runtime(said) => format!("the engine knows no runtime for GPUs: {said}"),
        Lack::Plugin => "the device plugin finds no driver in its container".to_owned(),
    };
    weighing.supports(Strong, statement, &lack.origin);
    let by_library = matches!(lack.value, Lack::Library(_) | Lack::Root);
    enclosed(facts, by_library, &mut weighing);
    driver_root(facts, by_library, &mut weighing);
    host(facts, &mut weighing);
    weighing
}

fn lack(facts: &Facts) -> Option<Seen<Lack>> {
    engine::fault(facts, |fault| match fault {
        EngineFault::HookLacksLibrary(library) => Some(Lack::Library(library.clone())),
        EngineFault::DriverRootMissing => Some(Lack::Root),
        EngineFault::NoGpuRuntime(said) => Some(Lack::Runtime(said.clone())),
        EngineFault::PluginLacksDriver => Some(Lack::Plugin),
        _ => None,
    })
}

/// An engine that lives in a file system of its own.
fn enclosed(facts: &Facts, by_library: bool, weighing: &mut Weighing) {
    let Some(seen) = facts.sandbox.engine.enclosed.as_seen() else {
        weighing.needs(Need::EngineKind);
        return;
    };
    // In WSL the desktop product's engine shares the driver with the distribution.
    if machine::is_wsl(facts) {
        return;
    }
    let statement = format!("the engine comes as {}, in a file system of its own", seen.value);
    if by_library && engine::driver_works(facts).is_some() {
        weighing.confirms(statement, &seen.origin);
    } else {
        weighing.supports(Strong, statement, &seen.origin);
    }
}

/// `root = "/run/nvidia/driver"` is right only where the GPU operator's driver container runs.
fn driver_root(facts: &Facts, by_library: bool, weighing: &mut Weighing) {
    let Some(seen) = engine::setting(facts, "root") else { return };
    let root = seen.value.trim_matches('"');
    if root.is_empty() || root == "/" {
        return;
    }
    let statement = format!("the toolkit looks for the driver below {root}");
    if by_library && engine::driver_works(facts).is_some() {
        weighing.confirms(statement, &seen.origin);
    } else {
        weighing.supports(Strong, statement, &seen.origin);
    }
}

/// Where the host's driver stands.
fn host(facts: &Facts, weighing: &mut Weighing) {
    if let Some(origin) = engine::driver_works(facts) {
        weighing.supports(Strong, "outside the engine the driver works", &origin);
    } else if let Some(origin) = no_driver(facts) {
        weighing.objects(Strong, "no driver is loaded on the host either", &origin);
    } else if let Some(origin) = readings::module_loaded(facts) {
        weighing.supports(Moderate, "the driver is loaded on the host", &origin);
    } else {
        weighing.needs(Need::Nvml);
    }
    if let Observed::Seen(seen) = &facts.library.nvml {
        let statement = format!("the host has {}", seen.value.path);
        weighing.supports(Weak, statement, &seen.origin);
    }
}

fn no_driver(facts: &Facts) -> Option<Origin> {
    let absent = facts.module.nvrm.absent().cloned();
    absent
        .or_else(|| facts.module.loaded("nvidia").absent().cloned())
        .or_else(|| readings::nvml_failed_with(facts, readings::code::NVML_DRIVER_NOT_LOADED))
}

fn by_root(remedy: Remedy) -> Remedy {
    remedy.step_to(
        Place::Host,
        "nvidia-ctk config --set nvidia-container-cli.root=/ --in-place",
        "where the driver is installed on the host; with a driver container, start that first",
    )
}

fn remedy(facts: &Facts) -> Remedy {
    let lack = lack(facts).map(|seen| seen.value);
    let remedy = Remedy::new(Impact::RestartsService, "the engine and its containers");
    let enclosed = facts.sandbox.engine.enclosed.value().map(String::as_str);
    let remedy = match (lack, enclosed) {
        (_, Some("snap")) => remedy
            .step_to(Place::Host, "snap remove docker", "takes its containers and images along")
            .step_to(
                Place::Host,
                "apt-get install docker-ce docker-ce-cli containerd.io",
                "from Docker's own repository",
            ),
        (_, Some(_)) => remedy.step_to(
            Place::Host,
            "docker context use default",
            "the engine that runs on the host itself, installed from Docker's repository",
        ),
        (Some(Lack::Root), None) => by_root(remedy),
        (Some(Lack::Library(_)), None) if engine::setting(facts, "root").is_some() => {
            by_root(remedy)
        }
        (Some(Lack::Plugin), None) => remedy.step_to(
            Place::Host,
            "nvidia-ctk runtime configure --runtime=containerd --set-as-default && systemctl restart containerd",
            "on the node; docker and cri-o alike by their names",
        ),
        (Some(Lack::Runtime(_)), None) => remedy.step_to(
            Place::Host,
            "apt-get install nvidia-container-toolkit",
            "from NVIDIA's repository; dnf install on RHEL and its kin",
        ),
        (Some(Lack::Library(_)) | None, None) => remedy.step_to(
            Place::Host,
            "ldconfig && ldconfig -p | grep libnvidia-ml",
            "what the hook looks up; if it is there, ask where the engine really runs: ls -l /proc/$(pidof dockerd)/exe",
        ),
    };
    remedy
        .step_to(
            Place::Host,
            "nvidia-ctk runtime configure --runtime=docker && systemctl restart docker",
            "tells the engine of NVIDIA's runtime",
        )
        .undo("remove the runtime's entry from /etc/docker/daemon.json and restart the engine")
        .verify("docker run --rm --gpus all IMAGE nvidia-smi -L lists the GPUs")
        .will_not_help("reinstalling the driver: it works outside the engine")
        .will_not_help("another image: the hook fails before the image is looked at")
}
