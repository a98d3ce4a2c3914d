//! Files that are generated and committed.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::run::{root, say};

mod causes;
mod printed_by;

/// Writes every generated file and removes what is left of retired causes, or with `check` fails
/// when anything is not up to date.
pub(crate) fn run(check: bool) -> Result<()> {
    let stale = bring_up_to_date(&root(), &files()?, check)?;
    if check && !stale.is_empty() {
        bail!("not up to date: {}; run `cargo xtask gen`", stale.join(", "));
    }
    for path in stale {
        say(&format!("updated {path}"));
    }
    Ok(())
}

/// The generated files by their paths below the root.
fn files() -> Result<BTreeMap<String, String>> {
    let mut files = causes::pages()?;
    files.insert("docs/schema/report-1.json".to_owned(), render::json::json_schema()?);
    files.insert(printed_by::PATH.to_owned(), printed_by::table()?);
    Ok(files)
}

/// Compares the files below `root` with what they should be, and unless only to `check`, makes
/// them so. Returns those that were stale.
fn bring_up_to_date(
    root: &Path,
    files: &BTreeMap<String, String>,
    check: bool,
) -> Result<Vec<String>> {
    let mut stale = Vec::new();
    for (path, content) in files {
        let full = root.join(path);
        if fs::read_to_string(&full).is_ok_and(|current| current == *content) {
            continue;
        }
        stale.push(path.clone());
        if check {
            continue;
        }
        if let Some(folder) = full.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&full, content).with_context(|| format!("cannot write {path}"))?;
    }
    for path in left_over(root, files) {
        if !check {
            fs::remove_file(root.join(&path)).with_context(|| format!("cannot remove {path}"))?;
        }
        stale.push(path);
    }
    Ok(stale)
}

/// Pages of causes that are no more.
fn left_over(root: &Path, files: &BTreeMap<String, String>) -> Vec<String> {
    let entries = fs::read_dir(root.join(causes::FOLDER)).into_iter().flatten().flatten();
    let mut found: Vec<String> = entries
        .map(|entry| format!("{}/{}", causes::FOLDER, entry.file_name().to_string_lossy()))
        .filter(|path| !files.contains_key(path))
        .collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stale_missing_and_left_over_files_are_found_and_put_right() {
        let folder = tempfile::tempdir().unwrap();
        let page = |name: &str| format!("{}/{name}", causes::FOLDER);
        let files = BTreeMap::from([
            (page("a.md"), "a".to_owned()),
            (page("b.md"), "b".to_owned()),
            (page("c.md"), "c".to_owned()),
        ]);
        fs::create_dir_all(folder.path().join(causes::FOLDER)).unwrap();
        for (name, content) in [("a.md", "a"), ("b.md", "old"), ("retired.md", "r")] {
            fs::write(folder.path().join(page(name)), content).unwrap();
        }
        let expected = [page("b.md"), page("c.md"), page("retired.md")];
        assert_eq!(bring_up_to_date(folder.path(), &files, true).unwrap(), expected);
        assert_eq!(bring_up_to_date(folder.path(), &files, false).unwrap(), expected);
        assert!(bring_up_to_date(folder.path(), &files, true).unwrap().is_empty());
    }
}
