//! What puts the versions right, which depends on the one that is odd.

use facts::Facts;

use super::super::{reload, reload_step};
use super::versions::{Odd, odd};
use crate::machine::{self, Distribution};
use crate::readings;
use crate::remedy::{Impact, Place, Remedy};

/// The remedy on this machine.
pub(super) fn remedy(facts: &Facts) -> Remedy {
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
            format!(
                "apt install --allow-downgrades 'libnvidia-compute-{branch}={version}*' 'nvidia-utils-{branch}={version}*'"
            )
        }
        Distribution::Debian | Distribution::Proxmox => {
            format!(
                "apt install --allow-downgrades 'libcuda1={version}*' 'libnvidia-ml1={version}*'"
            )
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
