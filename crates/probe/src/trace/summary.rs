//! The sums of a trace.

use std::collections::BTreeMap;
use std::time::Duration;

use super::event::{Answer, Call};

/// Most different names that are kept apart; the numbers in a hostile program's calls have no end.
const NAMES_LIMIT: usize = 4096;
/// What calls beyond that limit go under.
const OTHERS: &str = "others";

/// How a trace ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The target exited with this status.
    Exited(i32),
    /// This signal ended the target.
    Killed(i32),
    /// The deadline passed.
    Deadline,
    /// The tracer was asked to end.
    Asked,
    /// The target is gone and nobody told how.
    Gone,
}

/// Calls of one name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Total {
    /// How many were entered.
    pub count: u64,
    /// Time in those that returned.
    pub time: Duration,
    /// The longest one.
    pub longest: Duration,
    /// How often each failure came: a status's or an errno's name.
    pub failures: BTreeMap<String, u64>,
}

/// Calls on one node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeTotal {
    /// How many were entered.
    pub count: u64,
    /// Time in those that returned.
    pub time: Duration,
    /// The one that took longest, by name, and its time.
    pub slowest: Option<(String, Duration)>,
}

impl NodeTotal {
    fn returned(&mut self, name: &str, elapsed: Duration) {
        self.time += elapsed;
        if self.slowest.as_ref().is_none_or(|(_, longest)| elapsed > *longest) {
            self.slowest = Some((name.to_owned(), elapsed));
        }
    }
}

/// A call that did not return.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InFlight {
    /// The call.
    pub call: Call,
    /// How long it had been going on when the trace or its process ended.
    pub elapsed: Duration,
}

/// Everything in sums.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// How it ended.
    pub ended: Ended,
    /// How long the trace took.
    pub elapsed: Duration,
    /// Driver calls entered.
    pub calls: u64,
    /// By name.
    pub by_name: BTreeMap<String, Total>,
    /// By node.
    pub by_node: BTreeMap<String, NodeTotal>,
    /// By the GPU that calls name, as its UUID.
    pub by_gpu: BTreeMap<String, NodeTotal>,
    /// Calls whose number is in no table, by number and node.
    pub unknown: BTreeMap<String, u64>,
    /// The calls that did not return.
    pub in_flight: Vec<InFlight>,
    /// Processes that SIGKILL did not end.
    pub left_behind: Vec<u32>,
}

impl Summary {
    /// Nothing yet.
    pub(super) fn new() -> Summary {
        Summary {
            ended: Ended::Gone,
            elapsed: Duration::ZERO,
            calls: 0,
            by_name: BTreeMap::new(),
            by_node: BTreeMap::new(),
            by_gpu: BTreeMap::new(),
            unknown: BTreeMap::new(),
            in_flight: Vec::new(),
            left_behind: Vec::new(),
        }
    }

    /// Counts a call that was entered.
    pub(super) fn entered(&mut self, call: &Call) {
        self.calls += 1;
        entry(&mut self.by_name, &call.name).count += 1;
        entry(&mut self.by_node, &call.node).count += 1;
        if let Some(gpu) = &call.gpu {
            entry(&mut self.by_gpu, gpu).count += 1;
        }
        if !call.known {
            *entry(&mut self.unknown, &format!("{} on {}", call.name, call.node)) += 1;
        }
    }

    /// Counts its answer.
    pub(super) fn returned(&mut self, call: &Call, answer: &Answer) {
        let total = entry(&mut self.by_name, &call.name);
        total.time += answer.elapsed;
        total.longest = total.longest.max(answer.elapsed);
        if answer.failed() {
            *total.failures.entry(answer.word()).or_default() += 1;
        }
        entry(&mut self.by_node, &call.node).returned(&call.name, answer.elapsed);
        if let Some(gpu) = &call.gpu {
            entry(&mut self.by_gpu, gpu).returned(&call.name, answer.elapsed);
        }
    }

    /// The names by the time that went there, most first.
    pub fn names_by_time(&self) -> Vec<(&str, &Total)> {
        let mut names: Vec<_> =
            self.by_name.iter().map(|(name, total)| (name.as_str(), total)).collect();
        names.sort_by(|(_, one), (_, other)| {
            other.time.cmp(&one.time).then(other.count.cmp(&one.count))
        });
        names
    }
}

/// The sums under a name, which begin at nothing.
fn entry<'a, T: Default>(sums: &'a mut BTreeMap<String, T>, name: &str) -> &'a mut T {
    let room = sums.len() < NAMES_LIMIT || sums.contains_key(name);
    sums.entry(if room { name } else { OTHERS }.to_owned()).or_default()
}
