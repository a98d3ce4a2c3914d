//! Everything that must hold before a change lands.

use anyhow::{Result, bail};

use crate::run::{cargo, has_subcommand, must, say};

/// Runs the whole suite. Without `strict` a missing developer tool is said and passed over, so
/// that a fresh machine with nothing but Rust can run all tests; with it that is an error.
pub(crate) fn run(strict: bool) -> Result<()> {
    must(&mut cargo(&["fmt", "--all", "--check"]))?;
    must(&mut cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
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
