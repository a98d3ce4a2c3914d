//! The ELF sections of GSP firmware files as they were found in packages: what a sound file looks
//! like.
//!
//! Table `gsp_sections_measured`: Debian's firmware packages.

use crate::table::Row;
use crate::tables::GSP_SECTIONS_MEASURED;

/// One section of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GspSection {
    /// The package that holds the file.
    pub package: &'static str,
    /// The file's path below the firmware folder.
    pub file: &'static str,
    /// The file's size in bytes.
    pub file_size: u64,
    /// The driver version in the file.
    pub version: &'static str,
    /// The section's name.
    pub section: &'static str,
    /// Where it begins, in bytes.
    pub offset: u64,
    /// Its size in bytes.
    pub size: u64,
}

impl GspSection {
    fn of(row: Row) -> GspSection {
        GspSection {
            package: row.text("package"),
            file: row.text("file"),
            file_size: row.number("file_size").unwrap_or(0),
            version: row.text("fwversion"),
            section: row.text("section"),
            offset: row.number("offset").unwrap_or(0),
            size: row.number("size").unwrap_or(0),
        }
    }
}

/// All sections, by package, file and offset.
pub fn all() -> impl Iterator<Item = GspSection> {
    GSP_SECTIONS_MEASURED.rows().map(GspSection::of)
}

/// The sections of a file, by its path or the end of it: `gsp_ga10x.bin`.
pub fn sections(file: &str) -> impl Iterator<Item = GspSection> {
    all().filter(move |section| section.file.ends_with(file))
}
