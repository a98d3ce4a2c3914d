//! Causes between the kernel and the driver's modules, and what they share.

use facts::model::module::ModuleFile;
use facts::version::KernelRelease;
use facts::{Facts, Observed, Origin};

use crate::machine::{self, Distribution};
use crate::readings::{self, code};
use crate::weigh::Weighing;

pub(super) mod lacks_sva;
pub(super) mod module_build_failed;
pub(super) mod module_not_built;
pub(super) mod nouveau_bound;
pub(super) mod signature_rejected;

/// A module that runs was built, found and taken. Returns whether that rules the cause out.
fn ruled_out_by_running(facts: &Facts, weighing: &mut Weighing) -> bool {
    if let Some(origin) = readings::module_runs(facts) {
        weighing.rules_out("the nvidia module runs on this kernel", &origin);
    } else if let Some(origin) = readings::cuda_works(facts) {
        weighing.rules_out("cuInit answers 0", origin);
    } else if let Some(origin) = readings::nvml_failed_with(facts, code::NVML_VERSION_MISMATCH) {
        weighing.rules_out("NVML answers 18, so it reached a module", &origin);
    } else {
        return false;
    }
    true
}

/// Where it was seen that there is no driver to talk to.
fn driver_absent(facts: &Facts) -> Option<(&'static str, Origin)> {
    if let Some(origin) = readings::nvml_failed_with(facts, code::NVML_DRIVER_NOT_LOADED) {
        return Some(("NVML answers 9, driver not loaded", origin));
    }
    if let Some(origin) = facts.module.loaded("nvidia").absent() {
        return Some(("nvidia is not among the loaded modules", origin.clone()));
    }
    if let Some(origin) = facts.module.nvrm.absent() {
        return Some(("/proc/driver/nvidia is not there", origin.clone()));
    }
    let trial = readings::init_failed_with(facts, code::NO_DEVICE)?;
    Some(("cuInit answers 100, no device", trial.origin.clone()))
}

/// What the module files on disk say of the running kernel.
enum OnDisk {
    /// One is there for it: path and origin.
    Fits(String, Origin),
    /// Those that are there are for other kernels: which, and origin.
    OthersOnly(String, Origin),
    /// The running kernel's list was read, and there is none at all.
    None(Origin),
    /// Not known.
    Unknown,
}

/// Whether a reading shows that this is a container. A report that merely speaks of containers may
/// be of their host.
fn surely_in_container(facts: &Facts) -> bool {
    let told = |origin: &Origin| origin.item.starts_with("text:");
    machine::in_container(facts) && !facts.host.container.origin().is_some_and(told)
}

/// A container's /lib/modules says nothing of the host's.
fn on_disk(facts: &Facts) -> OnDisk {
    if surely_in_container(facts) {
        return OnDisk::Unknown;
    }
    match &facts.module.on_disk {
        Observed::Absent(origin) => OnDisk::None(origin.clone()),
        Observed::Denied(..) | Observed::Unknown(_) => OnDisk::Unknown,
        Observed::Seen(files) => {
            let own: Vec<&ModuleFile> =
                files.value.iter().filter(|file| readings::is_main_module(&file.name)).collect();
            let Some(release) = facts.host.kernel.value().map(KernelRelease::as_str) else {
                return OnDisk::Unknown;
            };
            if let Some(file) = own.iter().find(|file| fits(file, release)) {
                return OnDisk::Fits(file.path.clone(), file.origin.clone());
            }
            let kernels: Vec<&str> = own.iter().filter_map(|file| file.kernel.as_deref()).collect();
            match own.first() {
                Some(file) if kernels.len() == own.len() => {
                    OnDisk::OthersOnly(kernels.join(", "), file.origin.clone())
                }
                _ => OnDisk::Unknown,
            }
        }
    }
}

fn fits(file: &ModuleFile, release: &str) -> bool {
    let folder = file.kernel.as_deref() == Some(release);
    folder && file.vermagic.as_deref().is_none_or(|built_for| built_for == release)
}

/// Whether a release that a message names is the running kernel's, or may be.
fn may_be_running(facts: &Facts, release: Option<&str>) -> bool {
    let running = facts.host.kernel.value().map(KernelRelease::as_str);
    match (release, running) {
        (Some(named), Some(running)) => named == running,
        (None, _) | (_, None) => true,
    }
}

/// The command that installs the headers of the running kernel.
fn install_headers(facts: &Facts) -> &'static str {
    match machine::distribution(facts) {
        Distribution::Proxmox => "apt install proxmox-headers-$(uname -r)",
        Distribution::Debian | Distribution::Ubuntu => "apt install linux-headers-$(uname -r)",
        Distribution::Fedora | Distribution::Rhel => {
            "dnf install kernel-devel-$(uname -r) kernel-headers"
        }
        Distribution::Suse => {
            "zypper install kernel-default-devel=$(uname -r | sed 's/-default//')"
        }
        Distribution::Arch => "pacman -S linux-headers (linux-lts-headers for that kernel)",
        Distribution::Nixos => "nothing: boot.kernelPackages brings them",
        Distribution::Other => "install the headers of $(uname -r)",
    }
}

/// The command that builds the module for the running kernel.
fn rebuild(facts: &Facts) -> &'static str {
    match machine::distribution(facts) {
        Distribution::Nixos => "nixos-rebuild boot, then reboot",
        Distribution::Fedora => {
            "akmods --force --kernels $(uname -r) (NVIDIA's repository: dkms autoinstall -k $(uname -r))"
        }
        _ => "dkms autoinstall -k $(uname -r)",
    }
}
