//! Which causes an entry of the tables points to, asked of the causes themselves.

use std::collections::BTreeMap;

use facts::model::cuda::{Stage, Trial, TrialResult};
use facts::model::log::LogEvent;
use facts::model::nvml::NvmlResult;
use facts::{Facts, Observed, Origin};
use nvabi::Entry;
use reason::{CAUSES, Cause};

/// A cause that an entry points to.
#[derive(Debug, Clone, Copy)]
pub struct Related {
    /// The cause.
    pub cause: &'static Cause,
    /// How strongly the code alone speaks for it, 0 to 1; 0 when only its text names the entry.
    pub score: f64,
}

/// The causes that a code points to. The engine is asked: facts that hold nothing but this code
/// are weighed, and whatever takes it for support is listed, the strongest first. After those
/// come causes whose text names the entry.
pub fn related(entry: &Entry) -> Vec<Related> {
    let mut found: Vec<Related> = Vec::new();
    for facts in facts_with(entry) {
        let symptoms = reason::symptom::derive(&facts);
        for &cause in CAUSES {
            let weighing = (cause.weigh)(&facts);
            let relevant = symptoms.iter().any(|symptom| cause.can_explain(symptom.id));
            let known = found.iter().any(|related| related.cause.id == cause.id);
            if relevant && !weighing.support.is_empty() && !known {
                found.push(Related { cause, score: weighing.score() });
            }
        }
    }
    found.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.cause.id.cmp(b.cause.id)));
    let name = entry.title.split_once(" (").map_or(entry.title.as_str(), |(name, _)| name);
    for &cause in CAUSES {
        let known = found.iter().any(|related| related.cause.id == cause.id);
        if !known && names(cause, name) {
            found.push(Related { cause, score: 0.0 });
        }
    }
    found
}

/// Facts of a machine of which nothing but this code is known; several where a code can come from
/// several calls.
fn facts_with(entry: &Entry) -> Vec<Facts> {
    let number = nvabi::number::parse(&entry.key).and_then(|number| i64::try_from(number).ok());
    let Some(number) = number.filter(|number| *number != 0) else { return Vec::new() };
    let origin = Origin::item(entry.title.clone());
    match entry.table {
        "cuda_results" => vec![
            cuda(number, Stage::Init, "cuInit", &origin),
            cuda(number, Stage::Kernel, "a kernel", &origin),
        ],
        "nvml_returns" => {
            let mut facts = Facts::default();
            facts.nvml.init = Observed::seen(NvmlResult::Code(number), origin);
            vec![facts]
        }
        "xid" => {
            let mut facts = Facts::default();
            facts.log.read = Observed::seen(None, origin.clone());
            facts.log.events.push(LogEvent {
                signature: "XID",
                captures: BTreeMap::from([("xid", number.to_string())]),
                time_s: None,
                device: None,
                origin,
                text: entry.title.clone(),
            });
            vec![facts]
        }
        _ => Vec::new(),
    }
}

fn cuda(code: i64, stage: Stage, what: &str, origin: &Origin) -> Facts {
    let mut facts = Facts::default();
    facts.cuda.trials.push(Trial {
        stage,
        result: TrialResult::Code(code),
        fresh_process: None,
        hmm_disabled: None,
        seconds: None,
        traced: false,
        what: what.to_owned(),
        under: None,
        origin: origin.clone(),
    });
    facts
}

/// True when the cause's text names this; a short or lower-case word would be found everywhere.
fn names(cause: &Cause, name: &str) -> bool {
    if name.len() < 6 || !name.contains('_') {
        return false;
    }
    cause.explanation.contains(name)
        || cause.claim.contains(name)
        || cause.look_alikes.iter().any(|look_alike| look_alike.tell.contains(name))
}
