//! What people say of traffic between GPUs: it hangs, it completes with this switch, it does not
//! help, bandwidth is low, the IOMMU translates. A statement is read clause by clause, since one
//! sentence often tells of several runs.

use super::pattern::{matches, pattern};
use super::{Line, bounded};
use crate::model::Facts;
use crate::model::p2p::{IommuMode, PeerResult, PeerRun, PeerSwitch};
use crate::observed::{Observed, Seen, clean_excerpt};
use crate::raw::RawItem;

pattern! { P2P_OFF = r"(?i)\bNCCL_P2P_DISABLE\b(?:\s*=\s*[`'\x22]?(?:1|true|yes))?|\bNCCL_P2P_LEVEL\s*=\s*(?:LOC|0)\b|\b(?:disabl\w+|without|turn(?:ed|ing)? off)\b.{0,12}\b(?:P2P|peer[- ]to[- ]peer)\b|\bP2P (?:is |was )?(?:disabled|off|turned off)\b" }
pattern! { P2P_ON = r"(?i)\bNCCL_P2P_DISABLE\s*=\s*[`'\x22]?(?:0|false)\b" }
pattern! { MULTICAST_OFF = r"(?i)\bNCCL_NVLS_ENABLE\s*=\s*[`'\x22]?0|\bNCCL_ALGO\s*=\s*\^NVLS|\b(?:disabl\w+|without)\b.{0,6}\bNVLS\b|\bNVLS (?:is |was )?(?:disabled|off)\b" }
pattern! { CUSTOM_OFF = r"(?i)--disable[-_]custom[-_]all[-_]?reduce|\bdisable_custom_all_reduce\s*=\s*True|\bcustom all-?reduce (?:is |was )?(?:disabled|off)" }
pattern! { SHM_OFF = r"(?i)\bNCCL_SHM_DISABLE\s*=\s*[`'\x22]?1" }
pattern! { IOMMU_OFF = r"(?i)\b(?:intel_|amd_)?iommu\s*=\s*(?:0|off)\b|\b(?:disabl\w+|without|turn(?:ed|ing)? off|switch(?:ed|ing)? off)\b.{0,20}\b(?:IOMMU|VT-?d|AMD-Vi)\b|\b(?:IOMMU|VT-?d|AMD-Vi)\b.{0,16}\b(?:disabled|turned off|switched off|off)\b" }
pattern! { IOMMU_PT = r"(?i)\biommu\s*=\s*pt\b|\biommu\.passthrough\s*=\s*1\b|\bIOMMU\b.{0,20}\bpass-?through\b" }
pattern! { ACS_OFF = r"(?i)\bECAP_ACS\b|\bsetpci\b|\b(?:disabl\w+|clear\w*|without|turn(?:ed|ing)? off)\b.{0,16}\bACS\b|\bACS\b.{0,16}\b(?:disabled|cleared|turned off|off)\b" }
pattern! { BRIDGE = r"(?i)\b(?:without|remov\w+|unplug\w*|pull\w*|tak\w+ out|re-?seat\w*|fully (?:in|seated|plugged)|plug\w* (?:it )?(?:fully|in properly)|swapp\w+|replac\w+)\b.{0,24}\bbridge\b|\bbridge\b.{0,24}\b(?:out|removed|fully in|fully (?:seated|inserted)|re-?seated|replaced)\b" }
pattern! { DRIVER = r"(?i)\b(?:with|after|on|using|under|up(?:grad|dat)\w+ to|downgrad\w+ to|newer|older)\b.{0,24}\bdriver\b.{0,24}\d{3}|\bdriver\b.{0,12}\b\d{3}[\d.]*\b|\bwith (?:driver )?5\d\d\b" }
pattern! { TOPOLOGY = r"(?i)\bNCCL_TOPO_FILE\b" }

