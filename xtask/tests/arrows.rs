//! The dependency arrows between crates, as cargo resolves them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::Command;

fn tree(package: &str) -> Vec<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let output = Command::new(cargo)
        .args(["tree", "--offline", "-p", package, "-e", "normal", "--prefix", "none", "-f", "{p}"])
        .current_dir(root)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

#[test]
fn crates_depend_only_downwards() {
    let ours = ["nvabi", "facts", "reason", "probe", "render", "gpudx", "synth", "xtask"];
    let allowed: [(&str, &[&str]); 6] = [
        ("nvabi", &[]),
        ("facts", &["nvabi"]),
        ("reason", &["nvabi", "facts"]),
        ("probe", &["nvabi", "facts"]),
        ("render", &["nvabi", "facts", "reason"]),
        ("gpudx", &["nvabi", "facts", "reason", "probe", "render"]),
    ];
    for (package, below) in allowed {
        for dependency in tree(package) {
            let name = dependency.as_str();
            if ours.contains(&name) && name != package {
                assert!(below.contains(&name), "{package} depends on {name}");
            }
        }
    }
}

#[test]
fn no_async_runtime_is_in_the_binary() {
    let all = tree("gpudx");
    for runtime in ["tokio", "async-std", "smol"] {
        assert!(!all.iter().any(|name| name == runtime), "{runtime}");
    }
}

#[test]
fn pure_crates_touch_nothing() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let forbidden = [
        "std::fs",
        "std::env::",
        "std::process",
        "std::net",
        "SystemTime",
        "std::thread",
        "Instant::",
    ];
    let mut folders = vec![
        root.join("crates/facts/src"),
        root.join("crates/reason/src"),
        root.join("crates/nvabi/src"),
    ];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            // Unit tests below the code may read files.
            let code = text.split("#[cfg(test)]").next().unwrap_or("");
            for word in forbidden {
                assert!(!code.contains(word), "{} uses {word}", path.display());
            }
        }
    }
}
