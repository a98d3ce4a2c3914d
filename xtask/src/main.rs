//! Developer commands, run as `cargo xtask COMMAND`.
//!
//! `test` everything that must hold · `measure` the figures of docs/measurements.md · `corpus` the
//! accuracy over the corpus · `new-cause layer.fault` scaffolds a cause and its cases ·
//! `gen [--check]` generated files.

use std::process::ExitCode;

mod corpus;
mod generate;
mod measure;
mod new_cause;
mod run;
mod suite;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["test", rest @ ..] => suite::run(rest.contains(&"--strict")),
        ["measure", rest @ ..] => measure::run(rest),
        // How `measure` learns the memory of one command.
        ["peak-of", command @ ..] => measure::peak_of(command),
        ["corpus"] => corpus::run(),
        ["new-cause", id] => new_cause::run(id),
        ["gen", rest @ ..] => generate::run(rest.contains(&"--check")),
        _ => Err(anyhow::anyhow!(
            "usage: cargo xtask test|measure|corpus|new-cause ID|gen [--check]"
        )),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            run::say(&format!("xtask: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
