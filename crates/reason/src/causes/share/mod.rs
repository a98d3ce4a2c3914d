//! Causes in the sharing of a GPU, and the questions that they share.

use facts::version::DriverVersion;
use facts::{Facts, Origin};

use crate::readings;

pub(super) mod compute_mode;
pub(super) mod memory_full;
pub(super) mod mig_one_per_process;
pub(super) mod mps_unreachable;
pub(super) mod mps_version_skew;

/// A libcuda of a newer release than the driver: its version, the driver's, where it was seen.
fn newer_client(facts: &Facts) -> Option<(DriverVersion, DriverVersion, Origin)> {
    let driver = readings::driver_version(facts)?.value;
    let library = facts.library.cuda.as_seen()?;
    let own = library.value.version.clone()?;
    (own > driver).then(|| (own, driver, library.origin.clone()))
}
