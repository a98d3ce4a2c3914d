//! Exit statuses: one closed list.

use std::process::ExitCode;

use reason::State;

/// How gpudx ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Healthy, no GPU at all, or a question that was answered.
    Fine,
    /// A fault was found.
    Fault,
    /// Something looks wrong or could not be seen, or an input could not be read.
    Undetermined,
    /// The command line makes no sense (EX_USAGE of sysexits.h).
    Usage,
}

impl Exit {
    /// The status of a diagnosis.
    pub(crate) fn of(state: State) -> Exit {
        match state {
            State::Healthy | State::NoGpu => Exit::Fine,
            State::Fault => Exit::Fault,
            State::Undetermined => Exit::Undetermined,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(match exit {
            Exit::Fine => 0,
            Exit::Fault => 1,
            Exit::Undetermined => 2,
            Exit::Usage => 64,
        })
    }
}
