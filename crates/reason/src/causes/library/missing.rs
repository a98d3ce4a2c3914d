//! `library.missing`

use facts::model::cuda::{Stage, Trial};
use facts::model::host::ContainerKind;
use facts::model::library::{LibraryFile, LibraryKind};
use facts::model::process::Lever;
use facts::wire::Outcome;
use facts::{Facts, Layer, Observed, Origin};

use super::{folder, right_one};
use crate::cause::{Cause, LookAlike};
use crate::causes::sandbox;
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::machine;
use crate::need::Need;
use crate::readings::{self, code};
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "library.missing",
    layer: Layer::Library,
    claim: "libcuda.so.1 or libnvidia-ml.so.1 cannot be loaded",
    explanation: "Programs reach the driver through two libraries that belong to the driver and not \
        to the toolkit: libcuda.so.1 for CUDA and libnvidia-ml.so.1 for nvidia-smi. They are \
        packaged apart from the kernel module, so that the module can run without them; a 32-bit \
        copy alone gives \"wrong ELF class\"; and a container gets each of them only when its \
        capability (compute, utility) was requested. A copy that ends too early ends the program \
        with SIGBUS as it is loaded. The module and the nodes are fine meanwhile.",
    explains: &[
        SymptomId::DriverAbsent,
        SymptomId::CudaInitFails,
        SymptomId::CudaInitCrashes,
        SymptomId::NvmlFails,
        SymptomId::FrameworkNoGpu,
    ],
    specializes: &[],
    look_alikes: &[
        LookAlike {
            id: "sandbox.gpu-not-requested",
            tell: "in a container the device nodes are absent as well",
        },
        LookAlike { id: "module.not-loaded", tell: "no driver is loaded either" },
        LookAlike { id: "library.stub", tell: "a libcuda is loaded, from a stubs folder" },
    ],
    references: &[
        "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html#driver-capabilities",
        "https://man7.org/linux/man-pages/man8/ld.so.8.html",
        "https://docs.nvidia.com/deploy/nvml-api/nvml-api-reference.html",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    let cuda = Sought::cuda(facts);
    let nvml = Sought::nvml(facts);
    for sought in [&cuda, &nvml] {
        weigh_library(facts, sought, &mut weighing);
    }
    ends_early(facts, &mut weighing);
    if let Some(origin) = not_found_by_nvml(facts) {
        weighing.supports(Strong, "NVML answers 12: its library was not found", &origin);
    }
    if let Some(origin) = facts.library.wsl_lacks_cuda.as_ref().filter(|_| cuda.missed) {
        let statement = "WSL's folder has no libcuda, which the driver of Windows puts there";
        weighing.supports(Strong, statement, origin);
        if let Some(wsl) = facts.host.wsl.as_seen().filter(|seen| seen.value) {
            let statement = "the machine is WSL, which has a driver nowhere else";
            weighing.supports(Moderate, statement, &wsl.origin);
        }
    }
    found_by_hand(facts, &cuda, &mut weighing);
    if weighing.support.is_empty() {
        loaded(facts, &mut weighing);
        return weighing;
    }
    capabilities(facts, &cuda, &nvml, &mut weighing);
    elsewhere(facts, &cuda, &mut weighing);
    neighbours(facts, &mut weighing);
    weighing
}

/// A library that programs look for.
struct Sought<'a> {
    soname: &'static str,
    file: &'a Observed<LibraryFile>,
    error: &'a Observed<String>,
    /// The word in NVIDIA_DRIVER_CAPABILITIES that brings it into a container.
    capability: &'static str,
    /// Whether its absence from where the loader looks is to be taken at its word: not when it was
    /// seen to answer, from wherever it came.
    missed: bool,
}

