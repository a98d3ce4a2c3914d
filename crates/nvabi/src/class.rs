//! RM classes: what NV_ESC_RM_ALLOC makes.
//!
//! Table `rm_classes`: the class headers of NVIDIA/open-gpu-kernel-modules.

use crate::table::Row;
use crate::tables::RM_CLASSES;

/// One class under one of its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Class {
    /// The number.
    pub id: u32,
    /// The name, such as `BLACKWELL_COMPUTE_B`.
    pub name: &'static str,
    /// Whether this is the name to show where a number has several.
    pub preferred: bool,
    /// The header. May be empty.
    pub header: &'static str,
    /// The architecture it belongs to. May be empty.
    pub architecture: &'static str,
    /// The first and last branch whose headers have the name.
    pub branches: (Option<u32>, Option<u32>),
}

impl Class {
    fn of(row: Row) -> Class {
        Class {
            id: row.number_u32("class_id").unwrap_or(u32::MAX),
            name: row.text("name"),
            preferred: row.text("preferred") == "1",
            header: row.text("header"),
            architecture: row.text("arch_hint"),
            branches: (row.number_u32("first_branch"), row.number_u32("last_branch")),
        }
    }
}

/// All names of a class, the preferred one first.
pub fn names(id: u32) -> impl Iterator<Item = Class> {
    RM_CLASSES.numbered("class_id", id.into()).map(Class::of)
}

/// The class of that number under its preferred name.
pub fn by_id(id: u32) -> Option<Class> {
    names(id).next()
}

/// The class of that name, case aside.
pub fn by_name(name: &str) -> Option<Class> {
    RM_CLASSES.find("name", name).map(Class::of)
}

/// All classes, by number.
pub fn all() -> impl Iterator<Item = Class> {
    RM_CLASSES.rows().map(Class::of)
}