pattern! {
    /// The subject is traffic between GPUs.
    SUBJECT = r"(?i)\bNCCL(?:\b|_\w)|\bnccl[-_]?tests?\b|\ball[-_ ]?(?:reduce|gather|to[-_ ]?all)\w*|\breduce[-_]scatter\w*|\bcollectives?\b|\btorch[. ]distributed\b|\bdist\.(?:barrier|init|all_reduce)\w*|\btensor[- ]parallel\w*|\bTP ?(?:=|size)? ?[2-9]\b|\b-tp [2-9]\b|\bmulti[- ]?GPU\b|\b(?:two|both|2|4|8|several|multiple) GPUs\b|\bDDP\b|\bDistributedDataParallel\b|\bDataParallel\b|\bncclCommInit\w+|\bp2pBandwidthLatencyTest\b|\bsimpleP2P\b|\bnvbandwidth\b|\bP2P\b|\bpeer[- ]to[- ]peer\b|\bpeer (?:copy|copies|traffic|access|writes?)\b|\b[2-9][- ]ranks?\b|\bGPUDirect\b"
}
pattern! {
    /// The subject beyond doubt: several GPUs alone may be those on which CUDA starts.
    PARTICULAR = r"(?i)\bNCCL(?:\b|_\w)|\ball[-_ ]?(?:reduce|gather)\w*|\bcollectives?\b|\bP2P\b|\bpeer[- ]to[- ]peer\b|\btensor[- ]parallel\w*|\bTP ?= ?[2-9]\b|\bGPUDirect\b|\bbandwidth\b"
}
pattern! {
    HANGS = r"(?i)\b(?:hangs?|hung|hanging|dead-?locks?|deadlocked|freezes?|froze|frozen|(?:is|gets|got) stuck|stalls?|stalled|never (?:returns?|finish\w*|complet\w*|ends?)|does(?:n't| not) (?:return|finish|complete)|blocks? forever|times? out|timed out|timeouts?|spins? forever)\b"
}
pattern! { FAILS = r"(?i)\b(?:fails?|failed|failing|crash\w*|errors? out|can(?:not|'t) use|does(?:n't| not) work|broken|no CUDA peer traffic)\b" }
pattern! {
    WORKS = r"(?i)\b(?:works?|worked|working|completes?|completed|finish\w*|fixe[sd]|fix(?:es|ed)? (?:it|this)|cures?|cured|solve[sd]|resolve[sd]|succeeds?|succeeded|pass(?:es|ed)?|runs? (?:fine|through|ok|well)|ran fine|(?:is|are|was) (?:fine|ok|well|gone)|all is well|no (?:more )?hangs?|goes away|went away|until|unless|no longer hangs?|makes? it work|helps|helped|masks?)\b"
}
pattern! {
    /// The switch is said not to help.
    IN_VAIN = r"(?i)\b(?:does(?:n't| not)|did(?:n't| not)|do(?:n't| not)|has(?:n't| not)|no)\b.{0,12}\b(?:help|work|change|matter|effect|difference|fix|solve|cure|success)\w*|\bwithout (?:success|effect|change)\b|\bstill (?:hangs?|fails?|stuck|the same|broken|not|freezes?)\b|\bin vain\b|\bmakes no difference\b|\balso (?:hangs?|fails?)\b|\b(?:hangs?|fails?) (?:too|as well|all the same)\b"
}
pattern! { NOT_NEEDED = r"(?i)\bNCCL_P2P_DISABLE\b[^.;]{0,12}\b(?:no longer|not|isn't) (?:needed|necessary|required)\b|\b(?:without|no need for) NCCL_P2P_DISABLE\b" }
pattern! { IRRELEVANT = r"(?i)\b(?:will|would|could|should|might|please|try|can you|have you|how to|whether)\b|\?\s*$|\bcu_?init\b" }
pattern! { SLOW = r"(?i)\b(?:slow\w*|poor|low|bad|terrible|only \d+(?:\.\d+)? ?GB/s|degraded|drops? to)\b.{0,40}\b(?:bandwidth|busbw|throughput|NCCL|all[-_ ]?reduce\w*|GPUDirect|RDMA|GDR|P2P)\b|\b(?:bandwidth|busbw|throughput|GPUDirect|RDMA|GDR|NCCL|all[-_ ]?reduce\w*)\b.{0,40}\b(?:is |are |too |very |far |much )?(?:slow\w*|poor|low|lower|bad|degraded|lost|switched off|turned off|disabled|not used|isn't used)\b" }
pattern! {
    /// A comparison with GPUs of another kind in the same place, and they are well.
    OTHER_GPUS = r"(?i)\b(?:Tesla|Quadro|[VPTA]\d{2,3}|RTX A\d{4}|RTX 6000|[1-3]0[5-9]0(?: ?Ti)?s?|other (?:GPUs|cards|boards))\b[^.;]{0,90}\b(?:same (?:\w+ ){0,2}(?:machine|VM|guest|host|box|slots?|server|board)|says? OK|shows? OK|gets? (?:P2P|OK))\b|\bswap\w*\b[^.;]{0,30}\b(?:in|for|with)\b[^.;]{0,30}\b(?:[1-3]0[5-9]0(?: ?Ti)?s?|Tesla|[VPTA]\d{2,3}|RTX A\d{4})\b"
}
pattern! { TRANSLATED = r"(?i)\b(?:AMD-Vi|IOMMU|VT-?d|DMAR|intel_iommu|amd_iommu)\b[^.;]{0,30}\b(?:translat\w+|DMA-FQ|in DMA mode|is (?:on|active|enabled)|enabled|active|=\s*on)\b|\bno\b.{0,4}\biommu=?\b.{0,40}\bcommand line\b" }

