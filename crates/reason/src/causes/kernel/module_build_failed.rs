//! `kernel.module-build-failed`

use facts::model::module_message::{BuildFault, ModuleMessage};
use facts::{Facts, Layer, Seen};

use super::{
    OnDisk, driver_absent, install_headers, may_be_running, on_disk, rebuild, ruled_out_by_running,
};
use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::machine::{self, Distribution};
use crate::need::Need;
use crate::readings;
use crate::remedy::{Impact, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "kernel.module-build-failed",
    layer: Layer::Kernel,
    claim: "the module's source does not compile on this kernel or with this compiler",
    explanation: "The part of the driver that touches the kernel is compiled on each machine, \
        against the kernel's headers and with its flags. A kernel newer than the driver release has \
        interfaces that the source does not know ('implicit declaration of function'), and a \
        compiler older than the kernel's does not know its flags ('unrecognized command-line \
        option'). The build ends in make.log, the packages count as half installed, and there is \
        no module for that kernel. The warning that the compiler differs is harmless by itself.",
    explains: &[
        SymptomId::DriverAbsent,
        SymptomId::NvmlFails,
        SymptomId::CudaInitFails,
        SymptomId::GpuMissing,
        SymptomId::ContainerRefused,
        SymptomId::FrameworkNoGpu,
    ],
    specializes: &["kernel.module-not-built", "module.not-loaded"],
    look_alikes: &[
        LookAlike {
            id: "kernel.module-not-built",
            tell: "nothing was built for this kernel, and no log of a build ends in an error",
        },
        LookAlike {
            id: "framework.toolkit-mismatch",
            tell: "the errors come from an extension or nvcc, not from the driver's sources",
        },
        LookAlike {
            id: "kernel.signature-rejected",
            tell: "the build succeeds, and loading the module says that its key was rejected",
        },
    ],
    references: &[
        "https://github.com/NVIDIA/open-gpu-kernel-modules/issues/642",
        "https://github.com/NVIDIA/open-gpu-kernel-modules/issues/837",
        "https://github.com/pop-os/pop/issues/3117",
        "https://github.com/Plippo/asus-wmi-screenpad/issues/41",
        "https://github.com/NVIDIA/open-gpu-kernel-modules/pull/1168",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    if machine::has_other_driver(facts) {
        return Weighing::not_applicable();
    }
    let mut weighing = Weighing::new();
    let failure = failure(facts);
    let fault = fault(facts);
    if failure.is_none() && fault.is_none() {
        if driver_absent(facts).is_some() {
            weighing.needs(Need::BuildLog);
        }
        return weighing;
    }
    if ruled_out_by_running(facts, &mut weighing) {
        return weighing;
    }
    if let OnDisk::Fits(path, origin) = on_disk(facts) {
        weighing.rules_out(format!("{path} was built for the running kernel"), &origin);
        return weighing;
    }
    if let Some(failure) = failure {
        failed(facts, failure, &mut weighing);
    }
    if let Some((fault, of_nvidia, seen)) = fault {
        stopped(fault, of_nvidia, failure, seen, &mut weighing);
    }
    around(facts, &mut weighing);
    weighing
}

/// The first word of a failed build, one that names nvidia before one that names nothing.
fn failure(facts: &Facts) -> Option<&Seen<ModuleMessage>> {
    let messages = &facts.module.messages;
    let of_nvidia = |seen: &&Seen<ModuleMessage>| {
        matches!(seen.value, ModuleMessage::BuildFailed { of_nvidia: true, .. })
    };
    let any = |seen: &&Seen<ModuleMessage>| matches!(seen.value, ModuleMessage::BuildFailed { .. });
    messages.iter().find(of_nvidia).or_else(|| messages.iter().find(any))
}

/// The first thing that stopped a compiler, in the driver's files before elsewhere. Errors in files
/// of other software count only with the kernel's build system around them.
fn fault(facts: &Facts) -> Option<(&BuildFault, bool, &Seen<ModuleMessage>)> {
    let faults = || {
        facts.module.messages.iter().filter_map(|seen| match &seen.value {
            ModuleMessage::BuildFault { fault, of_nvidia } => Some((fault, *of_nvidia, seen)),
            _ => None,
        })
    };
    let of_kernel_build = |fault: &BuildFault| match fault {
        BuildFault::CompilerFlag(_) | BuildFault::CompilerCheck => true,
        BuildFault::CompilerMissing(_) => failure(facts).is_some() || compiler_differs(facts),
        BuildFault::Interface(_) | BuildFault::Header(_) | BuildFault::LicensedSymbol(_) => false,
    };
    faults()
        .find(|(_, of_nvidia, _)| *of_nvidia)
        .or_else(|| faults().find(|(fault, _, _)| of_kernel_build(fault)))
}

fn compiler_differs(facts: &Facts) -> bool {
    facts.module.messages.iter().any(|seen| seen.value == ModuleMessage::CompilerDiffers)
}

/// A build that failed. DKMS builds for kernels that do not run yet as well.
fn failed(facts: &Facts, seen: &Seen<ModuleMessage>, weighing: &mut Weighing) {
    let ModuleMessage::BuildFailed { kernel, of_nvidia } = &seen.value else { return };
    let target = kernel.as_deref().map_or(String::new(), |kernel| format!(" for {kernel}"));
    if !may_be_running(facts, kernel.as_deref()) {
        let statement = format!("the build failed{target}, which is not the running kernel");
        weighing.supports(Moderate, statement, &seen.origin);
    } else if *of_nvidia {
        weighing.confirms(format!("the build of the nvidia module failed{target}"), &seen.origin);
    } else {
        weighing.supports(Strong, format!("DKMS could not build a module{target}"), &seen.origin);
    }
}

/// What stopped it.
fn stopped(
    fault: &BuildFault,
    of_nvidia: bool,
    failure: Option<&Seen<ModuleMessage>>,
    seen: &Seen<ModuleMessage>,
    weighing: &mut Weighing,
) {
    let statement = match fault {
        BuildFault::Interface(message) => {
            format!("the source does not fit this kernel's interfaces: {message}")
        }
        BuildFault::Header(file) => format!("the build lacks {file}"),
        BuildFault::CompilerFlag(flag) => {
            format!("the compiler does not know {flag}, with which this kernel is built")
        }
        BuildFault::CompilerCheck => {
            "the build refuses a compiler other than the kernel's".to_owned()
        }
        BuildFault::CompilerMissing(name) => {
            format!("the kernel's compiler {name} is not installed")
        }
        BuildFault::LicensedSymbol(symbol) => {
            format!("the kernel gives {symbol} to modules under the GPL alone")
        }
    };
    match (of_nvidia, failure.is_some()) {
        // An error of the compiler in a file of the driver leaves no other reading.
        (true, _) => weighing.confirms(statement, &seen.origin),
        (false, true) => weighing.supports(Strong, statement, &seen.origin),
        (false, false) => weighing.supports(Moderate, statement, &seen.origin),
    };
}

/// What fits a failed build.
fn around(facts: &Facts, weighing: &mut Weighing) {
    for seen in &facts.module.messages {
        match &seen.value {
            ModuleMessage::CompilerDiffers => {
                let statement = "the kernel was built by another compiler than the one in use";
                weighing.supports(Moderate, statement, &seen.origin);
            }
            ModuleMessage::NotFound { module, .. } if readings::is_main_module(module) => {
                weighing.supports(Weak, "there is no module for this kernel", &seen.origin);
            }
            _ => {}
        }
    }
    if let Some((failure, origin)) = driver_absent(facts) {
        weighing.supports(Weak, failure, &origin);
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let place = machine::kernel_place(facts);
    let remedy =
        Remedy::new(Impact::None, "nothing; a reboot into the other kernel if that way is taken");
    let remedy = match fault(facts).map(|(fault, ..)| fault) {
        Some(
            BuildFault::CompilerFlag(_)
            | BuildFault::CompilerCheck
            | BuildFault::CompilerMissing(_),
        ) => remedy
            .step_to(place, "cat /proc/version", "names the compiler of the kernel")
            .step_to(place, install_compiler(facts), "the same major version as the kernel's")
            .step_to(
                place,
                "update-alternatives --config gcc, or CC=gcc-VERSION before the build",
                "lets the build use it",
            ),
        Some(BuildFault::Header(_)) => remedy.step_to(
            place,
            install_headers(facts),
            "the build needs exactly the running kernel's",
        ),
        Some(BuildFault::Interface(_) | BuildFault::LicensedSymbol(_)) | None => remedy
            .step_to(
                place,
                "install the newest release of this driver branch",
                "point releases follow the kernel's interfaces",
            )
            .step_to(
                place,
                "or boot the kernel for which the module was built, and hold it",
                "until such a release is there",
            ),
    };
    remedy
        .step_to(place, rebuild(facts), "builds again")
        .step_to(place, "modprobe -a nvidia nvidia_uvm", "loads it")
        .undo("install the earlier release, or boot the earlier kernel")
        .verify("dkms status says installed for $(uname -r), and gpudx is healthy")
        .will_not_help("installing the same release again: the same source meets the same kernel")
        .will_not_help("another CUDA toolkit or framework: there is no driver beneath them")
}

fn install_compiler(facts: &Facts) -> &'static str {
    match machine::distribution(facts) {
        Distribution::Debian | Distribution::Ubuntu | Distribution::Proxmox => {
            "apt install gcc-VERSION (12 for a kernel built by gcc 12)"
        }
        Distribution::Fedora | Distribution::Rhel => {
            "dnf install gcc-toolset-VERSION, or the distribution's own gcc"
        }
        _ => "install the kernel's gcc",
    }
}
