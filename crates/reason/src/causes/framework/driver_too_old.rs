//! `framework.driver-too-old`

use facts::model::framework::FrameworkMessage;
use facts::model::process::Lever;
use facts::version::CudaVersion;
use facts::{Facts, Layer, Origin};

use super::{beneath, framework_cuda};
use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::machine::{self, Distribution};
use crate::need::Need;
use crate::readings::{self, code};
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "framework.driver-too-old",
    layer: Layer::Framework,
    claim: "the driver is older than the CUDA runtime of the framework needs",
    explanation: "Each driver supports CUDA up to a version of its own, and a runtime of a newer \
        major version refuses to work with it: error 35, or \"the NVIDIA driver on your system is \
        too old (found version 11040)\", where the number is that highest CUDA version times 1000 \
        and neither the driver's nor the toolkit's. Within one major version any driver will do \
        (12.8 runs on a driver for 12.2), PTX aside. The wheel brings its runtime along, so a \
        toolkit on disk plays no part; and cuInit, which knows nothing of runtimes, answers 0.",
    explains: &[
        SymptomId::FrameworkNoGpu,
        SymptomId::FrameworkNoCode,
        SymptomId::CudaInitFails,
        SymptomId::CudaContextFails,
    ],
    specializes: &[],
    look_alikes: &[
        LookAlike {
            id: "framework.ptx-too-new",
            tell: "error 222 at the first kernel, with a driver of the same CUDA major version",
        },
        LookAlike { id: "framework.cpu-build", tell: "torch.version.cuda is None" },
        LookAlike {
            id: "module.version-skew",
            tell: "cuInit answers 803 or NVML 18: two parts of the driver differ from each other",
        },
    ],
    references: &[
        "https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html",
        "https://github.com/pytorch/pytorch/issues/25581",
        "https://github.com/nagadomi/nunif/issues/702",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    messages(facts, &mut weighing);
    if let Some(trial) = facts.cuda.plain().find(|trial| {
        // PyTorch words 35 in two ways, and this one says that there was no driver to ask.
        let none = trial.origin.excerpt.contains("Found no NVIDIA driver");
        trial.failure_code() == Some(code::INSUFFICIENT_DRIVER) && !none
    }) {
        let statement = "error 35: the driver is insufficient for the runtime";
        weighing.supports(Strong, statement, &trial.origin);
    }
    versions(facts, &mut weighing);
    if !weighing.support.is_empty()
        && let Some((number, trial)) = beneath(facts)
    {
        let statement = format!("cuInit answers {number}, and it fails beneath any runtime");
        weighing.objects(Strong, statement, &trial.origin);
    }
    if let Some(origin) = facts.process.helped_by(Lever::DriverLibrary)
        && !weighing.support.is_empty()
    {
        let statement = "it works once the driver's own libcuda is put in front";
        weighing.objects(Strong, statement, origin);
    }
    weighing
}

fn messages(facts: &Facts, weighing: &mut Weighing) {
    for (message, origin) in &facts.framework.messages {
        if let FrameworkMessage::UndefinedSymbol { library, symbol } = message {
            lacks_call(library, symbol, origin, weighing);
        }
        let FrameworkMessage::DriverTooOld { found } = message else {
            continue;
        };
        let statement = match found {
            Some(found) => {
                format!("the framework calls the driver too old; it found support for CUDA {found}")
            }
            None => "the framework calls the driver too old".to_owned(),
        };
        weighing.confirms(statement, origin);
    }
}

/// A program that asks libcuda for a call by name, and a libcuda that does not have it yet.
fn lacks_call(library: &str, symbol: &str, origin: &Origin, weighing: &mut Weighing) {
    if super::is_drivers(library) {
        let file = super::file_name(library);
        let statement = format!("{file} has no {symbol}, which the program asks for");
        weighing.supports(Strong, statement, origin);
    }
}

/// The CUDA version that a driver must support at least for this runtime: any of the same major
/// version from 11 on, the very version before.
fn required(runtime: CudaVersion) -> CudaVersion {
    let minor = if runtime.major >= 11 { 0 } else { runtime.minor };
    CudaVersion { major: runtime.major, minor }
}

