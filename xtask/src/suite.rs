//! Everything that must hold before a change lands.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use crate::run::{cargo, has_subcommand, must, say};

/// Runs the whole suite. Without `strict` a missing developer tool is said and passed over, so
/// that a fresh machine with nothing but Rust can run all tests; with it that is an error.
pub(crate) fn run(strict: bool) -> Result<()> {
    must(&mut cargo(&["fmt", "--all", "--check"]))?;
    must(&mut cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    other_architecture()?;
    tests(strict)?;
    must(
        cargo(&["doc", "--workspace", "--no-deps", "--document-private-items"])
            .env("RUSTDOCFLAGS", "-D warnings"),
    )?;
    if tool("deny", strict)? {
        must(&mut cargo(&["deny", "check", "bans", "licenses", "sources"]))?;
    }
    crate::generate::run(true)?;
    fuzz_targets_compile()
}

/// The other architecture that has a driver; checking it takes no linker of its own.
const OTHER: &str = "aarch64-unknown-linux-gnu";

/// Checks the product for the other architecture, where the standard library for it is installed.
/// A machine that cannot fetch it is no reason to fail: `sys/arch` checks its registers everywhere.
fn other_architecture() -> Result<()> {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output()?;
    let sysroot = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    // rustup lists a component here once it is there as a whole.
    let listed = std::fs::read_to_string(Path::new(&sysroot).join("lib/rustlib/components"));
    let whole = format!("rust-std-{OTHER}");
    if !listed.unwrap_or_default().lines().any(|line| line == whole) {
        say(&format!("== passed over: rustup target add {OTHER}"));
        return Ok(());
    }
    must(&mut cargo(&["check", "--target", OTHER, "--package", "gpudx", "--package", "probe"]))
}

fn tests(strict: bool) -> Result<()> {
    // The stand-in libraries are loaded by path, so that they must be there first.
    must(&mut cargo(&[
        "build",
        "--package",
        "fakedriver",
        "--package",
        "fakerm",
        "--package",
        "interposer",
        "--package",
        "synth",
    ]))?;
    if tool("nextest", strict)? {
        return must(&mut cargo(&["nextest", "run", "--workspace"]));
    }
    must(&mut cargo(&["test", "--workspace", "--quiet"]))
}

fn tool(name: &str, strict: bool) -> Result<bool> {
    if has_subcommand(name) {
        return Ok(true);
    }
    let advice = format!("cargo-{name} is not installed: cargo install --locked cargo-{name}");
    if strict {
        bail!(advice);
    }
    say(&format!("== passed over: {advice}"));
    Ok(false)
}

/// libFuzzer's sanitizer flags want a nightly compiler; type-checking the targets does not.
fn fuzz_targets_compile() -> Result<()> {
    must(
        cargo(&["check", "--manifest-path", "fuzz/Cargo.toml", "--locked"])
            .env("RUSTC_BOOTSTRAP", "1"),
    )
}
