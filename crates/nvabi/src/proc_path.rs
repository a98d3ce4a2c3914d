//! Files of /proc, /sys and /dev that tell about the driver, and whether reading each can hang.
//!
//! Table `proc_sys_dev`: NVIDIA/open-gpu-kernel-modules and Linux sources.

use crate::table::Row;
use crate::tables::PROC_SYS_DEV;

/// One path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcPath {
    /// The path, with `*`, `<...>` or capital letters for what varies.
    pub path: &'static str,
    /// `proc`, `sys`, `dev`, `debugfs` or `file`.
    pub kind: &'static str,
    /// What is in it.
    pub content: &'static str,
    /// What it is good for.
    pub diagnostic_use: &'static str,
    /// The mode it usually has.
    pub usual_mode: &'static str,
    /// Whether reading or opening it can hang, and on what. May be empty.
    pub hang_safety: &'static str,
}

impl ProcPath {
    fn of(row: Row) -> ProcPath {
        ProcPath {
            path: row.text("path"),
            kind: row.text("kind"),
            content: row.text("content"),
            diagnostic_use: row.text("diagnostic_use"),
            usual_mode: row.text("usual_mode"),
            hang_safety: row.text("hang_safety"),
        }
    }
}

/// All paths, in alphabetical order.
pub fn all() -> impl Iterator<Item = ProcPath> {
    PROC_SYS_DEV.rows().map(ProcPath::of)
}
