//! `platform.vgpu-version-skew`

use facts::version::DriverVersion;
use facts::{Facts, Layer, Origin};

use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::gpu_state;
use crate::need::Need;
use crate::readings;
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;
use crate::xid_burst;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "platform.vgpu-version-skew",
    layer: Layer::Platform,
    claim: "the vGPU's host manager and guest driver are of releases that do not fit",
    explanation: "A vGPU release has two driver versions: one for the manager on the host and one for \
        guests, which differ in their last part (18.2: 570.148.06 and 570.148.08). Libraries of the \
        guest's package against the host's module, as in a container on the host, are a mismatch like \
        any other. Between host and guest the releases must lie in the same or the neighbouring \
        branch; when they do not, the manager's log says that they are incompatible and the guest's \
        driver finds no GPU.",
    explains: &[
        SymptomId::NvmlFails,
        SymptomId::CudaInitFails,
        SymptomId::GpuFaulted,
        SymptomId::GpuMissing,
        SymptomId::DriverAbsent,
        SymptomId::FrameworkNoGpu,
        SymptomId::ContainerRefused,
    ],
    specializes: &["module.version-skew", "module.rm-init-failed", "library.bundled-driver"],
    look_alikes: &[
        LookAlike {
            id: "module.version-skew",
            tell: "no vGPU is in play; a package upgrade changed the libraries under the loaded module",
        },
        LookAlike {
            id: "library.bundled-driver",
            tell: "the image brings libraries of another branch",
        },
        LookAlike {
            id: "platform.vgpu-unlicensed",
            tell: "the versions fit, the GPU works for some minutes, and the licence is not there",
        },
    ],
    references: &[
        "https://github.com/nvidiavgpuarchive/index/issues/1",
        "https://docs.nvidia.com/vgpu/19.0/grid-vgpu-release-notes-vmware-vsphere/",
        "https://github.com/mbilker/vgpu_unlock-rs/issues/10",
        "https://docs.nvidia.com/deploy/xid-errors/",
    ],
    weigh,
    remedy,
};

/// Versions of manager and guest driver in one release, where they differ (release notes of the
/// vGPU software, and names of its packages).
const PAIRS: [(&str, &str); 7] = [
    ("525.60.12", "525.60.13"),
    ("525.85.07", "525.85.05"),
    ("535.183.04", "535.183.06"),
    ("550.90.05", "550.90.07"),
    ("550.127.06", "550.127.05"),
    ("570.148.06", "570.148.08"),
    ("580.65.05", "580.65.06"),
];

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    let refusal = facts.platform.vgpu_refusals.first();
    if let Some(refusal) = refusal {
        let statement = format!("host and guest refuse each other: {}", refusal.value);
        weighing.confirms(statement, &refusal.origin);
    }
    managers_log(facts, &mut weighing);
    started(facts, &mut weighing);
    mismatch(facts, &mut weighing);
    if weighing.support.is_empty() {
        if gpu_state::vgpu(facts).is_none() {
            return Weighing::not_applicable();
        }
        if let Some(origin) = readings::cuda_works(facts) {
            weighing.rules_out("cuInit answers 0", origin);
        }
        return weighing;
    }
    if facts.platform.vgpu_guest.value().is_none() && refusal.is_none() && !mismatched(facts) {
        weighing.needs(Need::VgpuVersions);
    }
    weighing
}

/// Both versions, as the manager's log has them.
fn managers_log(facts: &Facts, weighing: &mut Weighing) {
    let platform = &facts.platform;
    let (Some(manager), Some(guest)) =
        (platform.vgpu_manager.as_seen(), platform.vgpu_guest.as_seen())
    else {
        return;
    };
    let statement = format!("manager {}, guest driver {}", manager.value, guest.value);
    if guest.value.branch() > manager.value.branch() {
        weighing.supports(
            Strong,
            format!("{statement}: the guest is of a later branch"),
            &guest.origin,
        );
    } else if !weighing.support.is_empty() {
        weighing.supports(Weak, statement, &guest.origin);
    }
}

/// Xid 78.
fn started(facts: &Facts, weighing: &mut Weighing) {
    for burst in xid_burst::bursts(facts) {
        if let Some(xid) = burst.leading().filter(|lead| lead.number == 78) {
            weighing.supports(Strong, xid_burst::named(78), &xid.event.origin);
        }
    }
}

/// Libraries and module of one release's two sides.
fn mismatch(facts: &Facts, weighing: &mut Weighing) {
    let Some((client, module, origin)) = versions(facts) else { return };
    let pair = |a: &DriverVersion, b: &DriverVersion| {
        PAIRS.iter().any(|(host, guest)| a.to_string() == *host && b.to_string() == *guest)
    };
    let statement = format!("libraries {client}, module {module}");
    if pair(&module, &client) || pair(&client, &module) {
        let statement =
            format!("{statement}: the guest's and the host's package of one vGPU release");
        weighing.confirms(statement, &origin);
    } else if sisters(&client, &module)
        && let Some(vgpu) = gpu_state::vgpu(facts)
    {
        weighing.supports(
            Strong,
            format!("{statement}: they differ in the last part only"),
            &origin,
        );
        weighing.supports(Moderate, "vGPU is in play here", &vgpu);
    }
}

fn mismatched(facts: &Facts) -> bool {
    versions(facts).is_some_and(|(client, module, _)| sisters(&client, &module))
}

/// `570.148.06` and `570.148.08`.
fn sisters(a: &DriverVersion, b: &DriverVersion) -> bool {
    let head = |version: &DriverVersion| {
        let text = version.to_string();
        text.rsplit_once('.').map(|(head, _)| head.to_owned())
    };
    a.is_exact() && b.is_exact() && a != b && head(a) == head(b)
}

/// Client and module version: of the log's mismatch, or of the mapped library and the module.
fn versions(facts: &Facts) -> Option<(DriverVersion, DriverVersion, Origin)> {
    let logged = facts.log.events.iter().find_map(|event| {
        let client = DriverVersion::parse(event.get("client_version")?)?;
        let module = DriverVersion::parse(event.get("kernel_version")?)?;
        Some((client, module, event.origin.clone()))
    });
    logged.or_else(|| {
        let library = facts.library.cuda.as_seen()?;
        let client = library.value.version.clone()?;
        let module = readings::driver_version(facts)?.value;
        (client != module).then(|| (client, module, library.origin.clone()))
    })
}

fn remedy(facts: &Facts) -> Remedy {
    let module = versions(facts)
        .map_or("the manager's version".to_owned(), |(_, module, _)| module.to_string());
    Remedy::new(Impact::RecreatesContainer, "the container or guest in question")
        .step_to(
            Place::Host,
            format!("in containers on the host use the libraries of the host's own package, {module}"),
            "module and libraries of one machine come from one package",
        )
        .step_to(
            Place::Guest,
            "in guests install the guest driver of the manager's release, or of the branch before it",
            "the release notes list which pairs fit",
        )
        .step_to(
            Place::Hypervisor,
            "or bring the manager up to the guests' release: the host goes first",
            "a later manager takes earlier guests, never the other way round",
        )
        .undo("install the former package again")
        .verify("no new line of a mismatch, and nvidia-smi lists the GPU on both sides")
        .will_not_help("reloading the module or a reboot: both packages are whole, and of two sides")
        .will_not_help("downloading the package again: the two versions are meant to differ")
}
