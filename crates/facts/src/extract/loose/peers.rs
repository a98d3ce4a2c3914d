//! What people say of traffic between GPUs: it hangs, it completes with this switch, it does not
//! help, bandwidth is low, the IOMMU translates. A statement is read clause by clause, since one
//! sentence often tells of several runs.

use super::{Line, bounded};
use crate::model::Facts;
use crate::model::p2p::{PeerRun, PeerSwitch};
use crate::observed::{Observed, Seen, clean_excerpt};
use crate::raw::RawItem;

mod words;

pub(super) use words::about_peers;
pub(crate) use words::switches;

/// Longest paragraph, most clauses of one and most statements that are read.
const PARAGRAPH_LIMIT: usize = 4096;
const CLAUSES_LIMIT: usize = 64;
const LIMIT: usize = 128;

/// Reads the statements of a text, paragraph by paragraph.
pub(super) fn read(item: &RawItem, text: &str, facts: &mut Facts) {
    let mut paragraph = Paragraph::default();
    for (number, line) in crate::parse::numbered(text) {
        let line = bounded(line);
        if !is_prose(line) {
            paragraph.end(item, facts);
            continue;
        }
        // A list item or a heading begins anew.
        let begins = line.trim_start().starts_with(['-', '*', '#', '•']);
        if begins || paragraph.text.len() > PARAGRAPH_LIMIT {
            paragraph.end(item, facts);
        }
        paragraph.add(number, line);
    }
    paragraph.end(item, facts);
}

/// Lines of prose that belong together. Line ends stay, so that a clause finds its own line.
#[derive(Default)]
struct Paragraph {
    first_line: u32,
    text: String,
}

impl Paragraph {
    fn add(&mut self, number: u32, line: &str) {
        if self.text.is_empty() {
            self.first_line = number;
        } else {
            self.text.push('\n');
        }
        self.text.push_str(line);
    }

    /// Reads what was gathered and begins anew.
    fn end(&mut self, item: &RawItem, facts: &mut Facts) {
        const MARKS: [&str; 18] = [
            "nccl",
            "p2p",
            "reduce",
            "gpu",
            " tp",
            "=tp",
            "iommu",
            "peer",
            "bridge",
            "acs",
            "vt-d",
            "amd-vi",
            "distributed",
            "collective",
            "parallel",
            "ddp",
            "rank",
            "busbw",
        ];
        let text = std::mem::take(&mut self.text);
        let lower = text.to_ascii_lowercase();
        if !MARKS.iter().any(|mark| lower.contains(mark)) {
            return;
        }
        let mut subject = false;
        let mut number = self.first_line;
        for part in clauses(&text) {
            subject |= words::is_subject(part);
            let line = Line { item, number, text: part.trim() };
            clause(&line, subject, facts);
            number += u32::try_from(part.matches('\n').count()).unwrap_or(0);
        }
    }
}

/// Words in a row, as against a table, a log line with a stamp or code.
fn is_prose(line: &str) -> bool {
    let text = line.trim();
    let log = text.starts_with(['[', '|', '+', '{', '}', '<', '"'])
        || text.contains("NCCL INFO")
        || text.contains("NCCL WARN")
        || text.contains("kernel: ");
    let letters = text.chars().filter(|ch| ch.is_alphabetic()).count();
    let words = text.split_whitespace().filter(|word| word.len() > 1).count();
    !log && words >= 2 && letters * 2 > text.chars().count()
}

/// Sentences, and the parts of one that tell of different runs.
fn clauses(paragraph: &str) -> Vec<&str> {
    // What ends a clause, and how much of it still belongs to that clause.
    const ENDS: [(&str, usize); 12] = [
        (". ", 2),
        (".\n", 2),
        ("; ", 2),
        (";\n", 2),
        ("? ", 2),
        (" but ", 1),
        (", then ", 2),
        (", while ", 2),
        (", whereas ", 2),
        (", NCCL_", 2),
        (" – ", 1),
        (" -- ", 1),
    ];
    let mut out = Vec::new();
    let mut rest = paragraph;
    // A text of nothing but full stops must stay cheap.
    while !rest.is_empty() && out.len() < CLAUSES_LIMIT {
        let ends = ENDS.iter().filter_map(|(end, kept)| rest.find(end).map(|at| at + kept));
        let next = ends.min().unwrap_or(rest.len()).max(1);
        let Some((part, after)) = rest.split_at_checked(next) else { break };
        out.push(part);
        rest = after;
    }
    out
}

