//! Rules about the tree itself that no lint knows.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "target") {
                found.extend(rust_files(&path));
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn product_files() -> Vec<PathBuf> {
    let crates = ["nvabi", "facts", "reason", "probe", "render", "cli"];
    crates
        .iter()
        .flat_map(|name| rust_files(&root().join("crates").join(name).join("src")))
        .collect()
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

#[test]
fn files_are_small() {
    let mut lengths: Vec<(usize, String)> = product_files()
        .iter()
        .map(|path| (fs::read_to_string(path).unwrap().lines().count(), shown(path)))
        .collect();
    lengths.sort();
    let too_long: Vec<_> = lengths.iter().filter(|(length, _)| *length > 600).collect();
    assert!(too_long.is_empty(), "over 600 lines: {too_long:?}");
    let (median, _) = lengths[lengths.len() / 2];
    assert!(median <= 150, "the median file has {median} lines");
}

/// Nowhere else does a strength become a number.
#[test]
fn weights_live_in_one_place() {
    let weight = Regex::new(r"Strength::\w+\s*=>\s*[\d.]").unwrap();
    let mut weighed = 0;
    for path in rust_files(&root().join("crates/reason/src")) {
        let text = fs::read_to_string(&path).unwrap();
        if path.ends_with("weigh.rs") {
            weighed += weight.find_iter(&text).count();
        } else {
            assert!(!weight.is_match(&text), "{}", shown(&path));
        }
    }
    assert!(weighed >= 8, "the weights are not where this test looks for them");
}

#[test]
fn causes_files_and_catalogue_agree() {
    let folder = root().join("crates/reason/src/causes");
    let files: BTreeSet<String> = rust_files(&folder)
        .iter()
        .filter(|path| !path.ends_with("mod.rs"))
        // What stands deeper is a part of the cause above it.
        .filter(|path| path.strip_prefix(&folder).is_ok_and(|path| path.iter().count() == 2))
        .filter(|path| fs::read_to_string(path).unwrap().contains("static CAUSE: Cause"))
        .map(|path| {
            let relative = path.strip_prefix(&folder).unwrap().with_extension("");
            let parts: Vec<String> =
                relative.iter().map(|part| part.to_string_lossy().replace('_', "-")).collect();
            parts.join(".")
        })
        .collect();
    let catalogue = fs::read_to_string(folder.join("mod.rs")).unwrap();
    let entry = Regex::new(r"&(\w+)::(\w+)::CAUSE").unwrap();
    let listed: BTreeSet<String> = entry
        .captures_iter(&catalogue)
        .map(|found| format!("{}.{}", &found[1], found[2].replace('_', "-")))
        .collect();
    assert_eq!(files, listed);
    for id in &files {
        assert!(root().join("cases").join(id).is_dir(), "cases/{id} is missing");
    }
}

#[test]
fn unsafe_lives_in_sys_and_in_stand_ins() {
    let word = Regex::new(r"\bunsafe\s*(\{|fn|impl|extern)").unwrap();
    let allowed = [
        "crates/probe/src/sys/",
        "crates/fakedriver/",
        "crates/fakerm/",
        "crates/interposer/",
        "crates/synth/src/bin/",
    ];
    for path in
        rust_files(&root().join("crates")).into_iter().chain(rust_files(&root().join("xtask")))
    {
        let name = shown(&path);
        if allowed.iter().any(|prefix| name.starts_with(prefix)) || name.ends_with("tidy.rs") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        assert!(!word.is_match(&text), "{name}");
    }
}

#[test]
fn no_test_is_switched_off() {
    let switched_off = Regex::new(r"#\[(ignore|should_panic)").unwrap();
    for path in rust_files(&root().join("crates")) {
        let text = fs::read_to_string(&path).unwrap();
        assert!(!switched_off.is_match(&text), "{}", shown(&path));
    }
}

/// A promise in ARCHITECTURE.md is only one as long as the test that it names exists.
#[test]
fn every_invariant_names_tests_that_exist() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let invariants = text.split("## Invariants").nth(1).unwrap().split("\n## ").next().unwrap();
    let sources: String = rust_files(&root().join("crates"))
        .into_iter()
        .chain(rust_files(&root().join("xtask")))
        .fold(String::new(), |text, path| {
            text + "// file " + &shown(&path) + "\n" + &fs::read_to_string(&path).unwrap()
        });
    let named = Regex::new(r"`([\w\-]+)(?:::([\w\-]+))?`").unwrap();
    for paragraph in Regex::new(r"(?m)^\d+\. ").unwrap().split(invariants).skip(1) {
        let promise = paragraph.split('—').nth(1).unwrap_or_else(|| panic!("no test: {paragraph}"));
        let mut tests = 0;
        for found in named.captures_iter(promise) {
            let file = &found[1];
            let test = found.get(2).map_or(file, |name| name.as_str());
            let there = sources.contains(&format!("fn {test}("))
                || sources.contains(&format!("\"{test}\""))
                || sources.contains(&format!("/{file}.rs\n"));
            assert!(there, "ARCHITECTURE.md names `{test}`, which does not exist");
            tests += 1;
        }
        assert!(tests > 0, "no test named in: {paragraph}");
    }
}
