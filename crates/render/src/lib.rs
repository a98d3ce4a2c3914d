//! From a diagnosis to bytes: the terminal, JSON with its schema, Markdown for tickets.
//!
//! Everything here is pure: it reads a [`reason::Diagnosis`] and writes to an
//! [`std::io::Write`] that the caller owns. All formats are printed from the same [`view`], so
//! that they cannot tell different stories, and whatever came from outside passes through
//! [`clean::clean`] before it reaches a terminal.

#![forbid(unsafe_code)]

pub mod clean;
pub mod explain;
pub mod firmware;
pub mod json;
pub mod markdown;
pub mod observations;
pub mod screen;
pub mod story;
pub mod terminal;
pub mod view;

use facts::Facts;
use reason::Diagnosis;

/// The version that the head line and the JSON report name.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A diagnosis with the facts that it was made from.
#[derive(Debug, Clone, Copy)]
pub struct Report<'a> {
    /// The diagnosis.
    pub diagnosis: &'a Diagnosis,
    /// The facts.
    pub facts: &'a Facts,
    /// What was read, as the user named it: `this machine`, `report.txt`, `standard input`.
    pub input: &'a str,
}
