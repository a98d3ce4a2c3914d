//! A piece of evidence: a statement, where it comes from and how much it says.

use facts::Origin;

/// How much one piece of evidence says, for or against. What each is worth stands in
/// [`crate::weigh`] and nowhere else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Strength {
    /// Fits, and fits many other causes as well.
    Weak,
    /// Expected under this cause and not under most others.
    Moderate,
    /// Hardly to be seen without this cause.
    Strong,
    /// For: pathognomonic, it alone makes the cause certain. Against: it cannot be the cause.
    Decisive,
}

impl Strength {
    /// The word in JSON and on the terminal.
    pub fn name(self) -> &'static str {
        match self {
            Strength::Weak => "weak",
            Strength::Moderate => "moderate",
            Strength::Strong => "strong",
            Strength::Decisive => "decisive",
        }
    }
}

/// One piece of evidence. There is none without an origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// What was seen, one clause in the user's words: `uvm_disable_hmm=N`.
    pub statement: String,
    /// Where it was seen.
    pub origin: Origin,
    /// How much it says.
    pub strength: Strength,
}
