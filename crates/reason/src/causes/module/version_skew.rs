//! `module.version-skew`

use facts::model::library::LibraryFile;
use facts::model::process::Lever;
use facts::version::DriverVersion;
use facts::{Facts, Layer, Observed, Origin, Seen};

use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::machine;
use crate::need::Need;
use crate::readings::{self, code};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

mod cure;
mod versions;

use cure::remedy;
use versions::{Odd, Side, Sides, odd};

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "module.version-skew",
    layer: Layer::Module,
    claim: "kernel module and user-space libraries are of different releases",
    explanation: "Module and libraries speak a private interface that changes with every release, so \
        all three parts of their versions must agree; libcuda answers 803 and NVML 18 when they do \
        not. The usual way there is a package upgrade that replaces the libraries while the old \
        module stays loaded: programs that already run go on, new ones fail. Whether a reload or a \
        reboot helps depends on the module that lies on disk: it does when that one equals the \
        libraries. NVML also answers 18 when it cannot ask the module at all, as under a seccomp \
        filter, so only the versions themselves decide.",
    explains: &[
        SymptomId::NvmlFails,
        SymptomId::CudaInitFails,
        SymptomId::CudaInitHangs,
        SymptomId::DriverAbsent,
        SymptomId::FrameworkNoGpu,
        SymptomId::ContainerRefused,
    ],
    specializes: &[],
    look_alikes: &[
        LookAlike {
            id: "library.compat-shadows",
            tell: "the mapped libcuda lies in a compat folder, and the driver's own equals the module",
        },
        LookAlike {
            id: "library.bundled-driver",
            tell: "the host's libraries equal the module, and only a container's do not",
        },
        LookAlike {
            id: "sandbox.seccomp",
            tell: "NVML answers 18 though the versions are equal; Seccomp is 2",
        },
        LookAlike {
            id: "platform.vgpu-version-skew",
            tell: "a vGPU guest: the host's manager and the guest's driver do not fit",
        },
        LookAlike {
            id: "sandbox.flatpak-runtime",
            tell: "only Flatpak programs fail; the GL extension carries another version",
        },
    ],
    references: &[
        "https://docs.nvidia.com/deploy/cuda-compatibility/",
        "https://github.com/lyulyul/shine-cluster/issues/30",
        "kernel-open/nvidia/nv.c (nvidia_ioctl, NV_ESC_CHECK_VERSION_STR)",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    if machine::is_wsl(facts) {
        // The module is in Windows there, and its version is another system's.
        return Weighing::not_applicable();
    }
    let mut weighing = Weighing::new();
    let sides = Sides::of(facts);
    answers(facts, &sides, &mut weighing);
    compare("libcuda", &sides.cuda, code_803(facts).is_some(), &mut weighing);
    compare("libnvidia-ml", &sides.nvml, nvml_18(facts).is_some(), &mut weighing);
    packages(facts, &mut weighing);
    log(facts, &sides, &mut weighing);
    equal(facts, &sides, &mut weighing);
    lacking(facts, &sides, &mut weighing);
    if !weighing.support.is_empty() {
        disk(facts, &mut weighing);
        if let Some(origin) = facts.process.helped_by(Lever::OtherImage) {
            let statement = "another image works on the same machine, with the same module";
            weighing.objects(Strong, statement, origin);
        }
    }
    weighing
}

fn code_803(facts: &Facts) -> Option<&Origin> {
    readings::init_failed_with(facts, code::DRIVER_MISMATCH).map(|trial| &trial.origin)
}

fn nvml_18(facts: &Facts) -> Option<Origin> {
    readings::nvml_failed_with(facts, code::NVML_VERSION_MISMATCH)
}

/// The codes by themselves. When NVML answers, it has found itself equal to the module, and 803
/// then speaks of the libcuda that is in front more than of the module.
fn answers(facts: &Facts, sides: &Sides, weighing: &mut Weighing) {
    if let Some(origin) = code_803(facts) {
        let nvml_fits = readings::nvml_works(facts).is_some();
        let strength = if nvml_fits { Moderate } else { Strong };
        weighing.supports(strength, "cuInit answers 803, driver mismatch", origin);
    }
    if let Some(origin) = nvml_18(facts) {
        weighing.supports(Strong, "NVML answers 18, driver/library version mismatch", &origin);
        if let (Some(reported), Side::Unknown) = (facts.library.reported.as_seen(), &sides.nvml) {
            let statement = format!("nvidia-smi names its library's version, {}", reported.value);
            weighing.supports(Weak, statement, &reported.origin);
        }
    }
}

/// Two versions that differ; with the code that says so they are proof.
fn compare(name: &str, side: &Side, said_so: bool, weighing: &mut Weighing) {
    let Side::Differs(library, module, origin) = side else {
        return;
    };
    let statement = format!("{name} is {library}, the loaded module {module}");
    if said_so {
        weighing.confirms(statement, origin);
    } else {
        weighing.supports(Strong, statement, origin);
    }
}

/// The package manager's word on the libraries, where a code says that something does not fit.
/// Which library a program loads is another matter, so that equal versions prove nothing.
fn packages(facts: &Facts, weighing: &mut Weighing) {
    if nvml_18(facts).is_none() && code_803(facts).is_none() {
        return;
    }
    let Some(module) = facts.module.version() else { return };
    let versions = &facts.library.package_versions;
    let fits = |at: &Seen<(String, DriverVersion)>| module.value.same_release(&at.value.1);
    if let Some(odd) = versions.first().filter(|_| !versions.iter().any(fits)) {
        let (name, version) = &odd.value;
        let statement = format!("package {name} is {version}, the loaded module {}", module.value);
        weighing.supports(Strong, statement, &odd.origin);
    }
}

