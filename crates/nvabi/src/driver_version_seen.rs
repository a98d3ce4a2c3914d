//! Driver versions that are known to exist, and where each was seen.
//!
//! Table `driver_versions_seen`: google/gvisor 3c5eee17 and the tags of
//! NVIDIA/open-gpu-kernel-modules.

use crate::table::Row;
use crate::tables::DRIVER_VERSIONS_SEEN;

/// One version in one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DriverVersionSeen {
    /// The version, such as `535.183.01`.
    pub version: &'static str,
    /// Where it was seen.
    pub seen_in: &'static str,
    /// Whether gVisor supports it: `tested`, `abi-node-only` or empty.
    pub gvisor_status: &'static str,
    /// SHA-256 of the x86-64 installer. May be empty.
    pub installer_sha256: &'static str,
}

impl DriverVersionSeen {
    fn of(row: Row) -> DriverVersionSeen {
        DriverVersionSeen {
            version: row.text("version"),
            seen_in: row.text("source"),
            gvisor_status: row.text("gvisor_status"),
            installer_sha256: row.text("run_installer_sha256_x86_64"),
        }
    }
}

/// The places in which a version was seen.
pub fn by_version(version: &str) -> impl Iterator<Item = DriverVersionSeen> {
    all().filter(move |seen| seen.version == version)
}

/// All versions, in order; one that was seen in two places is there twice.
pub fn all() -> impl Iterator<Item = DriverVersionSeen> {
    DRIVER_VERSIONS_SEEN.rows().map(DriverVersionSeen::of)
}
