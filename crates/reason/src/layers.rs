//! One line a layer: what the terminal shows first.

use facts::{Facts, Layer};

use crate::diagnose::Finding;
use crate::symptom::Symptom;

/// How a layer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerStatus {
    /// It was looked at and is as it should be.
    Ok,
    /// A symptom or a likely cause lies here.
    Fault,
    /// It could not be looked at.
    Unknown,
    /// A fault in a layer beneath keeps it from being judged.
    Blocked,
    /// It does not exist on this machine.
    NotApplicable,
}

impl LayerStatus {
    /// The word in JSON.
    pub fn name(self) -> &'static str {
        match self {
            LayerStatus::Ok => "ok",
            LayerStatus::Fault => "fault",
            LayerStatus::Unknown => "unknown",
            LayerStatus::Blocked => "blocked",
            LayerStatus::NotApplicable => "not-applicable",
        }
    }
}

/// A layer's line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerLine {
    /// The layer.
    pub layer: Layer,
    /// Its status.
    pub status: LayerStatus,
    /// One line on it.
    pub summary: String,
}

/// The lines of the layers that the facts say something about.
pub fn layer_lines(_facts: &Facts, _symptoms: &[Symptom], _findings: &[Finding]) -> Vec<LayerLine> {
    Vec::new()
}
