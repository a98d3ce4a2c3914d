//! `library.compat-shadows`

use facts::model::library::{LibraryFile, LibraryKind};
use facts::model::process::Lever;
use facts::version::DriverVersion;
use facts::{Facts, Layer, Seen};

use super::{folder, mapped, path_holds, right_one, search_path_without, with_own_library};
use crate::cause::{Cause, LookAlike};
use crate::causes::sandbox;
use crate::evidence::Strength::{Moderate, Strong};
use crate::need::Need;
use crate::readings::{self, code};
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "library.compat-shadows",
    layer: Layer::Library,
    claim: "a bundled forward-compatibility libcuda shadows the driver's own",
    explanation: "Images and toolkits carry a libcuda in a compat folder so that a data-centre GPU \
        can run a newer CUDA on an older driver. When the host's driver is as new or newer, that \
        library is the older of the two; found first, it asks the module for its version, they \
        differ, and cuInit answers 803. It happens through LD_LIBRARY_PATH, or when a runtime's \
        hook rebuilds the loader's cache and an ld.so.conf entry of the image comes first. NVML \
        is another library and goes on answering.",
    explains: &[SymptomId::CudaInitFails, SymptomId::FrameworkNoGpu],
    specializes: &["module.version-skew", "library.bundled-driver"],
    look_alikes: &[
        LookAlike {
            id: "library.compat-unsupported",
            tell: "cuInit answers 804, and the compat library is newer than the module",
        },
        LookAlike {
            id: "module.version-skew",
            tell: "the driver's own library differs from the module, and NVML answers 18 too",
        },
        LookAlike {
            id: "library.bundled-driver",
            tell: "the other libcuda lies in no compat folder",
        },
    ],
    references: &[
        "https://github.com/vllm-project/vllm/issues/33447",
        "https://github.com/gpustack/gpustack/issues/4678",
        "https://docs.nvidia.com/deploy/cuda-compatibility/forward-compatibility.html",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    let mismatch = readings::init_failed_with(facts, code::DRIVER_MISMATCH);
    match mapped(facts) {
        Some(file) if !is_compat(file) => {
            let statement = format!("libcuda comes from {}, which is no compat folder", file.path);
            weighing.rules_out(statement, &file.origin);
        }
        Some(file) => weigh_versions(facts, file, &mut weighing),
        None => {
            on_disk(facts, &mut weighing);
            weighing.needs(Need::LibcudaMapped);
        }
    }
    by_experiment(facts, &mut weighing);
    if let Some(trial) = mismatch {
        let statement = "cuInit answers 803: libcuda and the module are of different releases";
        weighing.supports(Moderate, statement, &trial.origin);
        cured_by_order(facts, &mut weighing);
        if let Some(origin) = facts.process.helped_by(Lever::OtherImage) {
            let statement = "another image works on the same machine: this one brings the libcuda";
            weighing.supports(Moderate, statement, origin);
        }
    } else if weighing.support.is_empty() {
        weighing.needs.clear();
        return weighing;
    }
    if let Some(trial) = readings::init_failed_with(facts, code::COMPAT_NOT_SUPPORTED) {
        let statement = "cuInit answers 804: the compat library fits the module and not the GPU";
        weighing.rules_out(statement, &trial.origin);
    }
    if let Some(seen) = facts.process.env.get("LD_LIBRARY_PATH")
        && seen.value.contains("/compat")
    {
        weighing.supports(Moderate, "LD_LIBRARY_PATH names a compat folder", &seen.origin);
    }
    weighing
}

/// The driver's own library in its place decides, whatever the code.
fn by_experiment(facts: &Facts, weighing: &mut Weighing) {
    let Some(file) = mapped(facts).filter(|file| is_compat(file)) else { return };
    match with_own_library(facts) {
        Some((true, origin)) => {
            let statement = format!("it fails with {} and works with the driver's own", file.path);
            weighing.confirms(statement, origin);
        }
        Some((false, origin)) => {
            weighing.rules_out("the driver's own libcuda fails as well", origin);
        }
        None => {}
    }
}