fn versions(facts: &Facts, weighing: &mut Weighing) {
    let framework = framework_cuda(facts);
    let driver = readings::driver_cuda(facts);
    let (Some((name, runtime)), Some(driver)) = (&framework, &driver) else {
        let asked_about = framework.is_some() || !weighing.support.is_empty();
        if asked_about && framework.is_none() {
            weighing.needs(Need::FrameworkCuda);
        }
        if asked_about && driver.is_none() {
            weighing.needs(Need::DriverCuda);
        }
        return;
    };
    let (needed, offered) = (runtime.value, driver.value);
    if needed <= offered {
        let statement = format!(
            "{needed} <= {offered}: {name} needs CUDA {needed}, the driver supports {offered}"
        );
        weighing.rules_out(statement, &driver.origin);
    } else if required(needed) <= offered {
        let statement = format!(
            "{name}'s CUDA {needed} runs on a driver for {offered}: the major version is the same"
        );
        weighing.rules_out(statement, &driver.origin);
    } else {
        let statement = format!("the driver supports CUDA {offered}, and {name} needs {needed}");
        weighing.supports(Strong, statement, &driver.origin);
        weighing.supports(Weak, format!("{name} is built for CUDA {needed}"), &runtime.origin);
        if let Some(seen) = facts.framework.torch_available.as_seen().filter(|seen| !seen.value) {
            weighing.supports(Moderate, "torch.cuda.is_available() is False", &seen.origin);
        }
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let runtime = framework_cuda(facts).map(|(_, seen)| seen.value);
    let minimum = runtime.and_then(|cuda| nvabi::toolkit::minimum_driver(cuda.major, cuda.minor));
    let place = machine::kernel_place(facts);
    let wanted = minimum.map_or(String::new(), |minimum| format!("{minimum} or newer"));
    let branch = minimum.and_then(|minimum| minimum.split('.').next()).unwrap_or("BRANCH");
    let install = match machine::distribution(facts) {
        Distribution::Ubuntu => format!("apt-get install nvidia-driver-{branch}"),
        Distribution::Fedora | Distribution::Rhel => "dnf install nvidia-open".to_owned(),
        Distribution::Suse => "zypper install nvidia-open".to_owned(),
        Distribution::Arch => "pacman -Syu nvidia-open".to_owned(),
        Distribution::Debian
        | Distribution::Proxmox
        | Distribution::Nixos
        | Distribution::Other => {
            "install a newer driver from its present source, the same as before".to_owned()
        }
    };
    let mut remedy = Remedy::new(
        Impact::Reboots,
        "with a newer driver every GPU program; with another wheel only this one",
    );
    if let Some(tag) = wheel_tag(facts) {
        remedy = remedy.step_to(
            Place::Program,
            format!("pip install --force-reinstall torch --index-url https://download.pytorch.org/whl/{tag}"),
            "a build for the CUDA version that this driver supports; stops nothing else",
        );
    }
    remedy
        .step_to(place, install, "or a newer driver")
        .step_to(place, "reboot", "loads its module")
        .undo("install the former wheel or driver again")
        .verify(if wanted.is_empty() {
            "python3 -c 'import torch; print(torch.cuda.is_available())' prints True".to_owned()
        } else {
            format!("nvidia-smi shows driver {wanted}, and torch.cuda.is_available() is True")
        })
        .will_not_help(
            "another CUDA toolkit: the wheel brings its own runtime, and only the driver counts",
        )
        .will_not_help("driver packages inside the container: the module is the host's")
}

/// The newest wheel index of PyTorch that the driver's CUDA version carries.
fn wheel_tag(facts: &Facts) -> Option<&'static str> {
    const INDEXES: [(u32, u32, &str); 4] =
        [(13, 0, "cu130"), (12, 6, "cu126"), (12, 1, "cu121"), (11, 8, "cu118")];
    let offered = readings::driver_cuda(facts).map(|seen| seen.value).or_else(|| {
        facts.framework.messages.iter().find_map(|(message, _)| match message {
            FrameworkMessage::DriverTooOld { found } => *found,
            _ => None,
        })
    })?;
    let fits = |(major, minor, _): &&(u32, u32, &str)| {
        required(CudaVersion { major: *major, minor: *minor }) <= offered
    };
    INDEXES.iter().find(fits).map(|(_, _, tag)| *tag)
}
