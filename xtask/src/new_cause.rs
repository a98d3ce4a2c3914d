//! Scaffolds a cause: its file, its registration and its two cases.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use crate::run::{root, say};

/// Writes what a new cause needs beside the thinking.
pub(crate) fn run(id: &str) -> Result<()> {
    create(&root(), id)?;
    say(&format!("wrote the cause {id}; CONTRIBUTING.md says what comes next"));
    Ok(())
}

/// Creates the files below `root`.
pub(crate) fn create(root: &Path, id: &str) -> Result<()> {
    let (layer, fault) = parts(id)?;
    let causes = root.join("crates/reason/src/causes");
    let module = fault.replace('-', "_");
    let file = causes.join(layer).join(format!("{module}.rs"));
    ensure!(!file.exists(), "{id} is there already");
    fs::create_dir_all(causes.join(layer))?;
    fs::write(&file, source(id, layer))?;
    register_in_layer(&causes.join(layer).join("mod.rs"), layer, &module)?;
    register_in_catalogue(&causes.join("mod.rs"), layer, &module)?;
    let ids = root.join("crates/reason/tests/catalogue_ids.txt");
    let known = fs::read_to_string(&ids).context("the list of ids")?;
    fs::write(&ids, with_sorted_line(&known, "", id))?;
    for (case, text) in [("fires", case_text(id, true)), ("near-miss", case_text(id, false))] {
        let folder = root.join("cases").join(id).join(case).join("text");
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("report.txt"), "")?;
        fs::write(root.join("cases").join(id).join(case).join("case.toml"), text)?;
    }
    Ok(())
}

fn parts(id: &str) -> Result<(&str, &str)> {
    let (layer, fault) = id.split_once('.').context("an id is layer.fault")?;
    let word = |text: &str| {
        text.starts_with(|ch: char| ch.is_ascii_lowercase())
            && text
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    };
    ensure!(word(layer) && word(fault), "an id is layer.fault in lower case: {id}");
    Ok((layer, fault))
}

fn variant(layer: &str) -> String {
    let mut letters = layer.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

fn source(id: &str, layer: &str) -> String {
    let template = include_str!("new_cause/template.rs.txt");
    template.replace("{id}", id).replace("{Layer}", &variant(layer))
}

fn case_text(id: &str, fires: bool) -> String {
    let mut text = String::from("title = \"\"\n");
    let _ = if fires {
        write!(text, "state = \"fault\"\ntop = [\"{id}\"]\nat_least = \"likely\"\norigin = \"\"\n")
    } else {
        write!(
            text,
            "state = \"undetermined\"\ntop = []\nmust_not_name = [\"{id}\"]\nnear_miss_of = \"{id}/fires\"\norigin = \"\"\n"
        )
    };
    text
}

fn register_in_layer(path: &Path, layer: &str, module: &str) -> Result<()> {
    let line = format!("pub(super) mod {module};");
    let text = fs::read_to_string(path)
        .unwrap_or_else(|_| format!("//! Causes in the layer {layer}.\n\n"));
    fs::write(path, with_sorted_line(&text, "pub(super) mod ", &line))?;
    Ok(())
}

fn register_in_catalogue(path: &Path, layer: &str, module: &str) -> Result<()> {
    let text = fs::read_to_string(path)?;
    let with_module = with_sorted_line(&text, "mod ", &format!("mod {layer};"));
    let entry = format!("    &{layer}::{module}::CAUSE,");
    fs::write(path, with_sorted_line(&with_module, "    &", &entry))?;
    Ok(())
}

/// Adds a line to the run of lines that begin with `prefix`, in order, unless it is there.
fn with_sorted_line(text: &str, prefix: &str, line: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    if lines.contains(&line) {
        return text.to_owned();
    }
    let in_run = |candidate: &&str| candidate.starts_with(prefix);
    let after = lines.iter().position(|candidate| in_run(candidate) && *candidate > line);
    let end = lines.iter().rposition(in_run).map(|index| index + 1);
    lines.insert(after.or(end).unwrap_or(lines.len()), line);
    let mut out = lines.join("\n");
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scaffolded_cause_has_its_file_its_lines_and_its_cases() {
        let folder = tempfile::tempdir().unwrap();
        let causes = folder.path().join("crates/reason/src/causes");
        let ids = folder.path().join("crates/reason/tests/catalogue_ids.txt");
        fs::create_dir_all(&causes).unwrap();
        fs::create_dir_all(ids.parent().unwrap()).unwrap();
        fs::write(&ids, "firmware.a\nuvm.b\n").unwrap();
        fs::copy(root().join("crates/reason/src/causes/mod.rs"), causes.join("mod.rs")).unwrap();
        create(folder.path(), "kernel.made-up").unwrap();
        let catalogue = fs::read_to_string(causes.join("mod.rs")).unwrap();
        assert!(catalogue.contains("mod kernel;"));
        assert!(catalogue.contains("    &kernel::made_up::CAUSE,"));
        assert_eq!(fs::read_to_string(&ids).unwrap(), "firmware.a\nkernel.made-up\nuvm.b\n");
        let source = fs::read_to_string(causes.join("kernel/made_up.rs")).unwrap();
        assert!(source.contains("id: \"kernel.made-up\"") && source.contains("Layer::Kernel"));
        assert!(folder.path().join("cases/kernel.made-up/near-miss/case.toml").exists());
        assert!(create(folder.path(), "kernel.made-up").is_err());
        assert!(create(folder.path(), "Kernel.x").is_err());
    }

    #[test]
    fn lines_are_added_in_order_and_once() {
        let text = "mod a;\nmod c;\n\nrest\n";
        let added = with_sorted_line(text, "mod ", "mod b;");
        assert_eq!(added, "mod a;\nmod b;\nmod c;\n\nrest\n");
        assert_eq!(with_sorted_line(&added, "mod ", "mod b;"), added);
        assert_eq!(with_sorted_line(text, "mod ", "mod d;"), "mod a;\nmod c;\nmod d;\n\nrest\n");
    }
}
