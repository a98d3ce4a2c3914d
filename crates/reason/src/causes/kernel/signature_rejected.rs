//! `kernel.signature-rejected`

use facts::model::module_message::{ModuleMessage, Refusal};
use facts::{Facts, Layer, Origin, Seen};

use super::{OnDisk, driver_absent, on_disk, ruled_out_by_running};
use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::machine::{self, Distribution};
use crate::need::Need;
use crate::readings;
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "kernel.signature-rejected",
    layer: Layer::Kernel,
    claim: "the kernel refuses the module's signature",
    explanation: "With Secure Boot on (or module.sig_enforce) the kernel takes only modules that are \
        signed by a key it trusts. A module that was compiled on the machine is signed by the \
        machine's own key, if at all, and that key counts only once it has been enrolled at the \
        next boot, in the blue MOK screen that is easily missed. modprobe says 'Key was rejected by \
        service' for an unknown key and 'Required key not available' for none. The log line 'module \
        verification failed … tainting kernel' is not this: there the module was taken.",
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
            id: "kernel.module-not-built",
            tell: "there is no module for this kernel, so that none can be refused",
        },
        LookAlike {
            id: "module.not-loaded",
            tell: "modprobe nvidia succeeds: nobody had asked for it",
        },
        LookAlike {
            id: "kernel.nouveau-bound",
            tell: "the module loads and finds no free device: 'No such device'",
        },
    ],
    references: &[
        "https://github.com/acidanthera/bugtracker/issues/2237",
        "https://github.com/lcp/mokutil/issues/69",
        "https://github.com/quo/ithc-linux/issues/22",
        "https://docs.kernel.org/admin-guide/module-signing.html",
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
    let refused = refusal(facts, &mut weighing);
    log(facts, refused, &mut weighing);
    boot(facts, &mut weighing);
    if let Some(origin) = &facts.host.secure_boot_cure {
        weighing.supports(Strong, "the driver is told to load once Secure Boot is off", origin);
    }
    if weighing.support.is_empty() && driver_absent(facts).is_some() {
        weighing.needs(Need::ModuleLoad);
        if !facts.host.secure_boot.is_seen() {
            weighing.needs(Need::SecureBoot);
        }
    }
    weighing
}

/// What modprobe says. Returns whether it is a matter of keys.
fn refusal(facts: &Facts, weighing: &mut Weighing) -> bool {
    let mut by_key = false;
    for seen in &facts.module.messages {
        if let ModuleMessage::OtherKeyRefused { module } = &seen.value {
            of_others(module, &seen.origin, weighing);
        }
        let ModuleMessage::Refused { module, refusal } = &seen.value else { continue };
        match refusal {
            Refusal::KeyRejected => {
                by_key = true;
                let statement = format!("loading {module} says: Key was rejected by service");
                weighing.confirms(statement, &seen.origin);
            }
            Refusal::KeyMissing => {
                by_key = true;
                let statement =
                    format!("loading {module} says that it is not signed by a trusted key");
                weighing.confirms(statement, &seen.origin);
            }
            Refusal::WrongFormat
            | Refusal::NoDevice
            | Refusal::UnknownSymbol
            | Refusal::PolicyDenied => {
                let statement = format!("loading {module} fails for another reason than its key");
                weighing.objects(Strong, statement, &seen.origin);
            }
            Refusal::NotPermitted | Refusal::Other => {}
        }
    }
    if let Some(seen) = not_found(facts).filter(|_| !by_key) {
        weighing.rules_out("there is no module that could be refused", &seen.origin);
    }
    by_key
}

/// Modules that are built here are signed with one key.
fn of_others(module: &str, origin: &Origin, weighing: &mut Weighing) {
    let statement = match module {
        "" => "the kernel refuses modules for their key".to_owned(),
        module => format!("the kernel refuses {module} for its key"),
    };
    weighing.supports(Moderate, statement, origin);
}

fn not_found(facts: &Facts) -> Option<&Seen<ModuleMessage>> {
    facts.module.messages.iter().find(|seen| {
        matches!(&seen.value, ModuleMessage::NotFound { module, .. } if readings::is_main_module(module))
    })
}

/// The kernel's own lines. That a verification failed is said of modules that it takes as well.
fn log(facts: &Facts, refused: bool, weighing: &mut Weighing) {
    if let Some(event) = facts.log.with("SIG_MISSING").next()
        && !refused
    {
        let statement = "the kernel took a module without a trusted signature and only noted it";
        weighing.rules_out(statement, &event.origin);
    }
    if let Some(origin) = readings::logged(facts, &["SIG_REJECT"]) {
        weighing.supports(
            Strong,
            "the kernel log says that an unsigned module is rejected",
            origin,
        );
    }
    let locked = facts
        .log
        .with("LOCKDOWN")
        .find(|event| event.get("what").is_some_and(|what| what.contains("unsigned module")));
    if let Some(event) = locked {
        weighing.supports(Strong, "lockdown keeps unsigned modules out", &event.origin);
    }
    if let Some(origin) = readings::logged(facts, &["SIG_PKCS7"]) {
        let statement = "the kernel log has a module whose signature is of no trusted key";
        weighing.supports(Moderate, statement, origin);
    }
}

/// Secure Boot by itself says little: signed modules load under it.
fn boot(facts: &Facts, weighing: &mut Weighing) {
    if let Some(seen) = facts.host.secure_boot.as_seen() {
        if !seen.value {
            weighing.objects(Moderate, "Secure Boot is off", &seen.origin);
        } else if !weighing.support.is_empty() || driver_absent(facts).is_some() {
            weighing.supports(Moderate, "Secure Boot is on", &seen.origin);
            if let OnDisk::Fits(path, origin) = on_disk(facts) {
                weighing.supports(Moderate, format!("{path} is there and not loaded"), &origin);
            }
        }
    }
    if let Some((failure, origin)) = driver_absent(facts)
        && !weighing.support.is_empty()
    {
        weighing.supports(Weak, failure, &origin);
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let place = machine::kernel_place(facts);
    let key = match machine::distribution(facts) {
        Distribution::Ubuntu => "/var/lib/shim-signed/mok/MOK.der",
        Distribution::Fedora => "/etc/pki/akmods/certs/public_key.der",
        _ => "/var/lib/dkms/mok.pub",
    };
    Remedy::new(Impact::Reboots, "everything on the machine, for one reboot")
        .step_to(place, "modinfo -F signer nvidia", "empty: the module is not signed, and DKMS must sign it first")
        .step_to(place, format!("mokutil --import {key}"), "asks for a password that is needed once at the next boot")
        .step_to(place, "reboot", "")
        .step_to(Place::Machine, "in the MOK screen: Enroll MOK, Continue, Yes, the password", "the screen waits ten seconds")
        .step_to(place, "modprobe -a nvidia nvidia_uvm", "loads it")
        .step_to(
            place,
            "or install modules that the distribution has signed (Ubuntu: linux-modules-nvidia-BRANCH-generic), or turn Secure Boot off in the firmware setup",
            "the other two ways",
        )
        .undo("mokutil --delete of the same key, and a reboot")
        .verify("mokutil --test-key of the file says that it is enrolled, and gpudx is healthy")
        .will_not_help("reinstalling the driver: the new module has the same key")
        .will_not_help("another CUDA toolkit or framework: there is no driver beneath them")
}
