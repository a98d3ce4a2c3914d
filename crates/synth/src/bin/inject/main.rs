//! Runs a program under restrictions of the kernel's that no common tool sets.
//!
//! ```text
//! inject [--cgroup FOLDER] [--deny-device MAJOR]… [--deny-call NAME:ERRNO[:MASK=VALUE]]…
//!        [--hold-call NAME[:MASK=VALUE]]… [--read-only] -- PROGRAM [ARGUMENT]…
//! ```
//!
//! * `--cgroup` joins the cgroup v2 of this folder, which must exist; `--deny-device` attaches a
//!   device program to it that denies all of a character-device major.
//! * `--deny-call` adds a seccomp rule: the call fails with the errno. With `MASK=VALUE` (both
//!   hexadecimal) only where the second argument, for ioctl the request, has that value under the
//!   mask.
//! * `--hold-call` makes such a call wait in the kernel for a supervisor that never answers.
//! * `--read-only` sets a Landlock rule set that allows reading everything and writing nothing.
//!
//! Exit status 97 means that a restriction could not be set, and standard error says why.
#![expect(unsafe_code, reason = "these restrictions are set by system calls of their own")]

mod cgroup;
mod filter;
mod landlock;

use std::io::Write;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use filter::Rule;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let told = match run(&arguments) {
        Ok(never) => match never {},
        Err(told) => told,
    };
    // A closed pipe is no concern of this program.
    let _ = writeln!(std::io::stderr(), "inject: {told}");
    ExitCode::from(97)
}

/// What is asked for.
#[derive(Default)]
struct Wanted {
    cgroup: Option<String>,
    majors: Vec<u32>,
    rules: Vec<Rule>,
    read_only: bool,
    program: Vec<String>,
}

impl Wanted {
    fn read(arguments: &[String]) -> Result<Wanted, String> {
        let mut wanted = Wanted::default();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let mut value = || rest.next().ok_or_else(|| format!("{argument} needs a value"));
            match argument.as_str() {
                "--cgroup" => wanted.cgroup = Some(value()?.clone()),
                "--deny-device" => {
                    wanted.majors.push(value()?.parse().map_err(|_| "a major is a number")?);
                }
                "--deny-call" => wanted.rules.push(Rule::deny(value()?)?),
                "--hold-call" => wanted.rules.push(Rule::hold(value()?)?),
                "--read-only" => wanted.read_only = true,
                "--" => wanted.program = rest.by_ref().cloned().collect(),
                _ => return Err(format!("unknown argument {argument}")),
            }
        }
        Ok(wanted)
    }
}

/// Comes back only when something went wrong.
fn run(arguments: &[String]) -> Result<std::convert::Infallible, String> {
    let wanted = Wanted::read(arguments)?;
    let (program, arguments) = wanted.program.split_first().ok_or("no program after --")?;
    if let Some(folder) = &wanted.cgroup {
        cgroup::deny_and_join(folder, &wanted.majors)?;
    }
    if wanted.read_only {
        landlock::read_only()?;
    }
    filter::apply(&wanted.rules)?;
    Err(format!("{program}: {}", Command::new(program).args(arguments).exec()))
}
