//! `kernel.module-not-built`

use facts::model::module_message::{ModuleMessage, Refusal};
use facts::version::KernelRelease;
use facts::{Facts, Layer, Origin};

use super::{
    OnDisk, driver_absent, install_headers, may_be_running, on_disk, rebuild, ruled_out_by_running,
    surely_in_container,
};
use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::machine;
use crate::need::Need;
use crate::readings;
use crate::remedy::{Impact, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "kernel.module-not-built",
    layer: Layer::Kernel,
    claim: "no nvidia module exists for the running kernel",
    explanation: "A kernel module is built for one release of the kernel and lies in that release's \
        folder under /lib/modules. After an update of the kernel the new release has none until \
        DKMS, akmods or a package builds or brings one: an installation with NVIDIA's .run file \
        and without DKMS never gets it, and DKMS builds nothing while the headers of that kernel \
        are missing. modprobe then finds no module nvidia, and everything above answers that \
        there is no driver.",
    explains: &[
        SymptomId::DriverAbsent,
        SymptomId::NvmlFails,
        SymptomId::CudaInitFails,
        SymptomId::GpuMissing,
        SymptomId::ContainerRefused,
        SymptomId::FrameworkNoGpu,
    ],
    specializes: &["module.not-loaded"],
    look_alikes: &[
        LookAlike {
            id: "module.not-loaded",
            tell: "the running kernel's folder has the module, and modprobe nvidia succeeds",
        },
        LookAlike {
            id: "kernel.module-build-failed",
            tell: "a build for this kernel was tried, and its make.log ends in an error",
        },
        LookAlike {
            id: "kernel.signature-rejected",
            tell: "the module is found, and loading it says that its key was rejected",
        },
        LookAlike {
            id: "module.version-skew",
            tell: "a module runs, and only its release differs from the libraries'",
        },
    ],
    references: &[
        "https://github.com/NVIDIA/nvidia-docker/issues/365",
        "https://github.com/dell/dkms",
        "https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    if machine::has_other_driver(facts) {
        return Weighing::not_applicable();
    }
    if ruled_out_by_running(facts, &mut weighing) {
        return weighing;
    }
    messages(facts, &mut weighing);
    vermagic(facts, &mut weighing);
    files(facts, &mut weighing);
    dkms(facts, &mut weighing);
    if weighing.support.is_empty() {
        weighing.needs(Need::ModulesOnDisk);
    } else if let Some((failure, origin)) = driver_absent(facts) {
        weighing.supports(Weak, failure, &origin);
    }
    weighing
}

/// modprobe and modinfo search the running kernel's folder; inside a container that folder is the
/// image's and empty.
fn messages(facts: &Facts, weighing: &mut Weighing) {
    for message in &facts.module.messages {
        match &message.value {
            ModuleMessage::NotFound { module, kernel } if readings::is_main_module(module) => {
                let of = kernel.as_deref().unwrap_or("the running kernel");
                let statement = format!("no module {module} is found for {of}");
                if surely_in_container(facts) {
                    let statement = format!("{statement}, but that was asked in a container");
                    weighing.supports(Weak, statement, &message.origin);
                } else if machine::in_container(facts) {
                    weighing.supports(Strong, statement, &message.origin);
                } else if may_be_running(facts, kernel.as_deref()) {
                    weighing.confirms(statement, &message.origin);
                } else {
                    weighing.supports(Weak, statement, &message.origin);
                }
            }
            ModuleMessage::NotFound { module, kernel }
                if is_sibling(facts, module)
                    && may_be_running(facts, kernel.as_deref())
                    && !surely_in_container(facts) =>
            {
                // Built and installed together with the main one.
                let of = kernel.as_deref().unwrap_or("the running kernel");
                let statement = format!("no module {module} is found for {of}");
                let strength = if machine::in_container(facts) { Weak } else { Strong };
                weighing.supports(strength, statement, &message.origin);
            }
            ModuleMessage::Refused { module, refusal } if readings::is_main_module(module) => {
                refused(facts, *refusal, &message.origin, weighing);
            }
            ModuleMessage::HeadersMissing { kernel }
                if may_be_running(facts, kernel.as_deref()) =>
            {
                let statement = "the headers of this kernel, which a build needs, are missing";
                weighing.supports(Moderate, statement, &message.origin);
            }
            _ => {}
        }
    }
}

