//! `module.version-skew`

use facts::model::library::{LibraryFile, LibraryKind};
use facts::version::DriverVersion;
use facts::{Facts, Layer, Observed, Origin, Seen};

use super::{reload, reload_step};
use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::machine::{self, Distribution};
use crate::need::Need;
use crate::readings::{self, code};
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

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
    if facts.host.wsl.value() == Some(&true) {
        // The module is in Windows there, and its version is another system's.
        return Weighing::not_applicable();
    }
    let mut weighing = Weighing::new();
    let sides = Sides::of(facts);
    answers(facts, &sides, &mut weighing);
    compare("libcuda", &sides.cuda, code_803(facts).is_some(), &mut weighing);
    compare("libnvidia-ml", &sides.nvml, nvml_18(facts).is_some(), &mut weighing);
    log(facts, &sides, &mut weighing);
    equal(facts, &sides, &mut weighing);
    lacking(facts, &sides, &mut weighing);
    if !weighing.support.is_empty() {
        disk(facts, &mut weighing);
    }
    weighing
}

/// The loaded module's version against one library's.
enum Side {
    /// The same release, to the last part.
    Equal(String, Origin),
    /// Another release: library, module, where the library's version was seen.
    Differs(String, String, Origin),
    /// One of them is not known, or not to the last part.
    Unknown,
}

struct Sides {
    cuda: Side,
    nvml: Side,
}

impl Sides {
    fn of(facts: &Facts) -> Sides {
        let module = readings::driver_version(facts);
        let cuda = facts.library.cuda.as_seen().filter(|seen| comparable(&seen.value));
        let cuda = cuda.and_then(|seen| Some((seen.value.version.clone()?, seen.origin.clone())));
        Sides {
            cuda: side(module.as_ref(), cuda),
            nvml: side(module.as_ref(), nvml_library(facts)),
        }
    }
}

/// A stub has no version, and a forward-compatibility library differs on purpose.
fn comparable(file: &LibraryFile) -> bool {
    file.kind == LibraryKind::Driver
}

/// libnvidia-ml's version: the file's, or what a tool reported.
fn nvml_library(facts: &Facts) -> Option<(DriverVersion, Origin)> {
    let file = facts.library.nvml.as_seen().filter(|seen| comparable(&seen.value));
    file.and_then(|seen| Some((seen.value.version.clone()?, seen.origin.clone()))).or_else(|| {
        let reported = facts.library.reported.as_seen()?;
        Some((reported.value.clone(), reported.origin.clone()))
    })
}

fn side(module: Option<&Seen<DriverVersion>>, library: Option<(DriverVersion, Origin)>) -> Side {
    let (Some(module), Some((library, origin))) = (module, library) else { return Side::Unknown };
    if !module.value.same_release(&library) {
        Side::Differs(library.to_string(), module.value.to_string(), origin)
    } else if module.value.is_exact() == library.is_exact() {
        Side::Equal(library.to_string(), origin)
    } else {
        // Tools cut the third part, and what is cut may differ.
        Side::Unknown
    }
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
    let Side::Differs(library, module, origin) = side else { return };
    let statement = format!("{name} is {library}, the loaded module {module}");
    if said_so {
        weighing.confirms(statement, origin);
    } else {
        weighing.supports(Strong, statement, origin);
    }
}

