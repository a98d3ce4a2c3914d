//! `gpudx trace` against real processes, real driver libraries over a stand-in for the kernel
//! side, and a task that the kernel holds.
//!
//! Some tests need root, loop devices or Debian's packages; where those are missing they say what
//! they lack on standard error and count as passed.

#[path = "../../../probe/tests/machine/frozen.rs"]
mod frozen;
mod held;
mod injection;
mod interposed;
mod libraries;
mod processes;
mod saved;
mod support;
mod targets;

fn main() -> std::process::ExitCode {
    let mut trials = processes::trials();
    trials.extend(libraries::trials());
    trials.extend(injection::trials());
    trials.extend(targets::trials());
    trials.extend(interposed::trials());
    trials.extend(saved::trials());
    trials.extend(held::trials());
    libtest_mimic::run(&libtest_mimic::Arguments::from_args(), trials).exit_code()
}
