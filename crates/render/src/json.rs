//! The report as JSON, schema `gpudx/report/1`.
//!
//! The mirror types in [`schema`] are what is written; no core type is serialized itself, so that
//! a refactoring inside cannot change what consumers read. The schema derived from them is
//! committed at `docs/schema/report-1.json`, and a test compares.

mod build;
mod parts;
pub mod schema;

use std::io::{self, Write};

use crate::Report;

pub use build::build;

/// The value of the `schema` field. A field may be added under the same number; one that is
/// removed or changes its meaning needs the next.
pub const SCHEMA: &str = "gpudx/report/1";

/// Writes the report as indented JSON with a line break at its end.
pub fn write(out: &mut impl Write, report: &Report<'_>) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, &build(report)).map_err(io::Error::from)?;
    writeln!(out)
}

/// The report as one line of JSON, for streams of reports.
pub fn to_json(report: &Report<'_>) -> serde_json::Result<String> {
    serde_json::to_string(&build(report))
}

/// The JSON schema of the report, as it is committed.
pub fn json_schema() -> serde_json::Result<String> {
    let schema = schemars::schema_for!(schema::ReportV1);
    let mut text = serde_json::to_string_pretty(&schema)?;
    text.push('\n');
    Ok(text)
}
