//! One run of one probe, as the records tell it.

use super::task::Hang;
use crate::observed::Origin;
use crate::wire::{EXPERIMENT, Outcome, Stuck};

/// How long a probe must have had, in seconds, for its not ending to count. The start of two GPUs
/// takes half a second (H200, driver 580, persistence mode on).
const ENOUGH_S: f64 = 1.0;

/// A call that a probe made.
#[derive(Debug, Clone, PartialEq)]
pub struct ProbeCall {
    /// The call, such as `cuInit` or `open`.
    pub call: String,
    /// What it was made on: a node's path or a device index.
    pub on: Option<String>,
    /// The raw return code; for system calls 0 or the positive errno.
    pub code: i64,
    /// Duration in milliseconds.
    pub ms: f64,
    /// What it answered.
    pub value: Option<String>,
    /// The record's line.
    pub origin: Origin,
}

/// One run of one probe.
#[derive(Debug, Clone, PartialEq)]
pub struct ProbeRun {
    /// The probe, such as `cuinit`.
    pub probe: String,
    /// Counts from 1.
    pub trial: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// Exit status, signal or errno, as the outcome says.
    pub code: Option<i32>,
    /// Wall time in seconds.
    pub seconds: f64,
    /// Process id of the child.
    pub pid: Option<u32>,
    /// The calls that returned, in order.
    pub calls: Vec<ProbeCall>,
    /// The call that was entered and did not return.
    pub in_flight: Option<(String, Option<String>)>,
    /// Where it was stuck.
    pub stuck: Option<Stuck>,
    /// Keyed notes of the child, such as `mapped-libcuda`.
    pub notes: Vec<(String, String)>,
    /// Particulars of the end.
    pub end_notes: Vec<String>,
    /// True when it ran under the tracer.
    pub traced: bool,
    /// The whole record.
    pub origin: Origin,
}

impl ProbeRun {
    /// The first call of that name that returned.
    pub fn call(&self, name: &str) -> Option<&ProbeCall> {
        self.calls.iter().find(|call| call.call == name)
    }

    /// The note under that key.
    pub fn note(&self, key: &str) -> Option<&str> {
        self.notes.iter().find(|(k, _)| k == key).map(|(_, value)| value.as_str())
    }

    /// The way it hung. One that a signal ended at once was in no call that spins, whatever the few
    /// samples show.
    pub fn hang(&self) -> Option<Hang> {
        let hang = Hang::of(self.stuck.as_ref()?)?;
        let killed = self.outcome == Outcome::TimedOut;
        Some(if killed && hang == Hang::SpinsInKernel { Hang::RepeatsCalls } else { hang })
    }

    /// True when something was changed for this run, so that it does not tell how the machine is.
    pub fn is_experiment(&self) -> bool {
        self.probe == EXPERIMENT
    }

    /// True when the run did not end by itself, in a time in which it should have.
    pub fn hung(&self) -> bool {
        match self.outcome {
            Outcome::TimedOut => !self.was_cut_short(),
            Outcome::Unkillable => true,
            Outcome::Returned | Outcome::Crashed | Outcome::NotStarted | Outcome::Malformed => {
                false
            }
        }
    }

    /// True when the run was given so little time that its end says nothing. On a machine at work
    /// a probe then stands at whatever it waits for just then, such as a lock of the driver that is
    /// free a moment later. A run that a trace or a log tells of has no time.
    pub fn was_cut_short(&self) -> bool {
        let given = self.seconds > 0.0;
        self.outcome == Outcome::TimedOut && given && self.seconds < ENOUGH_S
    }
}
