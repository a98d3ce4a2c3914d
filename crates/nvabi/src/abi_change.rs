//! Which driver versions changed the interface, as gVisor's nvproxy keeps account of it.
//!
//! Table `abi_changes_by_version`: google/gvisor 3c5eee17.

use crate::table::Row;
use crate::tables::ABI_CHANGES_BY_VERSION;

/// One change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AbiChange {
    /// The first driver version with it.
    pub since: &'static str,
    /// What changed: `rm_control`, `rm_alloc class` and so on.
    pub kind: &'static str,
    /// The command, class or request.
    pub name: &'static str,
    /// How.
    pub change: &'static str,
    /// gVisor's label for the structure. May be empty.
    pub struct_label: &'static str,
}

impl AbiChange {
    fn of(row: Row) -> AbiChange {
        AbiChange {
            since: row.text("since_driver_version"),
            kind: row.text("kind"),
            name: row.text("name"),
            change: row.text("change"),
            struct_label: row.text("gvisor_struct_label"),
        }
    }
}

/// All changes, by version.
pub fn all() -> impl Iterator<Item = AbiChange> {
    ABI_CHANGES_BY_VERSION.rows().map(AbiChange::of)
}

/// The changes to a command, class or request, case aside.
pub fn of(name: &str) -> impl Iterator<Item = AbiChange> {
    all().filter(move |change| change.name.eq_ignore_ascii_case(name))
}
