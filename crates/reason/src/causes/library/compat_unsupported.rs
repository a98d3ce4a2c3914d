//! `library.compat-unsupported`

use facts::model::library::{LibraryFile, LibraryKind};
use facts::{Facts, Layer, Origin, Seen};

use super::{folder, mapped, path_holds, right_one, search_path_without, with_own_library};
use crate::cause::{Cause, LookAlike};
use crate::causes::sandbox;
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::need::Need;
use crate::readings::{self, code};
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "library.compat-unsupported",
    layer: Layer::Library,
    claim: "the forward-compatibility libcuda is used with a GPU or driver that may not use it",
    explanation: "Images and toolkits carry a newer libcuda in a compat folder, which lets \
        data-centre GPUs run a newer CUDA on an older driver. Other GPUs may not use it: cuInit \
        then finds that library newer than the module and answers 804. Driver branches between the \
        supported ones (530 or 545, say) give 803 instead. NVML is another library and goes on \
        answering, and nvidia-smi may even show the compat library's CUDA version.",
    explains: &[SymptomId::CudaInitFails, SymptomId::FrameworkNoGpu],
    specializes: &["module.version-skew", "library.bundled-driver"],
    look_alikes: &[
        LookAlike {
            id: "library.compat-shadows",
            tell: "cuInit answers 803, and the compat library is older than the module",
        },
        LookAlike {
            id: "module.version-skew",
            tell: "no compat folder is in play, and NVML answers 18 too: the libraries were upgraded under a loaded module",
        },
        LookAlike {
            id: "framework.driver-too-old",
            tell: "cuInit answers 0, and the CUDA runtime 35",
        },
    ],
    references: &[
        "https://github.com/NVIDIA/nvidia-docker/issues/1515",
        "https://github.com/DeepVAC/TorchPod/issues/43",
        "https://docs.nvidia.com/deploy/cuda-compatibility/forward-compatibility.html",
        "https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    if let Some(trial) = readings::init_failed_with(facts, code::COMPAT_NOT_SUPPORTED) {
        let statement =
            "cuInit answers 804: forward compatibility was attempted where it is not supported";
        weighing.supports(Strong, statement, &trial.origin);
        by_library(facts, &mut weighing);
        by_experiment(facts, &mut weighing);
        by_class(facts, &mut weighing);
        surroundings(facts, &mut weighing);
    } else if let Some(file) = mapped(facts).filter(|file| is_compat(file)) {
        otherwise(facts, file, &mut weighing);
    }
    weighing
}

/// The driver's own library in its place decides.
fn by_experiment(facts: &Facts, weighing: &mut Weighing) {
    match with_own_library(facts) {
        Some((true, origin)) => {
            weighing.supports(Strong, "it works with the driver's own libcuda", origin);
        }
        Some((false, origin)) => {
            weighing.rules_out("the driver's own libcuda fails as well", origin);
        }
        None => {}
    }
}

fn is_compat(file: &LibraryFile) -> bool {
    file.kind == LibraryKind::Compat || path_holds(file, "/compat")
}

/// The compat library together with 804 is the case; another library makes it a plain difference
/// of releases, for which libcuda has the same answer.
fn by_library(facts: &Facts, weighing: &mut Weighing) {
    let Some(file) = mapped(facts) else {
        weighing.needs(Need::LibcudaMapped);
        return;
    };
    let module = readings::driver_version(facts);
    if is_compat(file) {
        let statement = match (&file.version, module) {
            (Some(version), Some(module)) if !version.same_release(&module.value) => {
                format!(
                    "libcuda is {version} from {}, the module {}",
                    folder(&file.path),
                    module.value
                )
            }
            _ => format!("libcuda comes from {}", file.path),
        };
        weighing.confirms(statement, &file.origin);
    } else if surely_mapped(&file.origin) {
        let statement = format!("libcuda comes from {}, which is no compat folder", file.path);
        weighing.rules_out(statement, &file.origin);
    } else {
        let statement =
            format!("the loader's cache leads to {}, which is no compat folder", file.path);
        weighing.objects(Moderate, statement, &file.origin);
    }
}

/// What a process has mapped is certain; what a cache leads to may be overridden.
fn surely_mapped(origin: &Origin) -> bool {
    origin.item.starts_with("probe:") || origin.item.ends_with("/maps")
}

/// GeForce and TITAN are never supported, data-centre GPUs always are.
fn by_class(facts: &Facts, weighing: &mut Weighing) {
    let Some(name) = gpu_name(facts) else { return };
    if is_geforce(&name.value) {
        let statement = format!("{} is no data-centre GPU", name.value);
        weighing.supports(Moderate, statement, &name.origin);
    }
}

fn gpu_name(facts: &Facts) -> Option<Seen<String>> {
    let board = readings::boards(facts).into_iter().next();
    let board = board.map(|board| Seen::new(board.value.name, board.origin));
    board.or_else(|| facts.host.gpu_names.first().cloned())
}

/// GeForce by its name, or by the numbers that only GeForce has (`RTX 3090`, `GTX 1650`).
fn is_geforce(name: &str) -> bool {
    let lower = name.to_lowercase();
    let number = lower.split([' ', '-']).find_map(|word| {
        let digits: String = word.chars().take_while(char::is_ascii_digit).collect();
        (digits.len() == 4).then_some(digits)
    });
    let consumer = number.is_some_and(|digits| {
        lower.contains("gtx")
            || lower.contains("rtx")
                && matches!(digits.get(1..3), Some("05" | "06" | "07" | "08" | "09"))
    });
    lower.contains("geforce") || lower.contains("titan") || consumer
}