/// A compat library that lies there, when nobody saw which one is mapped.
fn on_disk(facts: &Facts, weighing: &mut Weighing) {
    let Some(module) = readings::driver_version(facts) else { return };
    let older = facts.library.others.iter().find(|file| {
        let version = file.version.as_ref();
        is_compat(file) && version.is_some_and(|version| *version < module.value)
    });
    if let Some(file) = older {
        let statement = format!("{} is older than the module {}", file.path, module.value);
        // An image may well carry an older one that nothing loads; where libcuda disagrees with the
        // module and NVML's library does not, it is what disagrees.
        let loaded = readings::init_failed_with(facts, code::DRIVER_MISMATCH).is_some()
            && readings::nvml_failed_with(facts, code::NVML_VERSION_MISMATCH).is_none();
        let strength = if loaded { Strong } else { Moderate };
        weighing.supports(strength, statement, &file.origin);
    }
}

fn is_compat(file: &LibraryFile) -> bool {
    file.kind == LibraryKind::Compat || path_holds(file, "/compat")
}

/// Older than the module: it shadows. Newer: forward compatibility as it is meant.
fn weigh_versions(facts: &Facts, file: &LibraryFile, weighing: &mut Weighing) {
    let Some(module) = module_version(facts) else {
        weighing.supports(Strong, format!("libcuda comes from {}", file.path), &file.origin);
        weighing.needs(Need::ModuleVersion);
        return;
    };
    let Some(version) = &file.version else {
        weighing.supports(Strong, format!("libcuda comes from {}", file.path), &file.origin);
        weighing.needs(Need::LibcudaMapped);
        return;
    };
    if version.same_release(&module.value) {
        let statement = format!("the compat libcuda is {version}, as the module is");
        weighing.rules_out(statement, &file.origin);
    } else if *version > module.value {
        let statement = format!(
            "the compat libcuda {version} is newer than the module {}: forward compatibility",
            module.value
        );
        weighing.rules_out(statement, &file.origin);
    } else if readings::init_failed_with(facts, code::DRIVER_MISMATCH).is_some() {
        let statement =
            format!("{} is {version}, older than the module {}", file.path, module.value);
        weighing.confirms(statement, &file.origin);
    } else if let Some(origin) = readings::cuda_works(facts) {
        weighing.rules_out("cuInit answers 0", origin);
    } else {
        let statement =
            format!("{} is {version}, older than the module {}", file.path, module.value);
        weighing.supports(Strong, statement, &file.origin);
    }
}

fn module_version(facts: &Facts) -> Option<Seen<DriverVersion>> {
    readings::driver_version(facts)
}

/// It works once the driver's own folder comes first.
fn cured_by_order(facts: &Facts, weighing: &mut Weighing) {
    let cured = facts.cuda.trials.iter().find(|trial| {
        trial.ok() && trial.under.as_deref().is_some_and(|under| under.contains("LD_LIBRARY_PATH"))
    });
    if let Some(trial) = cured {
        let statement = "CUDA starts with another LD_LIBRARY_PATH in front";
        weighing.supports(Strong, statement, &trial.origin);
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let in_container = sandbox::container(facts).is_some();
    let impact = if in_container { Impact::RecreatesContainer } else { Impact::RestartsProcess };
    let mut remedy = Remedy::new(impact, "the program in question");
    if let Some(command) = search_path_without(facts, "/compat") {
        remedy = remedy.step_to(Place::Program, command, "without the compat folder");
    }
    let own = right_one(facts).map(|file| folder(&file.path));
    let own = own.unwrap_or("/usr/lib/x86_64-linux-gnu");
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
        .undo("set LD_LIBRARY_PATH to its former value; rename the .off files back and run ldconfig")
        .verify("readlink -f of the libcuda in /proc/PID/maps ends in the module's version, and cuInit answers 0")
        .will_not_help("an older host driver: it would only hide that the wrong library is found")
        .will_not_help("another PyTorch build in the same image: libcuda is found before it matters")
}
