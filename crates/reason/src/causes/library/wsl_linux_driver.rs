//! `library.wsl-linux-driver`

use facts::model::cuda::Stage;
use facts::model::library::{LibraryFile, LibraryKind};
use facts::model::process::Lever;
use facts::{Facts, Layer};

use super::{mapped, path_holds};
use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::machine;
use crate::need::Need;
use crate::readings::{self, code};
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "library.wsl-linux-driver",
    layer: Layer::Library,
    claim: "a Linux driver was installed inside WSL and hides the one that WSL brings",
    explanation: "Under WSL the driver is the one of Windows; its libcuda is mounted at \
        /usr/lib/wsl/lib and talks to /dev/dxg. A package of a Linux driver brings another \
        libcuda, which looks for /dev/nvidiactl, finds none and answers 100. It comes with \
        nvidia-driver-*, libnvidia-compute-* or cuda-drivers, and with the metapackage cuda, which \
        pulls them in; the toolkit alone (cuda-toolkit-*) is right. nvidia-smi from \
        /usr/lib/wsl/lib goes on working.",
    explains: &[
        SymptomId::CudaInitFails,
        SymptomId::NvmlFails,
        SymptomId::DriverAbsent,
        SymptomId::FrameworkNoGpu,
    ],
    specializes: &["library.bundled-driver", "library.missing", "module.not-loaded"],
    look_alikes: &[
        LookAlike {
            id: "pci.no-gpu",
            tell: "nothing of WSL is there; under WSL no PCI device is normal",
        },
        LookAlike {
            id: "node.missing",
            tell: "the machine has a kernel module of its own, and nodes are what lacks",
        },
        LookAlike { id: "library.stub", tell: "cuInit answers 34, from a stubs folder" },
    ],
    references: &[
        "https://github.com/rapidsai/cuml/issues/6218",
        "https://github.com/Genesis-Embodied-AI/genesis-world/issues/114",
        "https://github.com/numba/numba/pull/7106",
        "https://docs.nvidia.com/cuda/wsl-user-guide/index.html",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let Some(wsl) = facts.host.wsl.as_seen().filter(|seen| seen.value) else {
        return Weighing::not_applicable();
    };
    let mut weighing = Weighing::new();
    if let Some(origin) = readings::cuda_works(facts) {
        weighing.rules_out("cuInit answers 0", origin);
        return weighing;
    }
    match mapped(facts) {
        Some(file) if is_wsl(file) => {
            weighing.rules_out(format!("libcuda comes from {}", file.path), &file.origin);
            return weighing;
        }
        Some(file) if file.kind == LibraryKind::Driver => by_library(facts, file, &mut weighing),
        Some(_) => {}
        None => {
            weighing.needs(Need::LibcudaMapped);
        }
    }
    traces(facts, &mut weighing);
    let failed = facts
        .cuda
        .plain()
        .find(|trial| trial.failure_code() == Some(code::NO_DEVICE) && trial.stage <= Stage::Count);
    if let Some(trial) = failed {
        let statement = "cuInit answers 100, as the Linux libcuda does where it finds no node";
        weighing.supports(Moderate, statement, &trial.origin);
    }
    if weighing.support.is_empty() {
        return weighing;
    }
    weighing.supports(Weak, "the machine is WSL", &wsl.origin);
    if let Some(origin) = readings::nvml_works(facts) {
        weighing.supports(
            Weak,
            "nvidia-smi works, so that the driver of Windows is there",
            &origin,
        );
    } else if let Some((number, origin)) = readings::nvml_failure(facts) {
        let strength = if facts.library.driver_packages.is_empty() { Moderate } else { Weak };
        weighing.objects(strength, format!("NVML fails as well, with {number}"), &origin);
    }
    weighing
}

fn is_wsl(file: &LibraryFile) -> bool {
    file.kind == LibraryKind::Wsl || path_holds(file, "/wsl/")
}

/// A libcuda of the distribution in front of WSL's. A container under WSL has it mounted elsewhere.
fn by_library(facts: &Facts, file: &LibraryFile, weighing: &mut Weighing) {
    let statement = format!("libcuda comes from {}, and not from /usr/lib/wsl", file.path);
    let failed = readings::init_failed_with(facts, code::NO_DEVICE).is_some();
    if failed && !machine::in_container(facts) {
        weighing.confirms(statement, &file.origin);
    } else {
        weighing.supports(Strong, statement, &file.origin);
    }
}

/// Packages of a Linux driver, and what happens with WSL's folder in front.
fn traces(facts: &Facts, weighing: &mut Weighing) {
    let driver =
        facts.library.driver_packages.iter().find(|seen| !seen.value.starts_with("cuda-compat"));
    if let Some(package) = driver {
        let statement = format!("{} is installed inside WSL", package.value);
        weighing.supports(Strong, statement, &package.origin);
    } else {
        weighing.needs(Need::DriverPackages);
    }
    let trial = facts.cuda.trials.iter().find(|trial| {
        trial.ok() && trial.under.as_deref().is_some_and(|under| under.contains("/usr/lib/wsl"))
    });
    let told = facts.process.tried(|lever| lever == Lever::WslLibraries);
    if let Some(trial) = trial {
        weighing.supports(Strong, "CUDA starts with /usr/lib/wsl/lib in front", &trial.origin);
    } else if let Some((attempt, origin)) = told {
        if attempt.helped {
            weighing.supports(Strong, "CUDA starts with WSL's own library", origin);
        } else {
            weighing.objects(Moderate, "WSL's own library does not help", origin);
        }
    }
}

fn remedy(_: &Facts) -> Remedy {
    Remedy::new(Impact::RestartsProcess, "the programs that use the GPU in this distribution")
        .step_to(
            Place::Here,
            "apt purge 'nvidia-driver-*' 'libnvidia-compute-*' 'nvidia-utils-*' 'cuda-drivers*' && apt autoremove",
            "takes the Linux driver out; the driver of Windows is the only one that WSL needs",
        )
        .step_to(Place::Here, "ldconfig && ldconfig -p | grep libcuda.so.1", "must show /usr/lib/wsl/lib alone")
        .step_to(
            Place::Here,
            "apt install cuda-toolkit-12-8",
            "the toolkit by itself, where it is needed: not the package cuda",
        )
        .step_to(
            Place::Program,
            "export LD_LIBRARY_PATH=/usr/lib/wsl/lib",
            "until then, for one program",
        )
        .undo("apt install of the purged packages")
        .verify("cuInit answers 0 without LD_LIBRARY_PATH")
        .will_not_help("another driver inside WSL, whatever its version")
        .will_not_help("reinstalling the driver of Windows: nvidia-smi shows that it works")
}
