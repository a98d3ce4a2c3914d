//! The catalogue of causes, one file each.

use crate::cause::Cause;

mod uvm;

/// Every cause, sorted by id. Kept in order by `cargo xtask new-cause`; a test compares this list
/// with the files and with the folders of cases.
pub static CAUSES: &[&Cause] = &[
    &uvm::hmm::CAUSE,
];

/// The cause of that id.
pub fn by_id(id: &str) -> Option<&'static Cause> {
    CAUSES.iter().copied().find(|cause| cause.id == id)
}
