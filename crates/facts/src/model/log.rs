//! The kernel log through the signature table.

use std::collections::BTreeMap;

use super::pci::PciAddress;
use crate::observed::{Observed, Origin, Seen};

/// A line that a signature knows.
#[derive(Debug, Clone, PartialEq)]
pub struct LogEvent {
    /// The signature's id, such as `XID` or `RMINIT_FAILED`.
    pub signature: &'static str,
    /// The named groups of the signature's expression.
    pub captures: BTreeMap<&'static str, String>,
    /// Seconds: since boot for dmesg stamps, since the epoch for journal stamps.
    pub time_s: Option<f64>,
    /// The device the line names.
    pub device: Option<PciAddress>,
    /// The line.
    pub origin: Origin,
    /// The line's text without stamp and prefix.
    pub text: String,
}

impl LogEvent {
    /// A named group.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.captures.get(name).map(String::as_str)
    }
}

/// The kernel log.
#[derive(Debug, Clone, Default)]
pub struct KernelLog {
    /// `Seen(first stamp)` when a kernel log was read, so that the absence of a line from it means
    /// something (little: see the notes on proprietary modules and rate limits).
    pub read: Observed<Option<f64>>,
    /// Lines that a signature knows, in order.
    pub events: Vec<LogEvent>,
    /// Lines that name the driver and that no signature knows.
    pub unlisted: Vec<Origin>,
    /// Xids that a report tells of without quoting the kernel's line.
    pub told_xids: Vec<Seen<u32>>,
    /// Errors of NVSwitches (SXids) that a report tells of without quoting the kernel's line.
    pub told_sxids: Vec<Seen<u32>>,
    /// Lines in which a report says that a GPU fell off the bus, without quoting the kernel's.
    pub told_off_bus: Vec<Origin>,
    /// Frames of stack traces that stand in the log, `function [module]`, with their lines.
    pub frames: Vec<(String, Origin)>,
}

impl KernelLog {
    /// The events with this signature, in order.
    pub fn with<'a>(&'a self, signature: &'a str) -> impl Iterator<Item = &'a LogEvent> {
        self.events.iter().filter(move |event| event.signature == signature)
    }

    /// The first event with any of these signatures.
    pub fn first(&self, signatures: &[&str]) -> Option<&LogEvent> {
        self.events.iter().find(|event| signatures.contains(&event.signature))
    }

    /// The Xids, in order, with their numbers.
    pub fn xids(&self) -> impl Iterator<Item = (u32, &LogEvent)> {
        self.with("XID").filter_map(|event| Some((event.get("xid")?.parse().ok()?, event)))
    }
}
