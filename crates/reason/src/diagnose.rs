//! From facts to a diagnosis.

use facts::model::{Note, ProbeRun};
use facts::{Facts, Origin};

use crate::cause::Cause;
use crate::causes::CAUSES;
use crate::evidence::Evidence;
use crate::explain_away::{ExplainedAway, explain_away};
use crate::layers::{LayerLine, layer_lines};
use crate::need::Need;
use crate::next_step::{NextStep, next_steps};
use crate::readings;
use crate::remedy::Remedy;
use crate::symptom::{Symptom, derive};
use crate::weigh::{Verdict, Weighing};

/// What the whole machine is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// CUDA (or, where nobody asked CUDA, NVML) answers, and no symptom was seen.
    Healthy,
    /// A symptom was seen and a cause is at least likely.
    Fault,
    /// A symptom without a likely cause, or too little could be seen.
    Undetermined,
    /// Nothing of NVIDIA's is here, and nothing asks for it.
    NoGpu,
}

impl State {
    /// The word in JSON and on the terminal.
    pub fn name(self) -> &'static str {
        match self {
            State::Healthy => "healthy",
            State::Fault => "fault",
            State::Undetermined => "undetermined",
            State::NoGpu => "no-gpu",
        }
    }
}

/// A cause in play.
#[derive(Debug, Clone)]
pub struct Finding {
    /// The cause.
    pub cause: &'static Cause,
    /// Confirmed, likely or possible.
    pub verdict: Verdict,
    /// Evidence for and against, and what is lacking.
    pub weighing: Weighing,
    /// What puts it right here.
    pub remedy: Remedy,
}

/// A cause that was ruled out.
#[derive(Debug, Clone)]
pub struct RuledOut {
    /// The cause.
    pub cause: &'static Cause,
    /// What rules it out.
    pub evidence: Vec<Evidence>,
}

/// A cause about which nothing is known and that something would decide.
#[derive(Debug, Clone)]
pub struct UnknownCause {
    /// The cause.
    pub cause: &'static Cause,
    /// What would decide it.
    pub needs: Vec<Need>,
}

/// A diagnosis.
#[derive(Debug, Clone)]
pub struct Diagnosis {
    /// State of the whole.
    pub state: State,
    /// Symptoms, with what explains each.
    pub symptoms: Vec<Symptom>,
    /// Causes in play, the best first.
    pub causes: Vec<Finding>,
    /// Tempting causes that were ruled out.
    pub ruled_out: Vec<RuledOut>,
    /// Causes that could not be judged.
    pub unknown: Vec<UnknownCause>,
    /// General causes that a specific one replaces.
    pub explained_away: Vec<ExplainedAway>,
    /// The observations that would best separate what is left.
    pub next: Vec<NextStep>,
    /// One line a layer.
    pub layers: Vec<LayerLine>,
    /// Every probe run.
    pub probes: Vec<ProbeRun>,
    /// Remarks on the input.
    pub notes: Vec<Note>,
    /// Lines that name the driver and that nothing understood.
    pub not_understood: Vec<Origin>,
}

