//! The trace as lines for people. A call's line begins when the call is entered and is completed
//! when it returns; when another comes between, it is told anew.

use std::fmt::Write as _;
use std::time::Duration;

use probe::trace::{Answer, Call, Event, Unreturned};
use render::clean::clean;

use super::sums;

/// The line that was begun last.
#[derive(Default)]
pub(super) struct Lines {
    /// Number of the call whose line is not complete.
    open: Option<u64>,
}

impl Lines {
    /// The text for one event.
    pub(super) fn event(&mut self, event: &Event<'_>) -> String {
        match event {
            Event::Started { .. } => String::new(),
            Event::Library { path, .. } => {
                format!("{}gpudx: {} is loaded\n", self.closed(), clean(path))
            }
            Event::Entered(call) => {
                let text = self.closed() + &begin(call);
                self.open = Some(call.sequence);
                text
            }
            Event::Returned(call, answer) => self.complete(call, &end(answer)),
            Event::Unreturned(call, elapsed, why) => {
                let why = match why {
                    Unreturned::ProcessEnded => "the process ended in it",
                    Unreturned::TraceEnded => "has not returned",
                    Unreturned::Held => "is held by gpudx",
                    Unreturned::Interposed => "a library holds it",
                };
                self.complete(call, &format!("{}  {why}", time(*elapsed)))
            }
            Event::Note(text) => format!("{}gpudx: {}\n", self.closed(), clean(text)),
            Event::Ended(summary) => self.closed() + &sums::text(summary),
        }
    }

    /// Ends a line that was begun.
    fn closed(&mut self) -> String {
        if self.open.take().is_some() { "\n".to_owned() } else { String::new() }
    }

    fn complete(&mut self, call: &Call, end: &str) -> String {
        let mut text = String::new();
        if self.open != Some(call.sequence) {
            text = self.closed() + &begin(call);
        }
        self.open = None;
        text + end + "\n"
    }
}

fn begin(call: &Call) -> String {
    let node = call.node.strip_prefix("/dev/").unwrap_or(&call.node);
    let process = clean(&call.process);
    let thread = if call.tid == call.pid { String::new() } else { format!("/{}", call.tid) };
    let at = call.at.as_secs_f64();
    let mut text = format!("{process}{thread} +{at:.3}s {} {}", call.name, clean(node));
    if let Some(mapping) = &call.mapping {
        // Writing to a String cannot fail.
        let _ = write!(text, " {:#x} bytes at {:#x}", mapping.length, mapping.offset);
    }
    if let Some(gpu) = &call.gpu {
        // Writing to a String cannot fail.
        let _ = write!(text, " {gpu}");
    }
    if let Some(library) = &call.interposer {
        // Writing to a String cannot fail.
        let _ = write!(text, " in {} (told by its stack)", clean(library));
    }
    if call.found_inside {
        text.push_str(" (already in it)");
    }
    text + " … "
}

fn end(answer: &Answer) -> String {
    let mut text = format!("{}  {}", time(answer.elapsed), answer.word());
    if let Some(version) = &answer.version {
        // Writing to a String cannot fail.
        let _ = write!(text, " {}", clean(version));
    }
    if answer.injected {
        text.push_str(" (from gpudx; the driver did not see it)");
    }
    text
}

/// A duration with a unit that suits it.
pub(super) fn time(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 0.001 {
        format!("{:.0} µs", seconds * 1e6)
    } else if seconds < 10.0 {
        format!("{:.1} ms", seconds * 1e3)
    } else {
        format!("{seconds:.1} s")
    }
}
