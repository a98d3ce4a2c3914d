//! `library.bundled-driver`

use facts::model::engine::EngineFault;
use facts::model::library::{LibraryFile, LibraryKind};
use facts::model::process::Lever;
use facts::version::DriverVersion;
use facts::{Facts, Layer, Observed, Origin, Seen};

use super::with_own_library;
use crate::cause::{Cause, LookAlike};
use crate::causes::sandbox;
use crate::engine;
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::machine;
use crate::need::Need;
use crate::readings::{self, code};
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "library.bundled-driver",
    layer: Layer::Library,
    claim: "the image or application ships its own driver libraries, which do not fit the module",
    explanation: "The driver's libraries belong to the kernel module of the machine, to the last \
        part of the version. An image in which a driver package was installed, an LXC container \
        with packages of its own, or an application that carries libcuda with it brings libraries \
        of another release; they hide those that the engine mounts, and NVML answers 18 and cuInit \
        803 or 804. The machine itself is fine, and so is another image on it.",
    explains: &[
        SymptomId::NvmlFails,
        SymptomId::CudaInitFails,
        SymptomId::CudaInitHangs,
        SymptomId::DriverAbsent,
        SymptomId::FrameworkNoGpu,
        SymptomId::ContainerRefused,
    ],
    specializes: &["module.version-skew"],
    look_alikes: &[
        LookAlike {
            id: "module.version-skew",
            tell: "the machine's own programs fail as well: its libraries were upgraded under a loaded module",
        },
        LookAlike {
            id: "library.compat-shadows",
            tell: "the other libcuda lies in a compat folder, and NVML works",
        },
        LookAlike {
            id: "sandbox.cdi-stale",
            tell: "the engine mounts a library of a release that the host no longer has",
        },
        LookAlike {
            id: "sandbox.flatpak-runtime",
            tell: "the container is Flatpak's, whose GL extension carries the version",
        },
    ],
    references: &[
        "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/troubleshooting.html",
        "https://docs.nvidia.com/deploy/cuda-compatibility/",
        "kernel-open/nvidia/nv.c (nvidia_ioctl, NV_ESC_CHECK_VERSION_STR)",
    ],
    weigh,
    remedy,
};

/// A driver library that is not of the module's release.
struct Foreign {
    name: &'static str,
    version: DriverVersion,
    path: Option<String>,
    origin: Origin,
}

fn weigh(facts: &Facts) -> Weighing {
    if let Some(weighing) = in_the_image(facts) {
        return weighing;
    }
    if machine::is_wsl(facts) {
        return Weighing::not_applicable();
    }
    let mut weighing = Weighing::new();
    let contained = contained(facts);
    let Some(failed) = mismatch(facts) else { return weighing };
    let foreign = foreign(facts);
    let bundled =
        foreign.as_ref().is_some_and(|library| library.path.as_deref().is_some_and(is_private));
    if !contained && !bundled {
        return weighing;
    }
    let Some(library) = foreign else {
        same_or_unknown(facts, &mut weighing);
        without_versions(facts, &failed, &mut weighing);
        return weighing;
    };
    let by_engine = library.path.as_deref().and_then(|path| mount_of(facts, path));
    if let Some(mounted) = by_engine {
        let statement = "the library is mounted into the container, and not the image's";
        weighing.rules_out(statement, &mounted);
        return weighing;
    }
    let place = if contained { "in this container" } else { "with this application" };
    let module =
        readings::driver_version(facts).map_or(String::new(), |seen| seen.value.to_string());
    let statement = format!("{} {place} is {}, the module {module}", library.name, library.version);
    weighing.supports(Strong, statement, &library.origin);
    weighing.supports(Moderate, failed.value.clone(), &failed.origin);
    proof(facts, &library, &mut weighing);
    neighbours(facts, &mut weighing);
    weighing
}

/// The container tools put the driver's libraries into a container as files that are not there.
fn in_the_image(facts: &Facts) -> Option<Weighing> {
    let seen = engine::fault(facts, |fault| match fault {
        EngineFault::LibraryInImage(library) => Some(library.clone()),
        _ => None,
    })?;
    let mut weighing = Weighing::new();
    let statement = format!("the container tools find {} in the image already", seen.value);
    weighing.supports(Strong, statement, &seen.origin);
    let statement = "they make only what is not there, so a driver was installed in the image";
    weighing.supports(Moderate, statement, &seen.origin);
    Some(weighing)
}

