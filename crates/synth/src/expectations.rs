//! What the cases of the corpus expect: `case.toml`, as CONTRIBUTING.md describes it.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// What `case.toml` says must come out of a case.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// One sentence.
    pub title: String,
    /// State of the whole: `healthy`, `fault`, `undetermined` or `no-gpu`.
    pub state: String,
    /// Ids of which one must be named first; none when no cause may be named.
    #[serde(default)]
    pub top: Vec<String>,
    /// Lowest verdict that the first cause may have.
    #[serde(default)]
    pub at_least: Option<String>,
    /// Highest verdict that the first cause may have.
    #[serde(default)]
    pub at_most: Option<String>,
    /// Further ids that must be among the causes.
    #[serde(default)]
    pub also: Vec<String>,
    /// Ids that must be shown as ruled out.
    #[serde(default)]
    pub ruled_out: Vec<String>,
    /// Ids that may not be among the causes.
    #[serde(default)]
    pub must_not_name: Vec<String>,
    /// Ids that must be listed as not judged.
    #[serde(default)]
    pub unknown: Vec<String>,
    /// Symptoms that must be seen.
    #[serde(default)]
    pub symptoms: Vec<String>,
    /// Words that some note on the input must hold.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Where the data is from: an address, or `composed`.
    pub origin: String,
    /// What was composed, and from what.
    #[serde(default)]
    pub composed: String,
    /// The case from which this near miss differs in one fact.
    #[serde(default)]
    pub near_miss_of: String,
}

impl Expected {
    /// Reads the `case.toml` of a case. An error says what is wrong and where.
    pub fn of(case: &Path) -> Result<Expected, String> {
        let path = case.join("case.toml");
        let text =
            fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        toml::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
    }
}

/// The folder of the corpus.
pub fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cases")
}

/// The folders of all cases, in order of their names.
pub fn cases() -> Vec<PathBuf> {
    let folders = |path: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
    };
    let groups = folders(&corpus()).into_iter();
    let mut found: Vec<PathBuf> = groups.flat_map(|group| folders(&group)).collect();
    found.retain(|case| case.join("case.toml").exists());
    found.sort();
    found
}

/// The name of a case: `layer.fault/case`.
pub fn name(case: &Path) -> String {
    let relative = case.strip_prefix(corpus()).unwrap_or(case);
    relative.to_string_lossy().replace('\\', "/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_found_and_what_is_no_expectation_is_refused() {
        let all = cases();
        assert!(all.iter().any(|case| name(case).starts_with("uvm.hmm/")));
        let folder = tempfile::tempdir().unwrap();
        assert!(Expected::of(folder.path()).unwrap_err().contains("case.toml"));
        fs::write(folder.path().join("case.toml"), "title = 'x'\ntopp = []\n").unwrap();
        assert!(Expected::of(folder.path()).unwrap_err().contains("topp"));
    }
}
