//! What a cause is: plain data and two functions.

use facts::{Facts, Layer};

use crate::remedy::Remedy;
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

/// A cause that is easily mistaken for this one, and what tells them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LookAlike {
    /// The other cause's id.
    pub id: &'static str,
    /// The observation that separates the two.
    pub tell: &'static str,
}

/// One failure cause. The definition is the documentation: `gpudx explain`, the docs page, JSON
/// and every front are printed from it.
#[derive(Debug)]
pub struct Cause {
    /// `layer.fault`, kebab-case; names the fault and not the cure; kept for ever.
    pub id: &'static str,
    /// Layer.
    pub layer: Layer,
    /// One sentence without a full stop that names the fault.
    pub claim: &'static str,
    /// What happens and why it looks as it does, a few sentences.
    pub explanation: &'static str,
    /// The symptoms it can explain.
    pub explains: &'static [SymptomId],
    /// More general causes that this one explains away when it is at least as certain.
    pub specializes: &'static [&'static str],
    /// Look-alikes.
    pub look_alikes: &'static [LookAlike],
    /// Public sources: documents, issue threads, headers.
    pub references: &'static [&'static str],
    /// Weighs the facts.
    pub weigh: fn(&Facts) -> Weighing,
    /// Says what puts it right on this machine.
    pub remedy: fn(&Facts) -> Remedy,
}

impl Cause {
    /// True when it can explain this symptom.
    pub fn can_explain(&self, symptom: SymptomId) -> bool {
        self.explains.contains(&symptom)
    }
}