/// Judges the facts. The same facts always give the same diagnosis.
pub fn diagnose(facts: &Facts) -> Diagnosis {
    let judged: Vec<(&'static Cause, Weighing)> =
        CAUSES.iter().map(|cause| (*cause, (cause.weigh)(facts))).collect();
    let mut symptoms = derive(facts);
    let works = readings::cuda_works(facts).is_some();
    if !works && !nothing_of_nvidia(facts) {
        symptoms.extend(told_by_the_cause(&judged, &symptoms));
    }
    let mut findings = Vec::new();
    let mut ruled_out = Vec::new();
    let mut unknown = Vec::new();
    for (cause, weighing) in judged {
        let relevant = symptoms.iter().any(|symptom| cause.can_explain(symptom.id));
        match weighing.verdict() {
            verdict @ (Verdict::Confirmed | Verdict::Likely | Verdict::Possible) if relevant => {
                let remedy = (cause.remedy)(facts);
                findings.push(Finding { cause, verdict, weighing, remedy });
            }
            Verdict::RuledOut if relevant => {
                let evidence = decisive_objections(weighing);
                ruled_out.push(RuledOut { cause, evidence });
            }
            Verdict::Unknown if relevant => {
                unknown.push(UnknownCause { cause, needs: weighing.needs });
            }
            _ => {}
        }
    }
    rank(&mut findings);
    let explained_away = explain_away(&mut findings);
    drop_idle_suspicions(&symptoms, &mut findings);
    attribute(&mut symptoms, &findings);
    most_tempting_first(&findings, &mut ruled_out);
    let next = next_steps(&findings, &unknown);
    Diagnosis {
        state: state(facts, &symptoms, &findings),
        layers: layer_lines(facts, &symptoms, &findings),
        symptoms,
        causes: findings,
        ruled_out,
        unknown,
        explained_away,
        next,
        probes: facts.probes.clone(),
        notes: facts.notes.clone(),
        not_understood: facts.log.unlisted.clone(),
    }
}

/// A log alone shows no call that fails, and may yet tell the whole story: the evidence of the best
/// founded cause is then the symptom. Beside other symptoms, which may be of little weight, only
/// a confirmed cause that explains none of them is one of its own.
fn told_by_the_cause(
    judged: &[(&'static Cause, Weighing)],
    symptoms: &[Symptom],
) -> Option<Symptom> {
    let least = if symptoms.is_empty() { Verdict::Likely } else { Verdict::Confirmed };
    let founded = judged.iter().filter(|(cause, weighing)| {
        let explains = symptoms.iter().any(|symptom| cause.can_explain(symptom.id));
        weighing.verdict() >= least && !explains
    });
    let (cause, weighing) = founded.max_by(|(_, a), (_, b)| {
        a.verdict().cmp(&b.verdict()).then_with(|| a.score().total_cmp(&b.score()))
    })?;
    let piece = weighing.support.iter().max_by_key(|piece| piece.strength)?;
    Some(Symptom {
        id: *cause.explains.first()?,
        code: None,
        summary: piece.statement.clone(),
        origin: piece.origin.clone(),
        explained_by: Vec::new(),
    })
}

/// What is easily mistaken for a cause in play comes first: it is what the reader has in mind.
fn most_tempting_first(findings: &[Finding], ruled_out: &mut [RuledOut]) {
    let look_alikes: Vec<&str> = findings
        .iter()
        .flat_map(|finding| finding.cause.look_alikes.iter().map(|look_alike| look_alike.id))
        .collect();
    let place = |cause: &RuledOut| {
        let found = look_alikes.iter().position(|id| *id == cause.cause.id);
        found.unwrap_or(look_alikes.len())
    };
    ruled_out.sort_by_key(place);
}

fn decisive_objections(weighing: Weighing) -> Vec<Evidence> {
    use crate::evidence::Strength;
    let decisive = |piece: &Evidence| piece.strength == Strength::Decisive;
    weighing.against.into_iter().filter(decisive).collect()
}

/// Verdict first, then the score, then the lower layer: what lies beneath blocks what lies above.
fn rank(findings: &mut [Finding]) {
    findings.sort_by(|a, b| {
        b.verdict
            .cmp(&a.verdict)
            .then_with(|| b.weighing.score().total_cmp(&a.weighing.score()))
            .then_with(|| a.cause.layer.cmp(&b.cause.layer))
            .then_with(|| a.cause.id.cmp(b.cause.id))
    });
}

/// When a confirmed cause explains every symptom, what is merely possible is no longer worth a
/// reader's time, unless it is the fault that comes next.
fn drop_idle_suspicions(symptoms: &[Symptom], findings: &mut Vec<Finding>) {
    let settled = symptoms.iter().all(|symptom| {
        findings.iter().any(|finding| {
            finding.verdict == Verdict::Confirmed && finding.cause.can_explain(symptom.id)
        })
    });
    if settled && !symptoms.is_empty() {
        let stays = |finding: &Finding| {
            finding.verdict > Verdict::Possible || finding.weighing.stands_alone
        };
        findings.retain(stays);
    }
}

fn attribute(symptoms: &mut [Symptom], findings: &[Finding]) {
    for symptom in symptoms {
        symptom.explained_by = findings
            .iter()
            .filter(|finding| finding.cause.can_explain(symptom.id))
            .map(|finding| finding.cause.id)
            .collect();
    }
}

fn state(facts: &Facts, symptoms: &[Symptom], findings: &[Finding]) -> State {
    if findings.iter().any(|finding| finding.verdict >= Verdict::Likely) {
        return State::Fault;
    }
    if !symptoms.is_empty() {
        return State::Undetermined;
    }
    if readings::cuda_works(facts).is_some() {
        return State::Healthy;
    }
    if nothing_of_nvidia(facts) {
        return State::NoGpu;
    }
    State::Undetermined
}

/// No device, driver, library or node of NVIDIA's, each of them looked for and absent, and no
/// request for one.
fn nothing_of_nvidia(facts: &Facts) -> bool {
    facts.live
        && facts.pci.devices.absent().is_some()
        && facts.module.version().is_none()
        && !facts.library.cuda.is_seen()
        && !facts.library.nvml.is_seen()
        && !facts.node.nodes.values().any(facts::Observed::is_seen)
        && facts.sandbox.gpu_requested.value() != Some(&true)
        && facts.host.wsl.value() != Some(&true)
        && facts.host.tegra.value() != Some(&true)
}