/// What the module logged of a client. A line that names another module than the loaded one is
/// from before it was replaced.
fn log(facts: &Facts, sides: &Sides, weighing: &mut Weighing) {
    let Some((client, module, origin)) = logged_mismatch(facts) else {
        return;
    };
    let loaded = readings::driver_version(facts).map(|seen| seen.value.to_string());
    // What somebody says that he installed is no word of the module's.
    let first_hand = facts.module.version().is_some() || readings::nvml_works(facts).is_some();
    let other = matches!((&loaded, &module), (Some(loaded), Some(module)) if loaded != module);
    let stale = first_hand && other;
    let module = module.or(loaded);
    let statement = match &module {
        Some(module) => format!("API mismatch in the kernel log: client {client}, module {module}"),
        None => format!("API mismatch in the kernel log: client {client}"),
    };
    let both_known = module.is_some_and(|module| module != client);
    let refuted = matches!((&sides.cuda, &sides.nvml), (Side::Equal(..), _) | (_, Side::Equal(..)));
    if stale || refuted {
        weighing.supports(Weak, statement, &origin);
    } else if both_known {
        weighing.confirms(statement, &origin);
    } else {
        weighing.supports(Strong, statement, &origin);
    }
}

/// Client and module version of the last mismatch in the log, whose wordings spread over one to
/// three lines.
fn logged_mismatch(facts: &Facts) -> Option<(String, Option<String>, Origin)> {
    const LINES: [&str; 5] = [
        "NVRM_API_MISMATCH",
        "NVRM_API_MISMATCH_OLD",
        "NVRM_API_MISMATCH_VERS",
        "NVRM_API_MISMATCH_KVER",
        "API_MISMATCH_TAIL",
    ];
    let mut found: Option<(String, Option<String>, Origin)> = None;
    for event in facts.log.events.iter().filter(|event| LINES.contains(&event.signature)) {
        // The first line of the newer wording quotes the program's name, not a version.
        let client = event.get("client").and_then(DriverVersion::parse);
        if let Some(client) = client {
            found = Some((client.to_string(), None, event.origin.clone()));
        }
        let module = ["kernel", "module", "module2"].iter().find_map(|name| event.get(name));
        if let (Some((_, known, _)), Some(module)) = (&mut found, module) {
            *known = Some(module.to_owned());
        }
    }
    found
}

/// Versions that agree are the end of the matter for that library.
fn equal(facts: &Facts, sides: &Sides, weighing: &mut Weighing) {
    match (&sides.cuda, &sides.nvml) {
        (Side::Equal(version, origin), Side::Equal(..)) => {
            weighing.rules_out(format!("libcuda and libnvidia-ml {version} = module"), origin);
        }
        (Side::Equal(version, origin), Side::Unknown) if nvml_18(facts).is_none() => {
            weighing.rules_out(format!("libcuda {version} = module"), origin);
        }
        // NVML cannot have told the module's version then: only the module's own word is a match.
        (Side::Unknown, Side::Equal(version, origin))
            if nvml_18(facts).is_some()
                && code_803(facts).is_none()
                && facts.module.version().is_some() =>
        {
            weighing.rules_out(format!("libnvidia-ml {version} = module"), origin);
        }
        // 804 is about a libcuda that is newer than the module; where NVML has found itself equal
        // to it, that libcuda is none of the driver's own.
        (Side::Unknown, Side::Equal(version, origin))
            if readings::nvml_works(facts).is_some()
                && readings::init_failed_with(facts, code::COMPAT_NOT_SUPPORTED).is_some() =>
        {
            let statement = format!("libnvidia-ml {version} = module, and NVML answers");
            weighing.rules_out(statement, origin);
        }
        (Side::Equal(version, origin), _) => {
            weighing.objects(Weak, format!("libcuda {version} = module"), origin);
        }
        (_, Side::Equal(version, origin)) => {
            weighing.objects(Weak, format!("libnvidia-ml {version} = module"), origin);
        }
        _ => {}
    }
    if let Some(origin) = readings::cuda_works(facts)
        && nvml_18(facts).is_none()
    {
        weighing.rules_out("cuInit answers 0", origin);
    }
}

fn lacking(facts: &Facts, sides: &Sides, weighing: &mut Weighing) {
    if readings::driver_version(facts).is_none() {
        weighing.needs(Need::ModuleVersion);
    }
    let versioned = |file: &LibraryFile| file.version.is_some();
    let known = facts.library.cuda.value().is_some_and(versioned);
    if matches!(sides.cuda, Side::Unknown) && !known {
        weighing.needs(Need::LibcudaMapped);
    }
}

fn disk(facts: &Facts, weighing: &mut Weighing) {
    if let (Odd::LoadedModule, Some(disk)) = odd(facts) {
        let statement =
            format!("the module on disk is {}: it was replaced under the loaded one", disk.value);
        weighing.supports(Moderate, statement, &disk.origin);
    } else if !matches!(facts.module.on_disk, Observed::Seen(_)) && !machine::in_container(facts) {
        weighing.needs(Need::ModulesOnDisk);
    }
}