fn surroundings(facts: &Facts, weighing: &mut Weighing) {
    if let Some(seen) =
        facts.process.env.get("LD_LIBRARY_PATH").filter(|seen| seen.value.contains("/compat"))
    {
        weighing.supports(Moderate, "LD_LIBRARY_PATH names a compat folder", &seen.origin);
    }
    if let Some(file) = facts.library.others.iter().find(|file| is_compat(file)) {
        weighing.supports(
            Moderate,
            format!("a compat libcuda lies in {}", folder(&file.path)),
            &file.origin,
        );
    }
    if let Some(package) =
        facts.library.driver_packages.iter().find(|seen| seen.value.starts_with("cuda-compat"))
    {
        weighing.supports(
            Moderate,
            format!("the package {} is installed", package.value),
            &package.origin,
        );
    }
    shown_cuda(facts, weighing);
    if let Some(origin) = readings::nvml_failed_with(facts, code::NVML_VERSION_MISMATCH) {
        let statement = "NVML answers 18 as well, and it has no compat library";
        weighing.objects(Strong, statement, &origin);
    } else if let Some(origin) = readings::nvml_works(facts) {
        weighing.supports(
            Weak,
            "NVML answers, so that the driver's own libraries fit the module",
            &origin,
        );
    }
    let cured = facts.cuda.trials.iter().find(|trial| {
        let under = trial.under.as_deref().unwrap_or_default();
        trial.ok() && (under.contains("LD_LIBRARY_PATH") || under.contains("compat"))
    });
    if let Some(trial) = cured {
        weighing.supports(Strong, "CUDA starts without the compat folder in front", &trial.origin);
    }
}

/// nvidia-smi asks libcuda for the CUDA version that it shows.
fn shown_cuda(facts: &Facts, weighing: &mut Weighing) {
    let (Some(shown), Some(driver)) =
        (facts.nvml.cuda_version.as_seen(), readings::driver_version(facts))
    else {
        return;
    };
    let Some((major, minor)) = nvabi::branch::cuda_version(driver.value.branch()) else { return };
    if (shown.value.major, shown.value.minor) > (major, minor) {
        let statement = format!(
            "nvidia-smi shows CUDA {}, and driver {} has {major}.{minor}: another libcuda is in front",
            shown.value, driver.value
        );
        weighing.supports(Moderate, statement, &shown.origin);
    }
}

/// No 804, though the compat library is the one that is loaded.
fn otherwise(facts: &Facts, file: &LibraryFile, weighing: &mut Weighing) {
    let module = readings::driver_version(facts);
    let newer = match (&file.version, &module) {
        (Some(version), Some(module)) => version > &module.value,
        _ => false,
    };
    if let Some(origin) = readings::cuda_works(facts) {
        weighing.rules_out("cuInit answers 0 with the compat library", origin);
    } else if let Some(trial) = readings::init_failed_with(facts, code::DRIVER_MISMATCH) {
        if let (true, Some(version), Some(module)) = (newer, &file.version, module) {
            let statement = format!(
                "the compat libcuda {version} is newer than the module {}, whose branch takes none",
                module.value
            );
            weighing.supports(Strong, statement, &file.origin);
            weighing.supports(Moderate, "cuInit answers 803, driver mismatch", &trial.origin);
        } else {
            let statement =
                "cuInit answers 803: the two are of releases that do not go together at all";
            weighing.rules_out(statement, &trial.origin);
        }
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let in_container = sandbox::container(facts).is_some();
    let impact = if in_container { Impact::RecreatesContainer } else { Impact::RestartsProcess };
    let mut remedy = Remedy::new(impact, "the program in question");
    if let Some(command) = search_path_without(facts, "/compat") {
        remedy = remedy.step_to(Place::Program, command, "without the compat folder");
    }
    let own = right_one(facts).map_or("/usr/lib/x86_64-linux-gnu", |file| folder(&file.path));
    remedy = if in_container {
        remedy.step_to(
            Place::Engine,
            format!("docker run -e LD_LIBRARY_PATH={own} --gpus all …"),
            "puts the driver's own folder first",
        )
    } else {
        remedy.step_to(
            Place::Program,
            format!("export LD_LIBRARY_PATH={own}"),
            "puts the driver's own folder first",
        )
    };
    let place = if in_container { Place::Container } else { Place::Here };
    remedy
        .step_to(
            place,
            "for f in $(grep -l compat /etc/ld.so.conf.d/*.conf); do mv $f $f.off; done; ldconfig",
            "takes the compat folder out of the loader's cache; in an image, as a RUN line",
        )
        .step_to(
            Place::Host,
            "upgrade the driver to the release that the image's CUDA was made for, or use an image of an older CUDA",
            "when the program needs more than the driver's own libcuda offers",
        )
        .undo("set LD_LIBRARY_PATH to its former value; rename the .off files back and run ldconfig")
        .verify("/proc/PID/maps shows a libcuda of the module's version, and cuInit answers 0")
        .will_not_help("a reboot: the library is the image's and comes again")
        .will_not_help("a newer cuda-compat package: the GPU or driver branch is what is not supported")
}

#[cfg(test)]
mod tests {
    use super::is_geforce;

    #[test]
    fn classes_by_name() {
        for name in ["GTX 1650", "NVIDIA GeForce RTX 3090", "RTX 4070 Ti", "TITAN RTX"] {
            assert!(is_geforce(name), "{name}");
        }
        for name in [
            "NVIDIA H100 80GB HBM3",
            "RTX 6000 Ada Generation",
            "Quadro RTX 8000",
            "Tesla T4",
            "RTX A6000",
        ] {
            assert!(!is_geforce(name), "{name}");
        }
    }
}
