//! Telling what was seen. That takes longer than seeing it (a line is made and written), so at a
//! stop it is put off until the thread goes on again; nothing is waited for in between.

use super::event::{Answer, Call, Event};
use super::tracer::Tracer;

/// Something that was seen at a stop and is still to be told.
#[derive(Debug)]
pub(super) enum Seen {
    /// This thread has entered a call.
    Entered(u32),
    Returned(Box<(Call, Answer)>),
    Library {
        pid: u32,
        path: String,
    },
    Note(String),
}

impl Tracer<'_> {
    /// Puts something off until its thread goes on.
    pub(super) fn seen(&mut self, seen: Seen) {
        self.untold.push(seen);
    }

    /// A remark, once.
    pub(super) fn note(&mut self, text: String) {
        if !self.noted.contains(&text) {
            self.noted.insert(text.clone());
            self.seen(Seen::Note(text));
        }
    }

    /// Tells an event now, after all that was seen before it.
    pub(super) fn tell(&mut self, event: &Event<'_>) {
        self.catch_up();
        (self.sink)(event);
    }

    /// Tells what was put off.
    pub(super) fn catch_up(&mut self) {
        for seen in std::mem::take(&mut self.untold) {
            match &seen {
                Seen::Entered(tid) => {
                    if let Some(entered) = &self.tasks.thread(*tid).entered {
                        (self.sink)(&Event::Entered(&entered.call));
                    }
                }
                Seen::Returned(returned) => {
                    let (call, answer) = &**returned;
                    self.summary.returned(call, answer);
                    (self.sink)(&Event::Returned(call, answer));
                }
                Seen::Library { pid, path } => (self.sink)(&Event::Library { pid: *pid, path }),
                Seen::Note(text) => (self.sink)(&Event::Note(text)),
            }
        }
    }
}
