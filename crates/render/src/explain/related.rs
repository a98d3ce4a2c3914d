//! Which causes an entry of the tables points to, asked of the causes themselves.

use std::collections::BTreeMap;

use facts::model::cuda::{Stage, Trial, TrialResult};
use facts::model::log::LogEvent;
use facts::model::nvml::NvmlResult;
use facts::raw::{ItemName, RawItem, RawSet};
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
/// come causes that print it in a case of the corpus, and those whose text names the entry.
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
    for cause in printed_by(&entry.key) {
        if !found.iter().any(|related| related.cause.id == cause.id) {
            found.push(Related { cause, score: 0.0 });
        }
    }
    let name = entry.title.split_once(" (").map_or(entry.title.as_str(), |(name, _)| name);
    for &cause in CAUSES {
        let known = found.iter().any(|related| related.cause.id == cause.id);
        if !known && names(cause, name) {
            found.push(Related { cause, score: 0.0 });
        }
    }
    found
}

/// Which causes print a kernel-log signature or a word of a topology, as the corpus shows them.
fn printed_by(key: &str) -> impl Iterator<Item = &'static Cause> {
    let rows = include_str!("printed_by.tsv").lines().filter_map(|row| row.split_once('\t'));
    let ids = rows.filter(move |(word, _)| *word == key).map(|(_, id)| id);
    ids.filter_map(reason::causes::by_id)
}

/// The causes to which a pasted line points, the best first: a log line, or what a program printed.
pub(super) fn of_text(text: &str) -> Vec<&'static Cause> {
    let found = reason::diagnose(&facts_of(text)).causes;
    found.into_iter().map(|finding| finding.cause).collect()
}

fn facts_of(text: &str) -> Facts {
    let mut raw = RawSet::new();
    raw.push(RawItem::new(ItemName::Text("words".to_owned()), text.as_bytes()));
    facts::extract(&raw)
}

/// The log lines of a text that a signature knows, by the signatures' ids, each once.
pub(super) fn signatures_in(text: &str) -> Vec<&'static str> {
    let parsed = facts::parse::kernel_log::parse(text.as_bytes()).value;
    let mut ids: Vec<&'static str> = Vec::new();
    for found in parsed.lines.iter().flat_map(|line| &line.matches) {
        if !ids.contains(&found.signature.id) {
            ids.push(found.signature.id);
        }
    }
    ids
}

/// Facts of a machine of which nothing but this code is known; several where a code can come from
/// several calls.
fn facts_with(entry: &Entry) -> Vec<Facts> {
    if entry.table == "kernel_log_signatures" {
        let signature = nvabi::signature::by_id(&entry.key);
        return signature.map(|known| event(known.id, &[], entry)).into_iter().collect();
    }
    if entry.table == "rm_init_adapter_codes" && entry.key.contains(':') {
        let line = format!("NVRM: GPU 0000:01:00.0: RmInitAdapter failed! ({})", entry.key);
        return vec![facts_of(&line)];
    }
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
        "xid" => vec![event("XID", &[("xid", number.to_string())], entry)],
        _ => Vec::new(),
    }
}

/// A kernel log that holds one line.
fn event(signature: &'static str, groups: &[(&'static str, String)], entry: &Entry) -> Facts {
    let origin = Origin::item(entry.title.clone());
    let mut facts = Facts::default();
    facts.log.read = Observed::seen(None, origin.clone());
    facts.log.events.push(LogEvent {
        signature,
        captures: groups.iter().cloned().collect::<BTreeMap<_, _>>(),
        time_s: None,
        device: None,
        origin,
        text: entry.title.clone(),
    });
    facts
}

fn cuda(code: i64, stage: Stage, what: &str, origin: &Origin) -> Facts {
    let mut facts = Facts::default();
    facts.cuda.trials.push(Trial::new(stage, TrialResult::Code(code), what, origin.clone()));
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
