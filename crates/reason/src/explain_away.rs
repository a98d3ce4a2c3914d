//! A specific cause explains the general one away.

use crate::diagnose::Finding;
use crate::weigh::Verdict;

/// A general cause that a specific one replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExplainedAway {
    /// The general cause.
    pub id: &'static str,
    /// The specific one that replaces it.
    pub by: &'static str,
}

/// Takes the general causes out of the ranked findings when a specific one that names them is at
/// least likely and at least as certain, and says which went.
pub fn explain_away(findings: &mut Vec<Finding>) -> Vec<ExplainedAway> {
    let mut gone = Vec::new();
    for specific in findings.iter() {
        for general in findings.iter() {
            let names = specific.cause.specializes.contains(&general.cause.id);
            let certain =
                specific.verdict >= Verdict::Likely && specific.verdict >= general.verdict;
            if names
                && certain
                && !gone.iter().any(|known: &ExplainedAway| known.id == general.cause.id)
            {
                gone.push(ExplainedAway { id: general.cause.id, by: specific.cause.id });
            }
        }
    }
    findings.retain(|finding| !gone.iter().any(|known| known.id == finding.cause.id));
    gone
}
