//! Weighing: the only place where evidence is worth a number.
//!
//! Support combines as independent evidence does (noisy-or), objections multiply it down. A
//! decisive piece stands outside the arithmetic: for a cause it confirms, against it it rules out,
//! and both at once is a contradiction that is shown and caps the verdict at likely.
//!
//! The laws, held by `tests/laws.rs`: more support never lowers a verdict, more contradiction
//! never raises one, and nothing but a decisive piece confirms or rules out.

use facts::Origin;

use crate::evidence::{Evidence, Strength};
use crate::need::Need;

/// What a cause is judged to be. Ordered from least to most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// It cannot be: a decisive observation stands against it.
    RuledOut,
    /// Nothing points to it, or it does not apply to this machine.
    NotApplicable,
    /// Nothing points to it, and something that would decide it has not been looked at.
    Unknown,
    /// Some evidence, not enough to act on.
    Possible,
    /// The evidence makes it the working hypothesis.
    Likely,
    /// A pathognomonic observation.
    Confirmed,
}

impl Verdict {
    /// The word in JSON and on the terminal.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::RuledOut => "ruled-out",
            Verdict::NotApplicable => "not-applicable",
            Verdict::Unknown => "unknown",
            Verdict::Possible => "possible",
            Verdict::Likely => "likely",
            Verdict::Confirmed => "confirmed",
        }
    }
}

/// What one cause makes of the facts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Weighing {
    /// Evidence for.
    pub support: Vec<Evidence>,
    /// Evidence against.
    pub against: Vec<Evidence>,
    /// What has not been looked at and would decide.
    pub needs: Vec<Need>,
    /// True when the cause has nothing to say about such a machine at all.
    pub not_applicable: bool,
    /// True when it holds whatever the symptom comes from: CUDA would fail of it next.
    pub stands_alone: bool,
}

impl Weighing {
    /// Nothing weighed yet.
    pub fn new() -> Weighing {
        Weighing::default()
    }

    /// The answer of a cause that has nothing to say about this machine.
    pub fn not_applicable() -> Weighing {
        Weighing { not_applicable: true, ..Weighing::default() }
    }

    /// Enters evidence for.
    pub fn supports(
        &mut self,
        strength: Strength,
        statement: impl Into<String>,
        origin: &Origin,
    ) -> &mut Self {
        enter(&mut self.support, strength, statement.into(), origin);
        self
    }

    /// Enters evidence that makes the cause certain by itself. What an output that a person pasted
    /// does not show is strong and never decisive: a line may have been left out.
    pub fn confirms(&mut self, statement: impl Into<String>, origin: &Origin) -> &mut Self {
        let silence = origin.is_pasted_silence();
        let strength = if silence { Strength::Strong } else { Strength::Decisive };
        self.supports(strength, statement, origin)
    }

    /// Enters evidence against.
    pub fn objects(
        &mut self,
        strength: Strength,
        statement: impl Into<String>,
        origin: &Origin,
    ) -> &mut Self {
        enter(&mut self.against, strength, statement.into(), origin);
        self
    }

    /// Enters an observation with which the cause cannot be; of a pasted silence the same holds as
    /// in [`Weighing::confirms`].
    pub fn rules_out(&mut self, statement: impl Into<String>, origin: &Origin) -> &mut Self {
        let silence = origin.is_pasted_silence();
        let strength = if silence { Strength::Strong } else { Strength::Decisive };
        self.objects(strength, statement, origin)
    }

    /// Enters what holds of everything that a list shows and rules the cause out, if the list is
    /// whole. Of a pasted one nobody knows.
    pub fn rules_out_by_all(&mut self, statement: impl Into<String>, origin: &Origin) -> &mut Self {
        let strength = if origin.is_pasted() { Strength::Strong } else { Strength::Decisive };
        self.objects(strength, statement, origin)
    }

    /// Says that the cause holds whatever the symptom comes from, so that it is worth telling even
    /// where another one explains the symptom: it is met as soon as that one is put right.
    pub fn stands_alone(&mut self) -> &mut Self {
        self.stands_alone = true;
        self
    }

    /// Names an observation that has not been made and would decide.
    pub fn needs(&mut self, need: Need) -> &mut Self {
        if !self.needs.contains(&need) {
            self.needs.push(need);
        }
        self
    }

    /// True when decisive evidence stands on both sides.
    pub fn contradicts_itself(&self) -> bool {
        decisive(&self.support) && decisive(&self.against)
    }

    /// Support after objections, 0 to 1, decisive pieces aside. For ranking within a verdict.
    pub fn score(&self) -> f64 {
        let doubt: f64 = self.support.iter().map(|piece| 1.0 - worth_for(piece.strength)).product();
        let trust: f64 =
            self.against.iter().map(|piece| 1.0 - worth_against(piece.strength)).product();
        (1.0 - doubt) * trust
    }

    /// The verdict.
    pub fn verdict(&self) -> Verdict {
        if self.not_applicable {
            return Verdict::NotApplicable;
        }
        match (decisive(&self.support), decisive(&self.against)) {
            (true, true) => return Verdict::Likely,
            (true, false) => return self.confirmed_unless_doubtful(),
            (false, true) => return Verdict::RuledOut,
            (false, false) => {}
        }
        let score = self.score();
        if score >= LIKELY {
            Verdict::Likely
        } else if score >= POSSIBLE {
            Verdict::Possible
        } else if self.needs.is_empty() {
            Verdict::NotApplicable
        } else {
            Verdict::Unknown
        }
    }

    /// A pathognomonic observation with a strong objection is a working hypothesis and no more: a
    /// wrong "confirmed" is worse than an open question.
    fn confirmed_unless_doubtful(&self) -> Verdict {
        let doubtful = self.against.iter().any(|piece| piece.strength >= Strength::Strong);
        if doubtful { Verdict::Likely } else { Verdict::Confirmed }
    }
}

/// From this score on a cause is likely: one strong piece needs a companion, two moderate ones
/// and a weak one will do.
const LIKELY: f64 = 0.64;

/// From this score on a cause is possible: one moderate piece, or two weak ones.
const POSSIBLE: f64 = 0.27;

/// What support is worth. A strong piece leaves 40 % doubt; the numbers were set so that the
/// corpus ranks right and are kept few so that nobody tunes them to one case.
fn worth_for(strength: Strength) -> f64 {
    match strength {
        Strength::Decisive => 0.97,
        Strength::Strong => 0.60,
        Strength::Moderate => 0.35,
        Strength::Weak => 0.15,
    }
}

/// What an objection takes away.
fn worth_against(strength: Strength) -> f64 {
    match strength {
        Strength::Decisive => 0.97,
        Strength::Strong => 0.70,
        Strength::Moderate => 0.40,
        Strength::Weak => 0.15,
    }
}

fn decisive(pieces: &[Evidence]) -> bool {
    pieces.iter().any(|piece| piece.strength == Strength::Decisive)
}

/// The same statement twice is one piece: a log that repeats a line a thousand times is no
/// thousand witnesses.
fn enter(pieces: &mut Vec<Evidence>, strength: Strength, statement: String, origin: &Origin) {
    if let Some(known) = pieces.iter_mut().find(|piece| piece.statement == statement) {
        known.strength = known.strength.max(strength);
        return;
    }
    pieces.push(Evidence { statement, origin: origin.clone(), strength });
}
