//! What must come of the rows of the fault matrices.

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::fault::Expect;

/// An expectation for the rows whose labels begin so; the first that fits counts.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    rows: Vec<String>,
    #[expect(dead_code, reason = "for readers of the table")]
    why: String,
    #[serde(default)]
    expect: Expect,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    rule: Vec<Rule>,
}

/// What must come of the row with this label.
pub(crate) fn of(label: &str) -> Result<Expect> {
    let file: File = toml::from_str(include_str!("../matrix.toml")).context("matrix.toml")?;
    let mut rules = file.rule.into_iter();
    let found = rules.find(|rule| rule.rows.iter().any(|row| label.starts_with(row.as_str())));
    Ok(found.with_context(|| format!("matrix.toml says nothing of {label}"))?.expect)
}
