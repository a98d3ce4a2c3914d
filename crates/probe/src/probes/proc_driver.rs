//! The driver's own files under /proc/driver/nvidia.
//!
//! Some of them wait for the driver's lock and hang with it, so each read is announced before it
//! is made, and those that take no lock come first.

use super::Options;
use super::reader::Reader;
use crate::child::report::Report;

const FOLDER: &str = "/proc/driver/nvidia";

/// Files that take at most the lock of power management.
const CALM_FILES: [&str; 6] = [
    "version",
    "params",
    "registry",
    "capabilities/mig/config",
    "capabilities/mig/monitor",
    "capabilities/fabric-imex-mgmt",
];

/// Reads them.
pub(super) fn run(report: &mut Report, options: &Options) {
    let reader = Reader::new(&options.root);
    if reader.metadata(FOLDER).is_none() {
        reader.file(report, &format!("{FOLDER}/version"));
        return;
    }
    for name in CALM_FILES {
        reader.risky_file(report, &format!("{FOLDER}/{name}"));
    }
    for path in reader.matches(&format!("{FOLDER}/warnings/*")) {
        reader.risky_file(report, &path);
    }
    let gpus = reader.listing(report, &format!("{FOLDER}/gpus"));
    // `information` takes the lock of the resource manager once a GPU is initialized; `power`
    // takes the GPU's lock too (nv-procfs.c).
    for name in ["registry", "information", "power"] {
        for gpu in &gpus {
            reader.risky_file(report, &format!("{FOLDER}/gpus/{gpu}/{name}"));
        }
    }
}