fn clause(line: &Line<'_>, subject: bool, facts: &mut Facts) {
    let text = &line.text.replace('\n', " ");
    if let (Some(mode), false) = (words::iommu(text), facts.p2p.iommu_told.is_seen()) {
        facts.p2p.iommu_told = Observed::seen(mode, line.origin());
    }
    if subject && words::is_comparison(text) {
        push(&mut facts.p2p.other_gpus_work, clean_excerpt(text), line);
    }
    if words::is_irrelevant(text) {
        return;
    }
    if words::is_slow(text) {
        push(&mut facts.p2p.slow, clean_excerpt(text), line);
    }
    run(line, text, subject, facts);
}

fn push<T>(list: &mut Vec<Seen<T>>, value: T, line: &Line<'_>) {
    if list.len() < LIMIT {
        list.push(Seen::new(value, line.origin()));
    }
}

/// A run that is told of.
fn run(line: &Line<'_>, text: &str, subject: bool, facts: &mut Facts) {
    let Some((result, under)) = words::run_of(text, subject) else { return };
    // What a switch does is of interest wherever it is told; the IOMMU's may be about anything.
    let particular = under
        .iter()
        .any(|switch| !matches!(switch, PeerSwitch::IommuOff | PeerSwitch::IommuPassthrough));
    if !subject && !particular && facts.p2p.broken().is_none() {
        return;
    }
    facts.mentions_gpu = true;
    let run = PeerRun { what: what(text), result, under };
    let known = facts.p2p.runs.iter().any(|seen| seen.value == run);
    if !known {
        push(&mut facts.p2p.runs, run, line);
    }
}

fn what(text: &str) -> String {
    const NAMES: [(&str, &str); 9] = [
        ("all_reduce_perf", "all_reduce_perf"),
        ("all-reduce", "an all-reduce"),
        ("allreduce", "an all-reduce"),
        ("vllm", "vLLM on several GPUs"),
        ("sglang", "SGLang on several GPUs"),
        ("nccl", "NCCL"),
        ("peer cop", "a peer copy"),
        ("simplep2p", "simpleP2P"),
        ("p2pbandwidth", "p2pBandwidthLatencyTest"),
    ];
    let lower = text.to_lowercase();
    let found = NAMES.iter().find(|(word, _)| lower.contains(word));
    found.map_or("work on several GPUs", |(_, name)| name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::p2p::PeerResult;
    use crate::raw::ItemName;

    fn runs(text: &str) -> Vec<(PeerResult, Vec<PeerSwitch>)> {
        let item = RawItem::new(ItemName::Text("t".into()), text.as_bytes());
        let mut facts = Facts::default();
        read(&item, text, &mut facts);
        facts.p2p.runs.into_iter().map(|run| (run.value.result, run.value.under)).collect()
    }

    #[test]
    fn one_sentence_tells_of_several_runs() {
        use PeerResult::{Completed, Failed, Hung};
        use PeerSwitch::{CustomAllReduceOff, IommuOff, P2pOff};
        for (text, wanted) in [
            ("All-reduce hangs on two GPUs.", vec![(Hung, vec![])]),
            ("NCCL completes with NCCL_P2P_DISABLE=1.", vec![(Completed, vec![P2pOff])]),
            ("Setting NCCL_P2P_DISABLE=1 does not help.", vec![(Failed, vec![P2pOff])]),
            ("booting with intel_iommu=off cures the NCCL hang", vec![(Completed, vec![IommuOff])]),
            (
                "NCCL hangs with no flags; it completes with NCCL_P2P_DISABLE=1, then vLLM TP=2 \
                 hangs again until --disable-custom-all-reduce.",
                vec![
                    (Hung, vec![]),
                    (Completed, vec![P2pOff]),
                    (Completed, vec![CustomAllReduceOff]),
                ],
            ),
            (
                "The all-reduce hangs.\nWith NCCL_P2P_DISABLE=1\nit works.",
                vec![(Hung, vec![]), (Completed, vec![P2pOff])],
            ),
            ("Would NCCL_P2P_DISABLE=1 work?", vec![]),
            ("The desktop hangs with intel_iommu=on.", vec![]),
            ("cuInit hangs on all 8 GPUs", vec![]),
        ] {
            assert_eq!(runs(text), wanted, "{text}");
        }
    }
}
