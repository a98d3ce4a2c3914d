//! Xids, the driver's numbered GPU errors in the kernel log.
//!
//! Table `xid`: NVIDIA's catalogue of 2025-10-29 as carried by leptonai/gpud, and `nverror.h`.

use crate::table::Row;
use crate::tables::XID;

/// Xids that a program's own fault causes on a GPU that stays healthy: an engine exception (13),
/// an MMU fault (31), a channel reset after either (43), the removal of a channel (45). The
/// catalogue's 32 is not one of them: a damaged push buffer is a matter of the bus or the driver.
const APPLICATION_FAULTS: [u32; 4] = [13, 31, 43, 45];

/// One Xid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Xid {
    /// The number.
    pub number: u32,
    /// The name in the driver's header.
    pub mnemonic: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// What causes it. May be empty.
    pub typical_cause: &'static str,
    /// What to do. May be empty.
    pub action: &'static str,
    /// NVIDIA's word for the immediate action, such as `RESTART_APP`. May be empty.
    pub immediate_action: &'static str,
    /// NVIDIA's word for the investigation that follows. May be empty.
    pub investigation: &'static str,
    /// True when a program's own fault causes it, so that it tells nothing about the GPU.
    pub application_fault: bool,
}

impl Xid {
    fn of(row: Row) -> Xid {
        let number = row.number_u32("xid").unwrap_or(u32::MAX);
        Xid {
            number,
            mnemonic: row.text("mnemonic"),
            meaning: row.text("meaning"),
            typical_cause: row.text("typical_cause"),
            action: row.text("action_own_words"),
            immediate_action: row.text("nvidia_immediate_bucket"),
            investigation: row.text("nvidia_investigatory_bucket"),
            application_fault: APPLICATION_FAULTS.contains(&number),
        }
    }
}

/// The Xid of that number.
pub fn by_number(number: u32) -> Option<Xid> {
    XID.numbered("xid", number.into()).next().map(Xid::of)
}

/// All Xids, by number.
pub fn all() -> impl Iterator<Item = Xid> {
    XID.rows().map(Xid::of)
}
