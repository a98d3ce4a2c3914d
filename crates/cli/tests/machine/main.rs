//! The program against drivers that fail in every way, stand-ins and real ones.
//!
//! Some tests need root, loop devices or Debian's packages; where those are missing they say what
//! they lack on standard error and count as passed.

mod common;
mod experiments;
mod frozen;
mod hostile;
mod outcomes;
mod real_driver;
mod strace_forms;
mod stuck;
mod surroundings;
mod unchanged;

fn main() -> std::process::ExitCode {
    let mut trials = outcomes::trials();
    trials.extend(experiments::trials());
    trials.extend(frozen::trials());
    trials.extend(strace_forms::trials());
    trials.extend(stuck::trials());
    trials.extend(unchanged::trials());
    trials.extend(surroundings::trials());
    trials.extend(hostile::trials());
    trials.extend(real_driver::trials());
    libtest_mimic::run(&libtest_mimic::Arguments::from_args(), trials).exit_code()
}
