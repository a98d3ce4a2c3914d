//! Which driver a CUDA toolkit came with, and which is the oldest that runs its programs.
//!
//! Table `cuda_toolkit_driver`: NVIDIA's release notes; the minimum drivers of CUDA 11, 12 and 13
//! from the page on minor-version compatibility.

use crate::number;
use crate::table::Row;
use crate::tables::CUDA_TOOLKIT_DRIVER;

/// One release of the toolkit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Toolkit {
    /// The release, such as `12.4 U1`.
    pub release: &'static str,
    /// Major and minor.
    pub version: (u32, u32),
    /// The driver in its Linux installer; features of the release may need it.
    pub bundled_driver: &'static str,
    /// The oldest driver that runs programs built with it, PTX and newest features aside.
    pub minimum_driver: &'static str,
}

impl Toolkit {
    fn of(row: Row) -> Toolkit {
        Toolkit {
            release: row.text("toolkit"),
            version: number::major_minor(row.text("toolkit")).unwrap_or_default(),
            bundled_driver: row.text("bundled_linux_driver"),
            minimum_driver: row.text("minimum_driver_by_minor_version_compat"),
        }
    }
}

/// All releases, by version and update.
pub fn all() -> impl Iterator<Item = Toolkit> {
    CUDA_TOOLKIT_DRIVER.rows().map(Toolkit::of)
}

/// The oldest driver that runs programs of CUDA `major`.`minor`. A minor version that is not
/// listed has the minimum of its major version, if that is one and the same for all listed.
pub fn minimum_driver(major: u32, minor: u32) -> Option<&'static str> {
    let exact = all().find(|toolkit| toolkit.version == (major, minor));
    exact.map(|toolkit| toolkit.minimum_driver).or_else(|| minimum_of_major(major))
}

fn minimum_of_major(major: u32) -> Option<&'static str> {
    let mut minimums =
        all().filter(|toolkit| toolkit.version.0 == major).map(|toolkit| toolkit.minimum_driver);
    let first = minimums.next()?;
    minimums.all(|minimum| minimum == first).then_some(first)
}

/// The driver that the first release of CUDA `major`.`minor` came with.
pub fn bundled_driver(major: u32, minor: u32) -> Option<&'static str> {
    all().find(|toolkit| toolkit.version == (major, minor)).map(|toolkit| toolkit.bundled_driver)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minimum_drivers_by_minor_version_compatibility() {
        assert_eq!(minimum_driver(11, 8), Some("450.80.02"));
        assert_eq!(minimum_driver(12, 0), Some("525.60.13"));
        assert_eq!(minimum_driver(12, 8), Some("525.60.13"));
        assert_eq!(minimum_driver(13, 0), Some("580.65.06"));
        assert_eq!(minimum_driver(13, 5), Some("580.65.06"), "not listed: by its major version");
        assert_eq!(minimum_driver(10, 1), Some("418.39"));
        assert_eq!(minimum_driver(10, 9), None, "before 11 each minor version had its own");
        assert_eq!(minimum_driver(14, 0), None);
    }

    #[test]
    fn bundled_drivers_are_those_of_the_first_release() {
        assert_eq!(bundled_driver(12, 4), Some("550.54.14"));
        assert_eq!(bundled_driver(13, 1), Some("590.44.01"));
        assert_eq!(bundled_driver(12, 7), None);
    }
}