/// It runs in a container, or a report says so without a kind.
fn contained(facts: &Facts) -> bool {
    machine::in_container(facts)
        || facts.host.container_told.is_seen() && !facts.host.container.is_seen()
}

/// The answers of libraries that do not fit the module.
fn mismatch(facts: &Facts) -> Option<Seen<String>> {
    if let Some(origin) = readings::nvml_failed_with(facts, code::NVML_VERSION_MISMATCH) {
        return Some(Seen::new(
            "NVML answers 18, driver/library version mismatch".to_owned(),
            origin,
        ));
    }
    let codes = [code::DRIVER_MISMATCH, code::COMPAT_NOT_SUPPORTED];
    let (number, trial) =
        readings::init_failure(facts).filter(|(number, _)| codes.contains(number))?;
    Some(Seen::new(format!("cuInit answers {number}, driver mismatch"), trial.origin.clone()))
}

fn foreign(facts: &Facts) -> Option<Foreign> {
    let module = readings::driver_version(facts)?;
    let files = [&facts.library.cuda, &facts.library.nvml];
    let by_file = files.into_iter().filter_map(|slot| slot.as_seen()).find_map(|seen| {
        let file: &LibraryFile = &seen.value;
        let version = file.version.clone().filter(|_| file.kind == LibraryKind::Driver)?;
        let name = if file.soname.starts_with("libcuda") { "libcuda" } else { "libnvidia-ml" };
        (!version.same_release(&module.value)).then(|| Foreign {
            name,
            version,
            path: Some(file.real_path.clone()),
            origin: seen.origin.clone(),
        })
    });
    by_file.or_else(|| {
        let reported = facts.library.reported.as_seen()?;
        (!reported.value.same_release(&module.value)).then(|| Foreign {
            name: "libnvidia-ml",
            version: reported.value.clone(),
            path: None,
            origin: reported.origin.clone(),
        })
    })
}

/// A folder that no driver package of a distribution and no engine uses.
fn is_private(path: &str) -> bool {
    const PRIVATE: [&str; 10] = [
        "/usr/local/lib/",
        "/opt/",
        "/home/",
        "/root/",
        "site-packages",
        "conda",
        "/snap/",
        "/app/",
        "/mnt/",
        "/tmp/",
    ];
    PRIVATE.iter().any(|part| path.contains(part))
        && !path.contains("/opt/nvidia")
        && !path.contains("/opt/cuda")
}

/// Where a mount covers exactly this file.
fn mount_of(facts: &Facts, path: &str) -> Option<Origin> {
    let mounts = facts.sandbox.mounts.as_seen()?;
    let file = mounts.value.iter().any(|mount| mount.target == path);
    let folder = mounts.value.iter().any(|mount| {
        mount.target.len() > 1
            && path.strip_prefix(mount.target.as_str()).is_some_and(|rest| rest.starts_with('/'))
            && (mount.target.contains("nvidia") || mount.target.contains("/lib"))
    });
    (file || folder).then(|| mounts.origin.clone())
}

/// What shows that the library is the image's.
fn proof(facts: &Facts, library: &Foreign, weighing: &mut Weighing) {
    let whole =
        facts.sandbox.mounts.as_seen().filter(|seen| seen.origin.item.ends_with("/mountinfo"));
    match (whole, &library.path) {
        (Some(mounts), Some(path)) if machine::in_container(facts) => {
            let statement = format!("{path} is a file of the image: nothing is mounted there");
            weighing.confirms(statement, &mounts.origin);
        }
        _ => {
            weighing.needs(Need::LibraryMounts);
        }
    }
    other_image(facts, weighing);
    if let Some((true, origin)) = with_own_library(facts) {
        weighing.confirms("it works with the libcuda of the module's release", origin);
    }
    if let Some(package) = package(facts) {
        let statement = format!("{} is installed", package.value);
        if contained(facts) {
            weighing.confirms(format!("{statement} in the container"), &package.origin);
        } else {
            weighing.supports(Moderate, statement, &package.origin);
        }
    }
}

/// A package that brings the driver's libraries.
fn package(facts: &Facts) -> Option<&Seen<String>> {
    facts.library.driver_packages.iter().find(|seen| !seen.value.starts_with("cuda-compat"))
}