/// Longest paragraph and most statements that are read.
const PARAGRAPH_LIMIT: usize = 4096;
const LIMIT: usize = 128;

/// What a command line or a clause says was changed.
pub(crate) fn switches(text: &str) -> Vec<PeerSwitch> {
    let table = [
        (&P2P_OFF, PeerSwitch::P2pOff),
        (&MULTICAST_OFF, PeerSwitch::MulticastOff),
        (&CUSTOM_OFF, PeerSwitch::CustomAllReduceOff),
        (&SHM_OFF, PeerSwitch::SharedMemoryOff),
        (&IOMMU_OFF, PeerSwitch::IommuOff),
        (&IOMMU_PT, PeerSwitch::IommuPassthrough),
        (&ACS_OFF, PeerSwitch::AcsOff),
        (&BRIDGE, PeerSwitch::BridgeChanged),
        (&TOPOLOGY, PeerSwitch::TopologyFile),
    ];
    table
        .into_iter()
        .filter(|(pattern, _)| matches(pattern, text))
        .map(|(_, switch)| switch)
        .filter(|switch| *switch != PeerSwitch::P2pOff || !matches(&P2P_ON, text))
        .collect()
}

/// Whether a sentence about what works under which condition is about peers and not about whether
/// CUDA comes up.
pub(super) fn about_peers(text: &str) -> bool {
    let lower = text.to_lowercase();
    let starts = ["cuinit", "uvm_"].iter().any(|word| lower.contains(word))
        || (lower.contains("cuda") && !matches(&PARTICULAR, text));
    let general =
        |switch: &PeerSwitch| matches!(switch, PeerSwitch::IommuOff | PeerSwitch::IommuPassthrough);
    !switches(text).iter().all(general) || (matches(&SUBJECT, text) && !starts)
}