impl<'a> Sought<'a> {
    fn cuda(facts: &'a Facts) -> Sought<'a> {
        Sought {
            soname: "libcuda.so.1",
            file: &facts.library.cuda,
            error: &facts.library.cuda_load_error,
            capability: "compute",
            missed: cuda_answered(facts).is_none(),
        }
    }

    fn nvml(facts: &'a Facts) -> Sought<'a> {
        Sought {
            soname: "libnvidia-ml.so.1",
            file: &facts.library.nvml,
            error: &facts.library.nvml_load_error,
            capability: "utility",
            missed: not_found_by_nvml(facts).is_some(),
        }
    }

    fn lacks(&self) -> bool {
        self.error.is_seen() || (self.missed && self.file.absent().is_some())
    }
}

fn weigh_library(facts: &Facts, sought: &Sought, weighing: &mut Weighing) {
    let soname = sought.soname;
    if let Observed::Seen(seen) = sought.error {
        let statement = format!("loading {soname} fails: {}", seen.value);
        if driver_in_reach(facts) && speaks_of_the_file(&seen.value) {
            weighing.confirms(statement, &seen.origin);
        } else {
            weighing.supports(Strong, statement, &seen.origin);
        }
    } else if let (Observed::Absent(origin), true) = (sought.file, sought.missed) {
        let statement = format!("the loader finds no {soname}");
        weighing.supports(Strong, statement, origin);
    }
    if let Observed::Seen(seen) = sought.file
        && seen.value.kind == LibraryKind::Broken
    {
        let statement = format!("{} is no library that this machine can load", seen.value.path);
        weighing.supports(Strong, statement, &seen.origin);
    }
}

/// Mapping a file and reading beyond its end is SIGBUS: the library is shorter than its own tables
/// say, or its disk cannot be read.
fn ends_early(facts: &Facts, weighing: &mut Weighing) {
    const SIGBUS: i32 = 7;
    let crashed = facts.probes.iter().find_map(|run| {
        let (call, on) = run.in_flight.as_ref()?;
        let in_load = run.outcome == Outcome::Crashed && call == "load";
        (in_load && run.code == Some(SIGBUS)).then_some((run, on.as_deref()))
    });
    if let Some((run, on)) = crashed {
        let name = on.unwrap_or("the library");
        let statement =
            format!("loading {name} ends in SIGBUS: the file ends before its own tables do");
        weighing.confirms(statement, &run.origin);
    }
}

/// 35 is also what the runtime library says by itself where it finds no libcuda. Then it works once
/// the driver's own is put in front.
fn found_by_hand(facts: &Facts, cuda: &Sought, weighing: &mut Weighing) {
    let told = facts.process.helped_by(Lever::DriverLibrary);
    let Some(origin) = told.filter(|_| cuda.missed) else { return };
    if let Some(trial) = facts.cuda.init_failures(code::INSUFFICIENT_DRIVER).next() {
        let statement = "35 is what the runtime says where it finds no libcuda";
        weighing.supports(Moderate, statement, &trial.origin);
        let statement = "it works once the driver's libcuda is put in front";
        weighing.supports(Strong, statement, origin);
    }
}

/// A driver is loaded and its nodes are within reach: a library is what lacks. In a container
/// without nodes more was left out than a library.
fn driver_in_reach(facts: &Facts) -> bool {
    let outside = facts.host.container.value() == Some(&ContainerKind::None);
    let given = facts.node.at("/dev/nvidiactl").is_seen();
    readings::module_loaded(facts).is_some() && (outside || given)
}

/// A load error that names something else than an absent or foreign file, such as an address-space
/// limit, belongs to another cause.
fn speaks_of_the_file(error: &str) -> bool {
    let own =
        ["cannot open shared object", "wrong ELF class", "not found", "invalid ELF", "too short"];
    own.iter().any(|words| error.contains(words))
}

/// What was not asked for is not put into the container.
fn capabilities(facts: &Facts, cuda: &Sought, nvml: &Sought, weighing: &mut Weighing) {
    let Observed::Seen(seen) = facts.process.env("NVIDIA_DRIVER_CAPABILITIES") else {
        return;
    };
    let asked: Vec<&str> = seen.value.split(',').map(str::trim).collect();
    for sought in [cuda, nvml] {
        let granted = asked.contains(&"all") || asked.contains(&sought.capability);
        if sought.lacks() && !granted {
            let statement = format!(
                "NVIDIA_DRIVER_CAPABILITIES={} leaves out {}, which brings {}",
                seen.value, sought.capability, sought.soname
            );
            weighing.supports(Strong, statement, &seen.origin);
        }
    }
}

fn elsewhere(facts: &Facts, cuda: &Sought, weighing: &mut Weighing) {
    if !cuda.lacks() {
        return;
    }
    if let Some(file) = right_one(facts) {
        let statement =
            format!("it lies in {}, where the loader does not look", folder(&file.path));
        weighing.supports(Moderate, statement, &file.origin);
    }
}

fn neighbours(facts: &Facts, weighing: &mut Weighing) {
    // There the driver is Windows', and no module of the kernel's.
    if machine::is_wsl(facts) {
        return;
    }
    if let Some(origin) = readings::module_loaded(facts) {
        weighing.supports(Moderate, "the kernel module is loaded", &origin);
    } else if let Some(origin) = facts.module.nvrm.absent() {
        weighing.objects(Moderate, "no driver is loaded either", origin);
    } else {
        weighing.needs(Need::ModuleVersion);
    }
    if sandbox::container(facts).is_some() {
        match facts.node.at("/dev/nvidiactl") {
            Observed::Seen(_) => {}
            Observed::Absent(origin) => {
                let statement = "the nodes are absent as well: this container was given nothing";
                weighing.objects(Strong, statement, &origin);
            }
            Observed::Denied(..) | Observed::Unknown(_) => {
                weighing.needs(Need::NodeListing);
            }
        }
    }
    if let Some(origin) = facts.library.smi.absent() {
        weighing.supports(Weak, "nvidia-smi is not installed here", origin);
    }
}

/// What shows that the libraries were loaded: anything that they answered.
fn loaded(facts: &Facts, weighing: &mut Weighing) {
    if let Some(origin) = cuda_answered(facts) {
        weighing.rules_out("libcuda.so.1 was loaded and answered", &origin);
    } else if let Some(seen) = facts.library.cuda.as_seen() {
        let statement = format!("libcuda.so.1 is found: {}", seen.value.path);
        weighing.rules_out(statement, &seen.origin);
    } else {
        weighing.needs(Need::LibcudaMapped);
    }
}

fn not_found_by_nvml(facts: &Facts) -> Option<Origin> {
    readings::nvml_failed_with(facts, code::NVML_LIBRARY_NOT_FOUND)
}

/// The runtime library gives 35 by itself where it finds no libcuda, so that only cuInit's own 35 is
/// an answer of it.
fn cuda_answered(facts: &Facts) -> Option<Origin> {
    let answers = |trial: &&Trial| {
        let by_runtime =
            trial.what != "cuInit" && trial.failure_code() == Some(code::INSUFFICIENT_DRIVER);
        trial.stage >= Stage::Init && !by_runtime
    };
    let trial = facts.cuda.plain().find(answers)?;
    Some(trial.origin.clone())
}

fn remedy(facts: &Facts) -> Remedy {
    let container = sandbox::container(facts).is_some() && !sandbox::in_lxc(facts);
    let remedy = match (container, machine::is_wsl(facts)) {
        (true, _) => in_container(facts),
        (false, true) => in_wsl(),
        (false, false) => on_the_machine(facts),
    };
    remedy
        .verify(
            "python3 -c 'import ctypes; print(ctypes.CDLL(\"libcuda.so.1\").cuInit(0))' prints 0",
        )
        .will_not_help("installing the CUDA toolkit: its libcuda is only a stub for the linker")
        .will_not_help("copying the library from another machine: its version must be the module's")
}

fn in_container(facts: &Facts) -> Remedy {
    let remedy = sandbox::recreate();
    let narrow = facts.process.env.contains_key("NVIDIA_DRIVER_CAPABILITIES");
    let remedy = if narrow {
        remedy.step_to(
            Place::Engine,
            "docker run -e NVIDIA_DRIVER_CAPABILITIES=compute,utility --gpus all …",
            "compute brings libcuda, utility brings libnvidia-ml and nvidia-smi",
        )
    } else {
        sandbox::request_gpus(facts, remedy)
    };
    remedy.undo("start the container with the former options")
}

fn in_wsl() -> Remedy {
    Remedy::new(Impact::RestartsProcess, "every distribution that runs in WSL")
        .step_to(
            Place::Host,
            "wsl.exe --update; wsl.exe --shutdown",
            "in Windows; WSL mounts the libraries of the driver anew as it starts",
        )
        .step_to(
            Place::Here,
            "ls -l /usr/lib/wsl/lib/libcuda.so.1 /usr/lib/wsl/drivers/nv*/libcuda*",
            "the first must be there; the second is where the driver of Windows keeps it",
        )
        .step_to(
            Place::Host,
            "install NVIDIA's driver for Windows anew, 471 or later, with the GPU connected",
            "where neither is there",
        )
        .undo("nothing was taken away")
        .will_not_help("a driver package inside WSL: its libcuda looks for nodes that WSL lacks")
}

fn on_the_machine(facts: &Facts) -> Remedy {
    let remedy = Remedy::new(Impact::RestartsProcess, "nothing but the program in question");
    if let Some(file) = right_one(facts) {
        let folder = folder(&file.path);
        return remedy
            .step_to(
                Place::Here,
                format!("echo {folder} > /etc/ld.so.conf.d/nvidia-driver.conf && ldconfig"),
                "as root",
            )
            .step_to(
                Place::Program,
                format!("export LD_LIBRARY_PATH={folder}"),
                "without root, for one program",
            )
            .undo("rm /etc/ld.so.conf.d/nvidia-driver.conf && ldconfig");
    }
    let version = readings::driver_version(facts);
    let branch =
        version.as_ref().map_or("BRANCH".to_owned(), |seen| seen.value.branch().to_string());
    let exact = version.map_or("the module's version".to_owned(), |seen| seen.value.to_string());
    let remedy = remedy
        .step_to(Place::Here, format!("apt-get install libnvidia-compute-{branch}"), "Ubuntu")
        .step_to(Place::Here, "apt-get install libcuda1 libnvidia-ml1", "Debian")
        .step_to(
            Place::Here,
            "dnf install nvidia-driver-cuda-libs nvidia-driver-cuda",
            "RHEL and its kin",
        );
    let remedy = if sandbox::in_lxc(facts) {
        remedy.step_to(
            Place::Container,
            format!("sh NVIDIA-Linux-x86_64-{exact}.run --no-kernel-modules"),
            "an LXC container has libraries of its own, and the host's module",
        )
    } else {
        remedy
    };
    remedy.undo(format!("remove the package again; its version must be {exact}"))
}
