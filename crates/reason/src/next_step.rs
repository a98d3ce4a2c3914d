//! Which observation that has not been made would best separate what is left.

use std::collections::BTreeMap;

use crate::diagnose::{Finding, UnknownCause};
use crate::need::Need;

/// An observation worth making, and which causes it tells apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextStep {
    /// What to observe.
    pub need: Need,
    /// The causes that it would decide, best first.
    pub separates: Vec<&'static str>,
}

/// How many next steps are worth reading at 3 a.m.
const LIMIT: usize = 5;

/// The observations that the causes in question lack, those that decide about the best-placed
/// causes first. A cause that is still in play counts more than one about which nothing is known.
pub fn next_steps(findings: &[Finding], unknown: &[UnknownCause]) -> Vec<NextStep> {
    let mut weights: BTreeMap<Need, (u32, Vec<&'static str>)> = BTreeMap::new();
    for (rank, finding) in findings.iter().enumerate() {
        let weight = 12_u32.saturating_sub(u32::try_from(rank).unwrap_or(12)).max(4);
        for need in &finding.weighing.needs {
            let entry = weights.entry(*need).or_default();
            entry.0 += weight;
            entry.1.push(finding.cause.id);
        }
    }
    for cause in unknown {
        for need in &cause.needs {
            let entry = weights.entry(*need).or_default();
            entry.0 += 2;
            entry.1.push(cause.cause.id);
        }
    }
    let mut ranked: Vec<(Need, u32, Vec<&'static str>)> =
        weights.into_iter().map(|(need, (weight, causes))| (need, weight, causes)).collect();
    ranked.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    ranked
        .into_iter()
        .take(LIMIT)
        .map(|(need, _, separates)| NextStep { need, separates })
        .collect()
}
