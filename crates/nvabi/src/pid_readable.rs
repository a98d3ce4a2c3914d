//! What can be read about another process, with which permission, and what may block the reader.
//!
//! Table `proc_pid_readables`: Linux sources.

use crate::table::Row;
use crate::tables::PROC_PID_READABLES;

/// One source of knowledge about a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PidReadable {
    /// The file or mechanism, such as `/proc/PID/wchan`.
    pub path: &'static str,
    /// Who may read it.
    pub permission: &'static str,
    /// What the reader may block on; begins with `no` when on nothing.
    pub blocks_on: &'static str,
    /// What it is good for.
    pub diagnostic_use: &'static str,
}

impl PidReadable {
    fn of(row: Row) -> PidReadable {
        PidReadable {
            path: row.text("source"),
            permission: row.text("permission"),
            blocks_on: row.text("blocks_on"),
            diagnostic_use: row.text("use"),
        }
    }
}

/// All sources, those that never block first.
pub fn all() -> impl Iterator<Item = PidReadable> {
    PROC_PID_READABLES.rows().map(PidReadable::of)
}
