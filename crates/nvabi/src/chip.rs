//! Chips: architecture, compute capability, GSP firmware, and which flavour of the kernel modules
//! drives them.
//!
//! Table `chips`: NVIDIA/open-gpu-kernel-modules, pci.ids.

use crate::number;
use crate::table::Row;
use crate::tables::CHIPS;

/// Whether the open kernel modules drive a chip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenSupport {
    /// They do not.
    No,
    /// They do, and so does the proprietary flavour.
    Yes,
    /// They alone do.
    Required,
}

/// One chip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chip {
    /// The name, such as `GB202`.
    pub chip: &'static str,
    /// The architecture, such as `Blackwell`.
    pub architecture: &'static str,
    /// The compute capability, as of CUDA 13.
    pub capability: (u32, u32),
    /// The GSP firmware family, such as `gb20x`; `None` for chips without GSP.
    pub gsp_family: Option<&'static str>,
    /// The firmware file since branch 535, such as `gsp_ga10x.bin`.
    pub gsp_file: Option<&'static str>,
    /// The ELF section that a file for this chip carries, such as `.fwsignature_gb20x`.
    pub signature_section: Option<&'static str>,
    /// Whether the open modules drive it.
    pub open: OpenSupport,
    /// Whether the proprietary modules drive it.
    pub proprietary: bool,
    /// The last branch of the proprietary modules that drives it, when later ones do not.
    pub proprietary_last_branch: Option<u32>,
    /// The first tag of the open modules whose README lists a board with it.
    pub first_open_tag: Option<&'static str>,
}

impl Chip {
    fn of(row: Row) -> Chip {
        let proprietary = row.text("proprietary_modules");
        let last_branch = proprietary.rsplit_once("up to ").map(|(_, branch)| branch);
        Chip {
            chip: row.text("chip"),
            architecture: row.text("architecture"),
            capability: number::major_minor(row.text("compute_capability")).unwrap_or_default(),
            gsp_family: number::filled(row.text("gsp_family")),
            gsp_file: number::filled(row.text("gsp_file_since_535")),
            signature_section: section(row.text("gsp_signature_section")),
            open: match row.text("open_modules") {
                "yes" => OpenSupport::Yes,
                "required" => OpenSupport::Required,
                _ => OpenSupport::No,
            },
            proprietary: proprietary.starts_with("yes"),
            proprietary_last_branch: last_branch.and_then(|branch| branch.parse().ok()),
            first_open_tag: number::filled(row.text("first_open_tag_with_a_board")),
        }
    }
}

/// The section's name without the remark on confidential computing that follows some.
fn section(cell: &'static str) -> Option<&'static str> {
    number::filled(cell.split(' ').next().unwrap_or(""))
}

/// The chip of that name, case aside.
pub fn by_name(name: &str) -> Option<Chip> {
    CHIPS.find("chip", name).map(Chip::of)
}

/// All chips, by compute capability.
pub fn all() -> impl Iterator<Item = Chip> {
    CHIPS.rows().map(Chip::of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flagship_chip_and_an_old_one() {
        let blackwell = by_name("gb202").unwrap();
        assert_eq!(blackwell.capability, (12, 0));
        assert_eq!(blackwell.gsp_file, Some("gsp_ga10x.bin"));
        assert_eq!(blackwell.signature_section, Some(".fwsignature_gb20x"));
        assert_eq!((blackwell.open, blackwell.proprietary), (OpenSupport::Required, false));
        let volta = by_name("GV100").unwrap();
        assert_eq!((volta.gsp_family, volta.gsp_file), (None, None));
        assert_eq!((volta.open, volta.proprietary_last_branch), (OpenSupport::No, Some(580)));
        let hopper = by_name("GH100").unwrap();
        assert_eq!(hopper.signature_section, Some(".fwsignature_gh100"));
        assert_eq!((hopper.proprietary, hopper.proprietary_last_branch), (true, None));
    }

    #[test]
    fn every_chip_has_a_capability_and_a_driver() {
        for chip in all() {
            assert!(chip.capability >= (5, 0), "{chip:?}");
            assert!(chip.proprietary || chip.open != OpenSupport::No, "{chip:?}");
            assert_eq!(chip.gsp_family.is_some(), chip.capability >= (7, 5), "{chip:?}");
        }
    }
}
