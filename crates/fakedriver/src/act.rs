//! What a call does instead of succeeding.

use core::ffi::c_int;
use std::fs::OpenOptions;
use std::io::{Read, Seek, Write};
use std::time::Duration;

use crate::mischief;
use crate::settings::settings;

/// One way to behave. The crate's documentation tells each by its name in the settings.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    /// Return this code.
    Return(c_int),
    /// Sleep for ever.
    Hang,
    /// Sleep for ever and ignore SIGTERM.
    HangDeaf,
    /// Burn the CPU for ever.
    Spin,
    /// Die of SIGSEGV.
    Crash,
    /// Die of SIGABRT.
    Abort,
    /// End the process with this status.
    Exit(c_int),
    /// Stop the process; return 0 when it is continued.
    Stop,
    /// Return 0 after this long.
    Slow(Duration),
    /// Write to this path, then return 0.
    DState(String),
    /// Write to stdout until that fails, then return 0.
    Flood,
    /// Write this to stdout, then return 0.
    Print(String),
    /// Leave a child behind that holds stdout open, then return 0.
    Fork {
        /// Whether the child leaves the process group, by setsid.
        away: bool,
    },
    /// Change device nodes in this folder as the real libraries do, then return 0.
    Mischief(String),
    /// Succeed in some of the trials only.
    Flaky {
        /// The file that counts trials of all processes.
        counter: String,
        /// What is done in the other trials.
        failure: Box<Act>,
        /// How many trials succeed ...
        successes: u64,
        /// ... of how many.
        trials: u64,
    },
}

/// Does what the settings say of a call with this name. `Some` is the code to return at once;
/// `None` means that the call goes on as usual.
pub(crate) fn perform(name: &str) -> Option<c_int> {
    let act = settings().act(name)?;
    record(&format!("act {name}"));
    act.perform()
}

impl Act {
    fn perform(&self) -> Option<c_int> {
        match self {
            Self::Return(0) => None,
            Self::Return(code) => Some(*code),
            Self::Hang => hang(),
            Self::HangDeaf => {
                // SAFETY: ignoring a signal has no precondition.
                unsafe { libc::signal(libc::SIGTERM, libc::SIG_IGN) };
                hang()
            }
            Self::Spin => loop {
                core::hint::spin_loop();
            },
            Self::Crash => crash(),
            Self::Abort => std::process::abort(),
            // SAFETY: ends the process without running its exit handlers, as intended.
            Self::Exit(status) => unsafe { libc::_exit(*status) },
            Self::Stop => {
                // SAFETY: stops the process; it goes on when someone continues it.
                unsafe { libc::raise(libc::SIGSTOP) };
                None
            }
            Self::Slow(wait) => {
                std::thread::sleep(*wait);
                None
            }
            Self::DState(path) => {
                // Whether the write succeeds once it can is of no interest.
                let _ = std::fs::write(path, b"x");
                None
            }
            Self::Flood => {
                let line = [b'#'; 4096];
                while std::io::stdout().write_all(&line).is_ok() {}
                None
            }
            Self::Print(text) => {
                let mut stdout = std::io::stdout();
                // A closed pipe is no concern of this library.
                let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
                None
            }
            Self::Fork { away } => {
                leave_child(*away);
                None
            }
            Self::Mischief(folder) => {
                mischief::play(folder);
                None
            }
            Self::Flaky { counter, failure, successes, trials } => {
                let trial = next_trial(counter) % trials;
                // Spreads the successes evenly: a trial succeeds when the running share of
                // successes passes a whole number in it.
                let before = trial * successes / trials;
                let after = (trial + 1) * successes / trials;
                if after > before { None } else { failure.perform() }
            }
        }
    }
}

fn hang() -> ! {
    loop {
        std::thread::sleep(Duration::from_hours(1));
    }
}

/// SIGSEGV by its default action, whatever handler the process has installed.
fn crash() -> ! {
    // SAFETY: the process ends here; that is the aim.
    unsafe {
        libc::signal(libc::SIGSEGV, libc::SIG_DFL);
        libc::raise(libc::SIGSEGV);
    }
    std::process::abort()
}

fn leave_child(away: bool) {
    // SAFETY: the child calls nothing but async-signal-safe functions until it exits.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: as above.
        unsafe {
            if away {
                libc::setsid();
            }
            libc::sleep(60);
            libc::_exit(0);
        }
    }
    record(&format!("fork {child}"));
}

/// Counts one trial; the first is 0. A counter that cannot be used ends the process.
fn next_trial(path: &str) -> u64 {
    let count = || -> std::io::Result<u64> {
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        file.lock()?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        let trial = text.trim().parse().unwrap_or(0);
        file.rewind()?;
        write!(file, "{}", trial + 1)?;
        Ok(trial)
    };
    count().unwrap_or_else(|_| std::process::abort())
}

/// Writes a line to the record, if one is kept.
pub(crate) fn record(line: &str) {
    if let Some(path) = &settings().record
        && let Ok(mut file) = OpenOptions::new().create(true).append(true).open(path)
    {
        // A test that reads the record notices a missing line itself.
        let _ = file.write_all(format!("{line}\n").as_bytes());
    }
}