/// A file that the kernel refused is there; one in the format of another kernel was not built for
/// this one.
fn refused(facts: &Facts, refusal: Refusal, origin: &Origin, weighing: &mut Weighing) {
    if refusal != Refusal::WrongFormat {
        weighing.rules_out("the module was found: the kernel refused it", origin);
    } else if facts.log.with("VERMAGIC").next().is_some() {
        weighing.supports(Weak, "the kernel refuses the module's format", origin);
    } else {
        let statement = "the kernel refuses the module's format, as of one for another kernel";
        weighing.supports(Moderate, statement, origin);
    }
}

/// The kernel's own word on what a module was built for.
fn vermagic(facts: &Facts, weighing: &mut Weighing) {
    let line = facts.log.with("VERMAGIC").find(|event| {
        event.get("mod").is_some_and(|name| readings::is_main_module(&name.replace('-', "_")))
    });
    let Some(event) = line else { return };
    let release = |group: &str| {
        let magic = event.get(group).unwrap_or("");
        magic.split(' ').next().unwrap_or("").to_owned()
    };
    let (built, wanted) = (release("a"), release("b"));
    if built != wanted && may_be_running(facts, Some(&wanted)) {
        let statement = format!("the module is built for {built}, and the kernel is {wanted}");
        weighing.confirms(statement, &event.origin);
    } else {
        weighing.supports(Strong, "the module's version magic is not the kernel's", &event.origin);
    }
}

/// A module that is built and installed together with the main one. That nvidia_uvm is lacking
/// says so only where there is no driver at all: distributions have left it out alone.
fn is_sibling(facts: &Facts, module: &str) -> bool {
    readings::is_display_module(module) || module == "nvidia_uvm" && driver_absent(facts).is_some()
}

fn files(facts: &Facts, weighing: &mut Weighing) {
    let absent = driver_absent(facts).filter(|_| !facts.module.on_disk_in_part);
    let (statement, origin) = match on_disk(facts) {
        OnDisk::Fits(path, origin) => {
            weighing.rules_out(format!("{path} is there for the running kernel"), &origin);
            return;
        }
        OnDisk::OthersOnly(kernels, origin) => {
            (format!("nvidia modules are there for {kernels}, not for the running kernel"), origin)
        }
        OnDisk::None(origin) => {
            ("the running kernel's list of modules has no nvidia".to_owned(), origin)
        }
        OnDisk::Unknown => return,
    };
    // A pasted list of files may lack the very line that matters.
    match absent {
        Some(_) if !origin.is_pasted() => weighing.confirms(statement, &origin),
        Some(_) | None => weighing.supports(Strong, statement, &origin),
    };
}

/// DKMS's own list: what it has installed, and for which kernels.
fn dkms(facts: &Facts, weighing: &mut Weighing) {
    let Some(release) = facts.host.kernel.value().map(KernelRelease::as_str) else { return };
    let rows = &facts.module.dkms;
    let own = rows.iter().find(|row| row.value.kernel.as_deref() == Some(release));
    if let Some(row) = own.filter(|row| row.value.state == "installed") {
        let statement = format!("DKMS has {} installed for {release}", row.value.version);
        weighing.objects(Strong, statement, &row.origin);
    } else if let (None, Some(row)) = (own, rows.first()) {
        let statement = match &row.value.kernel {
            Some(kernel) => {
                format!("DKMS has {} for {kernel} and not for {release}", row.value.name)
            }
            None => format!("DKMS has {} only added, built for no kernel", row.value.name),
        };
        weighing.supports(Strong, statement, &row.origin);
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let place = machine::kernel_place(facts);
    Remedy::new(Impact::None, "nothing")
        .step_to(place, install_headers(facts), "the build needs exactly the running kernel's")
        .step_to(place, rebuild(facts), "builds the module for this kernel; its errors are the next clue")
        .step_to(place, "modprobe -a nvidia nvidia_uvm", "loads it")
        .step_to(
            place,
            "dkms status",
            "no nvidia in it: the driver came by a .run file without DKMS; install it again with --dkms, or from packages",
        )
        .undo("boot the previous kernel, which still has its module")
        .verify("modinfo -F filename nvidia prints a path below /lib/modules/$(uname -r)")
        .will_not_help("reinstalling the container toolkit, CUDA or a framework: the kernel has no driver")
        .will_not_help("copying nvidia.ko from another kernel's folder: the kernel refuses its format")
}
