//! The program `gpudx`.

#![forbid(unsafe_code)]

mod args;
mod commands;
mod exit;
mod judge;
mod output;
mod progress;
mod source;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use crate::args::{CheckArgs, Cli, Command};
use crate::exit::Exit;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    // A probe's child is this same binary. It must not pay for, or fail in, anything of ours.
    if let Some([word, rest @ ..]) = arguments.get(1..)
        && word == probe::supervise::CHILD_WORD
    {
        probe::child::main(rest);
    }
    judge::keep_panics_quiet();
    let ended = judge::guarded("running", || run(arguments));
    ended.unwrap_or_else(|message| output::complain(&message, Exit::Undetermined)).into()
}

fn run(arguments: Vec<OsString>) -> Exit {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => return not_parsed(&error),
    };
    let color = cli.color;
    let Some(command) = cli.command else {
        return commands::check::run(&cli.check, color);
    };
    if cli.check != CheckArgs::default() {
        return output::complain("options of a command stand after its name", Exit::Usage);
    }
    match command {
        Command::Check(args) => commands::check::run(&args, color),
        Command::Read(args) => commands::read::run(&args, color),
        Command::Explain(args) => commands::explain::run(&args, color),
        Command::Firmware(args) => commands::firmware::run(&args, color),
        Command::Demo(args) => commands::demo::run(&args, color),
        Command::Trace(args) => commands::trace::run(&args),
    }
}

/// Help and version are answers; everything else is a usage error, told in one line.
fn not_parsed(error: &clap::Error) -> Exit {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        let text = error.render().to_string();
        return output::print(Exit::Fine, |out| {
            out.extend_from_slice(text.as_bytes());
            Ok(())
        });
    }
    let text = error.render().to_string();
    let first = text.split("\n\n").next().unwrap_or_default();
    let words: Vec<&str> = first.split_whitespace().collect();
    let message = words.join(" ");
    let message = message.strip_prefix("error: ").unwrap_or(&message);
    output::complain(&format!("{message} (gpudx --help)"), Exit::Usage)
}
