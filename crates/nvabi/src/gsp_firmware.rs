//! GSP firmware: which file the driver of a branch asks for, and the section it must carry for a
//! chip family. `gsp_ga10x.bin` also serves Ada, Hopper and Blackwell; its sections tell.
//!
//! Table `gsp_firmware`: `nv-firmware.h` of NVIDIA/open-gpu-kernel-modules.

use crate::number;
use crate::table::Row;
use crate::tables::GSP_FIRMWARE;

/// What a branch asks for on a chip family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GspFile {
    /// The driver branch.
    pub branch: u32,
    /// The family, such as `GB20X`.
    pub family: &'static str,
    /// The chips of the family, separated by spaces.
    pub chips: &'static str,
    /// The file below `/lib/firmware/nvidia/<version>/`.
    pub file: &'static str,
    /// The ELF section that must be there.
    pub signature_section: &'static str,
    /// The section that must be there instead under confidential computing.
    pub confidential_section: Option<&'static str>,
}

impl GspFile {
    fn of(row: Row) -> GspFile {
        GspFile {
            branch: row.number_u32("branch").unwrap_or(0),
            family: row.text("family"),
            chips: row.text("chips"),
            file: row.text("file"),
            signature_section: row.text("signature_section"),
            confidential_section: number::filled(
                row.text("signature_section_confidential_computing"),
            ),
        }
    }
}

/// The file for a family, case aside, in a branch. A branch that is not listed goes by the nearest
/// older one. `None` when the branch does not know the family, or is older than GSP firmware.
pub fn file_for(branch: u32, family: &str) -> Option<GspFile> {
    let listed = all().map(|file| file.branch).filter(|listed| *listed <= branch).max()?;
    all().find(|file| file.branch == listed && file.family.eq_ignore_ascii_case(family))
}

/// All rows, by branch and family.
pub fn all() -> impl Iterator<Item = GspFile> {
    GSP_FIRMWARE.rows().map(GspFile::of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chip;

    #[test]
    fn files_by_branch() {
        let file = |branch, family| file_for(branch, family).map(|row| row.file);
        assert_eq!(file(590, "gb20x"), Some("gsp_ga10x.bin"));
        assert_eq!(file(610, "GB20X"), Some("gsp_ga10x.bin"));
        assert_eq!(file(550, "gb20x"), None, "550 does not know Blackwell");
        assert_eq!(file(525, "ad10x"), Some("gsp_ad10x.bin"));
        assert_eq!(file(515, "tu10x"), Some("gsp.bin"));
        assert_eq!(file(470, "tu10x"), None);
        let hopper = file_for(570, "gh100").unwrap();
        assert_eq!(hopper.confidential_section, Some(".fwsignature_cc_gh100"));
    }

    #[test]
    fn the_chip_table_agrees() {
        for chip in chip::all() {
            let Some(family) = chip.gsp_family else {
                continue;
            };
            let row = file_for(595, family).unwrap();
            assert_eq!(chip.gsp_file, Some(row.file), "{chip:?}");
            assert_eq!(chip.signature_section, Some(row.signature_section), "{chip:?}");
        }
    }
}