/// Reads the statements of a text.
pub(super) fn read(item: &RawItem, text: &str, facts: &mut Facts) {
    const MARKS: [&str; 17] = [
        "nccl",
        "p2p",
        "reduce",
        "gpu",
        "tp",
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
    for (number, paragraph) in paragraphs(text) {
        let lower = paragraph.to_ascii_lowercase();
        if !MARKS.iter().any(|mark| lower.contains(mark)) {
            continue;
        }
        let mut subject = false;
        for (offset, clause) in clauses(&paragraph) {
            let at = u32::try_from(paragraph[..offset].matches('\n').count()).unwrap_or(0);
            let line = Line { item, number: number + at, text: clause.trim() };
            subject |= matches(&SUBJECT, clause);
            self::clause(&line, subject, facts);
        }
    }
}

/// Lines of prose that belong together, with the first one's number. Line ends stay, so that a
/// clause finds its own line.
fn paragraphs(text: &str) -> Vec<(u32, String)> {
    let mut out: Vec<(u32, String)> = Vec::new();
    let mut open = false;
    for (number, line) in crate::parse::numbered(text) {
        let line = bounded(line);
        if !is_prose(line) {
            open = false;
            continue;
        }
        // A list item or a heading begins anew.
        let begins = line.trim_start().starts_with(['-', '*', '#', '•']);
        match out.last_mut().filter(|(_, held)| open && !begins && held.len() < PARAGRAPH_LIMIT) {
            Some((_, held)) => {
                held.push('\n');
                held.push_str(line);
            }
            None => out.push((number, line.to_owned())),
        }
        open = true;
    }
    out
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

/// Clauses with their offsets: sentences, and the parts of one that tell of different runs.
fn clauses(paragraph: &str) -> Vec<(usize, &str)> {
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
    let mut start = 0;
    while let Some(rest) = paragraph.get(start..).filter(|rest| !rest.is_empty()) {
        let ends = ENDS.iter().filter_map(|(end, kept)| rest.find(end).map(|at| at + kept));
        let next = ends.min().unwrap_or(rest.len()).max(1);
        let Some(clause) = rest.get(..next) else { break };
        out.push((start, clause));
        start += next;
    }
    out
}

fn clause(line: &Line<'_>, subject: bool, facts: &mut Facts) {
    let text = &line.text.replace('\n', " ");
    iommu(line, text, facts);
    if matches(&OTHER_GPUS, text) && !matches(&IN_VAIN, text) && subject {
        push(&mut facts.p2p.other_gpus_work, clean_excerpt(text), line);
    }
    if matches(&IRRELEVANT, text) {
        return;
    }
    if matches(&SLOW, text) {
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
    let mut under = switches(text);
    if matches(&NOT_NEEDED, text) {
        under.retain(|switch| *switch != PeerSwitch::P2pOff);
    }
    let here = matches(&SUBJECT, text);
    if under.is_empty() && subject && matches(&WORKS, text) && matches(&DRIVER, text) {
        under.push(PeerSwitch::OtherDriver);
    }
    let (hangs, fails) = (matches(&HANGS, text), matches(&FAILS, text));
    let (works, in_vain) = (matches(&WORKS, text), matches(&IN_VAIN, text));
    let result = match (under.is_empty(), works, in_vain) {
        (false, _, true) => {
            if hangs {
                PeerResult::Hung
            } else {
                PeerResult::Failed
            }
        }
        (false, true, false) => PeerResult::Completed,
        (false, false, false) if hangs => PeerResult::Hung,
        (true, _, _) if here && hangs => PeerResult::Hung,
        (true, false, _) if here && fails => PeerResult::Failed,
        _ => return,
    };
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
    let lower = text.to_lowercase();
    let names = [
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
    let found = names.iter().find(|(word, _)| lower.contains(word));
    found.map_or("work on several GPUs", |(_, name)| name).to_owned()
}

/// What is said of the IOMMU as things are: not what was tried.
fn iommu(line: &Line<'_>, text: &str, facts: &mut Facts) {
    let tried = matches(&WORKS, text) || matches(&IN_VAIN, text);
    if facts.p2p.iommu_told.is_seen() || tried {
        return;
    }
    let mode = if matches(&IOMMU_PT, text) {
        IommuMode::Passthrough
    } else if matches(&IOMMU_OFF, text) {
        IommuMode::Off
    } else if matches(&TRANSLATED, text) {
        IommuMode::Translated
    } else {
        return;
    };
    facts.p2p.iommu_told = Observed::seen(mode, line.origin());
}

#[cfg(test)]
mod tests {
    use super::*;
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
