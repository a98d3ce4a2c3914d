//! A case in stages: what was believed, which observation refuted it, what remained.
//!
//! Every sentence is made from the difference between two diagnoses; none is written for a case.

mod turn;
mod write;

use facts::Facts;
use reason::Diagnosis;

pub use turn::{Change, Refutation, Shift, Turn, turn};
pub use write::write;

/// One stage: what was known then, and what followed from it.
#[derive(Debug, Clone)]
pub struct Stage {
    /// Its name.
    pub title: String,
    /// What was known.
    pub facts: Facts,
    /// What followed.
    pub diagnosis: Diagnosis,
}
