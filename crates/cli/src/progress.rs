//! The status line on standard error while probes are waited for. On anything but a terminal
//! there is none.

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A wait that is shorter than this is not worth a flicker.
const SHOWN_AFTER: Duration = Duration::from_millis(400);

/// The status line. Dropping it clears it.
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A line that is empty until there is something to wait for.
    pub(crate) fn new() -> Progress {
        let target = if io::stderr().is_terminal() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(None, target);
        if let Ok(style) = ProgressStyle::with_template("{wide_msg}") {
            bar.set_style(style);
        }
        Progress { bar }
    }

    /// Says what is waited for, since when, and how long at most.
    pub(crate) fn waiting(&self, what: &str, elapsed: Duration, limit: Duration) {
        if elapsed < SHOWN_AFTER || self.bar.is_hidden() {
            return;
        }
        self.bar.set_message(message(what, elapsed, limit));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn message(what: &str, elapsed: Duration, limit: Duration) -> String {
    format!("waiting for {what} {:.1} s of {:.0} s", elapsed.as_secs_f64(), limit.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_what_is_waited_for_and_how_long_at_most() {
        let line = message("cuInit", Duration::from_millis(3210), Duration::from_secs(10));
        assert_eq!(line, "waiting for cuInit 3.2 s of 10 s");
    }
}
