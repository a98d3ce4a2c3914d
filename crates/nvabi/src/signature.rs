//! Signatures of kernel-log lines: what a line means and whether the proprietary modules print it.
//!
//! Table `kernel_log_signatures`: NVIDIA/open-gpu-kernel-modules, Linux, and the strings of the
//! proprietary 550.163.01 module. The order matters where one line fits two expressions: the more
//! particular stands first.

use crate::table::Row;
use crate::tables::KERNEL_LOG_SIGNATURES;

/// One signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signature {
    /// The id, such as `RMINIT_FAILED`.
    pub id: &'static str,
    /// A regular expression in the syntax of the `regex` crate, with named groups.
    pub regex: &'static str,
    /// The part of the stack that it is about, such as `gsp`.
    pub subsystem: &'static str,
    /// `info`, `warn`, `error`, `fatal` or `varies`.
    pub severity: &'static str,
    /// What the line means.
    pub meaning: &'static str,
    /// What causes it. May be empty.
    pub causes: &'static str,
    /// The source file that prints it.
    pub source: &'static str,
    /// Remarks on wording and versions. May be empty.
    pub notes: &'static str,
    /// Whether the proprietary module prints it: begins with `yes`, `no`, `shared` or `n/a`. Its
    /// absence from the log of a module that does not print it means nothing.
    pub printed_by_proprietary: &'static str,
}

impl Signature {
    fn of(row: Row) -> Signature {
        Signature {
            id: row.text("id"),
            regex: row.text("regex"),
            subsystem: row.text("subsystem"),
            severity: row.text("severity"),
            meaning: row.text("meaning"),
            causes: row.text("likely_causes"),
            source: row.text("source_file"),
            notes: row.text("notes"),
            printed_by_proprietary: row.text("printed_by_proprietary_550"),
        }
    }
}

/// All signatures, in the order in which to try them.
pub fn all() -> impl Iterator<Item = Signature> {
    KERNEL_LOG_SIGNATURES.rows().map(Signature::of)
}

/// The signature of that id, case aside.
pub fn by_id(id: &str) -> Option<Signature> {
    KERNEL_LOG_SIGNATURES.find("id", id).map(Signature::of)
}
