//! Causes in the nvidia kernel module, and the commands that they share.

use facts::{Facts, Origin};

use crate::machine;
use crate::readings;
use crate::remedy::{Impact, Remedy};

pub(super) mod deadlock;
pub(super) mod gpu_unsupported;
pub(super) mod needs_open;
pub(super) mod not_loaded;
pub(super) mod open_unsupported;
pub(super) mod rm_init_failed;
pub(super) mod uptime_hang;
pub(super) mod version_skew;

/// Takes the modules out in the order of their dependence and loads them again.
const RELOAD: &str =
    "modprobe -r nvidia_drm nvidia_modeset nvidia_uvm nvidia && modprobe -a nvidia nvidia_uvm";

/// A remedy that ends in the modules being loaded anew.
fn reload() -> Remedy {
    Remedy::new(Impact::ReloadsModule, "every program that uses a GPU, in all containers")
}

/// Adds the step that loads the modules anew.
fn reload_step(facts: &Facts, remedy: Remedy) -> Remedy {
    remedy.step_to(
        machine::kernel_place(facts),
        RELOAD,
        "stop nvidia-persistenced and every GPU program first; a reboot does the same",
    )
}

/// Where it was seen that the driver does not bring its GPUs up.
fn gpus_down(facts: &Facts) -> Option<(String, Origin)> {
    if let Some(origin) = readings::logged(facts, &["RMINIT_FAILED", "RM_INIT_ADAPTER"]) {
        return Some(("RmInitAdapter fails".to_owned(), origin.clone()));
    }
    if let Some(seen) = facts.nvml.count.as_seen().filter(|seen| seen.value == 0) {
        return Some(("NVML counts no GPU".to_owned(), seen.origin.clone()));
    }
    if let Some((number, origin)) = readings::nvml_failure(facts) {
        return Some((format!("NVML answers {number}"), origin));
    }
    let trial = readings::init_failed_with(facts, readings::code::NO_DEVICE)?;
    Some(("cuInit answers 100, no device".to_owned(), trial.origin.clone()))
}