fn other_image(facts: &Facts, weighing: &mut Weighing) {
    let Some((attempt, origin)) = facts.process.tried(|lever| lever == Lever::OtherImage) else {
        return;
    };
    let versions_differ = !weighing.support.is_empty();
    if attempt.helped && versions_differ {
        weighing.confirms("another image works on the same machine", origin);
    } else if attempt.helped {
        weighing.supports(Strong, "another image works on the same machine", origin);
    } else {
        weighing.objects(Strong, "another image fails as well", origin);
    }
}

fn neighbours(facts: &Facts, weighing: &mut Weighing) {
    if let Some(seen) = facts.sandbox.host_has_gpus.as_seen().filter(|seen| seen.value) {
        weighing.supports(Moderate, "the machine's own programs work", &seen.origin);
    }
    if sandbox::in_lxc(facts)
        && let Some(seen) = facts.host.container.as_seen()
    {
        weighing.supports(Weak, "an LXC container has libraries of its own", &seen.origin);
    }
}

/// The libraries are the module's: then it is something else that makes NVML answer 18.
fn same_or_unknown(facts: &Facts, weighing: &mut Weighing) {
    let Some(module) = readings::driver_version(facts) else {
        weighing.needs(Need::ModuleVersion);
        return;
    };
    let equal = |seen: &&Seen<LibraryFile>| {
        let version = seen.value.version.as_ref();
        version.is_some_and(|version| {
            version.same_release(&module.value) && version.is_exact() == module.value.is_exact()
        })
    };
    if let Some(seen) = facts.library.nvml.as_seen().filter(equal) {
        let statement = format!("the libraries here are {}, as the module is", module.value);
        weighing.rules_out(statement, &seen.origin);
    } else {
        weighing.needs(Need::LibcudaMapped);
    }
}

/// The versions are not known, and what is told of images speaks for it all the same.
fn without_versions(facts: &Facts, failed: &Seen<String>, weighing: &mut Weighing) {
    other_image(facts, weighing);
    side_by_side(facts, weighing);
    if let Some(package) = package(facts) {
        let statement = format!("{} is installed in the container", package.value);
        weighing.supports(Strong, statement, &package.origin);
    }
    if !weighing.support.is_empty() {
        weighing.supports(Moderate, failed.value.clone(), &failed.origin);
        neighbours(facts, weighing);
    }
}

/// Two releases of one library in the container: the engine brings one, and the image has the other.
fn side_by_side(facts: &Facts, weighing: &mut Weighing) {
    let linked = [&facts.library.cuda, &facts.library.nvml];
    let pair = linked.into_iter().filter_map(Observed::value).find_map(|file| {
        let mut others = facts.library.others.iter();
        let other = others.find(|other| {
            other.soname == file.soname && other.version.is_some() && other.version != file.version
        })?;
        Some((file, other))
    });
    if let Some((file, other)) = pair
        && let (Some(version), Some(beside)) = (&file.version, &other.version)
    {
        let statement = format!("{} leads to {version}, and {beside} lies beside it", file.soname);
        weighing.supports(Strong, statement, &file.origin);
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let version =
        readings::driver_version(facts).map_or("VERSION".to_owned(), |seen| seen.value.to_string());
    if sandbox::in_lxc(facts) {
        return Remedy::new(Impact::RestartsProcess, "GPU programs in this container")
            .step_to(
                Place::Container,
                format!("sh NVIDIA-Linux-x86_64-{version}.run --no-kernel-modules"),
                "exactly the host's version, after the former packages are removed",
            )
            .undo("sh NVIDIA-Linux-x86_64-….run --uninstall in the container")
            .verify("nvidia-smi in the container shows the host's version")
            .will_not_help("upgrading or rebooting the host: its module and libraries agree");
    }
    Remedy::new(Impact::RecreatesContainer, "the programs in this container or application")
        .step_to(
            Place::Container,
            "apt-get purge 'libnvidia-compute-*' 'nvidia-utils-*' 'nvidia-driver-*' 'libcuda1' && ldconfig",
            "as a RUN line of the image: the engine mounts the host's libraries",
        )
        .step_to(
            Place::Program,
            "delete the libcuda.so* and libnvidia-ml.so* that the application carries, or put the driver's folder first in LD_LIBRARY_PATH",
            "where it is no container",
        )
        .undo("the former image or application folder")
        .verify("ldconfig -p | grep libnvidia-ml leads to a file that is listed in /proc/self/mountinfo, and nvidia-smi works")
        .will_not_help("rebooting the host or reloading its module: host module and host libraries agree")
        .will_not_help("a newer library: the versions must be identical")
}
