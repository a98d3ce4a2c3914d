//! Files that are generated and committed.

use std::fs;

use anyhow::{Context as _, Result, bail};

use crate::run::{root, say};

/// Writes every generated file, or with `check` fails when one is not up to date.
pub(crate) fn run(check: bool) -> Result<()> {
    let mut stale = Vec::new();
    for (path, content) in files()? {
        let full = root().join(path);
        let current = fs::read_to_string(&full).unwrap_or_default();
        if current == content {
            continue;
        }
        if check {
            stale.push(path);
            continue;
        }
        if let Some(folder) = full.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&full, content).with_context(|| format!("cannot write {path}"))?;
        say(&format!("wrote {path}"));
    }
    if !stale.is_empty() {
        bail!("not up to date: {}; run `cargo xtask gen`", stale.join(", "));
    }
    Ok(())
}

fn files() -> Result<Vec<(&'static str, String)>> {
    Ok(vec![("docs/schema/report-1.json", render::json::json_schema()?)])
}