/// What the module logged of a client. A line that names another module than the loaded one is
/// from before it was replaced.
fn log(facts: &Facts, sides: &Sides, weighing: &mut Weighing) {
    let Some((client, module, origin)) = logged_mismatch(facts) else { return };
    let loaded = readings::driver_version(facts).map(|seen| seen.value.to_string());
    let stale = matches!((&loaded, &module), (Some(loaded), Some(module)) if loaded != module);
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
        (Side::Unknown, Side::Equal(version, origin))
            if nvml_18(facts).is_some() && code_803(facts).is_none() =>
        {
            weighing.rules_out(format!("libnvidia-ml {version} = module"), origin);
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

/// Which of the two is the odd one: the module on disk tells.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Odd {
    /// The loaded module: the one on disk equals the libraries.
    LoadedModule,
    /// The libraries: the loaded module is the one on disk.
    Libraries,
    /// Not known.
    Unknown,
}

fn odd(facts: &Facts) -> (Odd, Option<Seen<DriverVersion>>) {
    let Some(disk) = on_disk(facts) else { return (Odd::Unknown, None) };
    let loaded = readings::driver_version(facts);
    if loaded.is_some_and(|loaded| loaded.value == disk.value) {
        return (Odd::Libraries, Some(disk));
    }
    let cuda = facts.library.cuda.value().and_then(|file| file.version.clone());
    let library = nvml_library(facts).map(|(version, _)| version).or(cuda);
    let same = library.is_some_and(|library| library.same_release(&disk.value));
    (if same { Odd::LoadedModule } else { Odd::Unknown }, Some(disk))
}

/// The version of the module that the running kernel would load. A container's is not the host's.
fn on_disk(facts: &Facts) -> Option<Seen<DriverVersion>> {
    if machine::in_container(facts) {
        return None;
    }
    let release = facts.host.kernel.value().map(|kernel| kernel.as_str());
    let files = facts.module.on_disk.value()?;
    let fits = |kernel: Option<&str>| match (kernel, release) {
        (Some(kernel), Some(release)) => kernel == release,
        _ => true,
    };
    files.iter().filter(|file| file.name == "nvidia" && fits(file.kernel.as_deref())).find_map(
        |file| Some(Seen::new(file.version.clone()?, file.origin.clone())),
    )
}

fn disk(facts: &Facts, weighing: &mut Weighing) {
    if let (Odd::LoadedModule, Some(disk)) = odd(facts) {
        let statement =
            format!("the module on disk is {}, as the libraries are: the loaded one is old", disk.value);
        weighing.supports(Moderate, statement, &disk.origin);
    } else if !matches!(facts.module.on_disk, Observed::Seen(_)) && !machine::in_container(facts) {
        weighing.needs(Need::ModulesOnDisk);
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let remedy = match (machine::in_container(facts), odd(facts).0) {
        (true, _) => in_the_container(facts),
        (false, Odd::Libraries) => fit_the_libraries(facts),
        (false, Odd::LoadedModule) => fit_the_module(facts),
        (false, Odd::Unknown) => look_first(facts),
    };
    remedy
        .verify("nvidia-smi prints one driver version, and gpudx is healthy")
        .will_not_help("another CUDA toolkit or framework: the two halves of the driver differ")
}

/// The version that the libraries must have.
fn module_version(facts: &Facts) -> String {
    readings::driver_version(facts).map_or("VERSION".to_owned(), |seen| seen.value.to_string())
}

fn in_the_container(facts: &Facts) -> Remedy {
    let version = module_version(facts);
    Remedy::new(Impact::RecreatesContainer, "the programs in this container")
        .step_to(
            Place::Container,
            "ldconfig -p | grep -E 'libcuda|libnvidia-ml'",
            "shows which file is in front; one that the engine mounted stands in /proc/self/mountinfo",
        )
        .step_to(
            Place::Container,
            "remove the driver packages of the image (libnvidia-compute-*, cuda-compat-*)",
            "the engine brings the host's libraries",
        )
        .step_to(
            Place::Container,
            format!("in LXC: sh NVIDIA-Linux-x86_64-{version}.run --no-kernel-module"),
            "a system container needs exactly the host's version of its own",
        )
        .undo("recreate the container from its image")
        .will_not_help("reloading the host's module: the libraries in the container are the odd ones")
}

fn fit_the_module(facts: &Facts) -> Remedy {
    let hold = match machine::distribution(facts) {
        Distribution::Debian | Distribution::Ubuntu | Distribution::Proxmox => {
            "apt-mark hold $(dpkg -l | awk '/^ii +(nvidia|libnvidia)/{print $2}')"
        }
        Distribution::Fedora | Distribution::Rhel => "dnf versionlock add '*nvidia*'",
        Distribution::Suse => "zypper addlock '*nvidia*'",
        Distribution::Arch | Distribution::Nixos | Distribution::Other => {
            "upgrade the driver only together with a reboot"
        }
    };
    reload_step(facts, reload())
        .step_to(machine::kernel_place(facts), hold, "keeps upgrades from doing it again")
        .undo("nothing to undo: the module on disk is loaded")
        .will_not_help("installing the driver again: what lies on disk already fits")
}

fn fit_the_libraries(facts: &Facts) -> Remedy {
    let version = module_version(facts);
    let branch = version.split('.').next().unwrap_or_default();
    let install = match machine::distribution(facts) {
        Distribution::Ubuntu => {
            format!("apt install --allow-downgrades 'libnvidia-compute-{branch}={version}*' 'nvidia-utils-{branch}={version}*'")
        }
        Distribution::Debian | Distribution::Proxmox => {
            format!("apt install --allow-downgrades 'libcuda1={version}*' 'libnvidia-ml1={version}*'")
        }
        Distribution::Fedora | Distribution::Rhel => format!("dnf install '*nvidia*{version}*'"),
        _ => format!("install the libraries of driver {version}, or upgrade the module with them"),
    };
    Remedy::new(Impact::None, "nothing that works now")
        .step_to(Place::Here, install, "the libraries are the odd ones")
        .undo("install the former library packages again")
        .will_not_help("a reload or a reboot: it would load the same module again")
}

fn look_first(facts: &Facts) -> Remedy {
    let remedy = reload().step_to(
        machine::kernel_place(facts),
        "modinfo -F version nvidia",
        "if it prints the libraries' version, go on; if the loaded module's, install libraries of that version instead",
    );
    reload_step(facts, remedy).undo("nothing to undo: the module on disk is loaded")
}
