//! The words in which people tell of runs between GPUs, and what one clause of theirs says.

use super::super::pattern::{matches, pattern};
use crate::model::p2p::{IommuMode, PeerResult, PeerSwitch};

pattern! { P2P_OFF = r"(?i)\bNCCL_P2P_DISABLE\b(?:\s*=\s*[`'\x22]?(?:1|true|yes))?|\bNCCL_P2P_LEVEL\s*=\s*(?:LOC|0)\b|\b(?:disabl\w+|without|turn(?:ed|ing)? off)\b.{0,12}\b(?:P2P|peer[- ](?:to[- ]peer|access))\b|\bP2P (?:is |was )?(?:disabled|off|turned off)\b" }
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
    HANGS = r"(?i)\b(?:hangs?|hung|hanging|dead-?locks?|deadlocked|freezes?|froze|frozen|(?:is|gets|got) stuck|stalls?|stalled|never (?:returns?|finish\w*|complet\w*|ends?)|does(?:n['’]t| not) (?:return|finish|complete)|blocks? forever|times? out|timed out|timeouts?|spins? forever)\b"
}
pattern! { FAILS = r"(?i)\b(?:fails?|failed|failing|crash\w*|errors? out|can(?:not|'t) use|do(?:es)?(?:n['’]t| not) work|broken|no CUDA peer traffic|silently (?:drop|los|discard|corrupt)\w*|(?:wrong|corrupt\w*|garbage) (?:data|results?|values?)|(?:data|results?|values?) (?:is|are|come out|arrive) (?:wrong|corrupt\w*|garbage|zeros?))\b" }
pattern! {
    WORKS = r"(?i)\b(?:works?|worked|working|work-?arounds?|completes?|completed|finish\w*|fixe[sd]|fix(?:es|ed)? (?:it|this)|cures?|cured|solve[sd]|resolve[sd]|succeeds?|succeeded|pass(?:es|ed)?|runs? (?:fine|through|ok|well)|ran fine|(?:is|are|was) (?:fine|ok|well|gone)|all is well|no (?:more )?hangs?|goes away|went away|until|unless|no longer hangs?|makes? it work|helps|helped|masks?|go(?:es)? through|went through|runs? again|(?:trains?|starts?|loads?|serves?|does|doing) fine)\b"
}
pattern! {
    /// The switch is said not to help.
    IN_VAIN = r"(?i)\b(?:does(?:n['’]t| not)|did(?:n['’]t| not)|do(?:n['’]t| not)|has(?:n['’]t| not)|no)\b.{0,12}\b(?:help|work|change|matter|effect|difference|fix|solve|cure|success)\w*|\bwithout (?:success|effect|change)\b|\bstill (?:hangs?|fails?|stuck|the same|broken|not|freezes?)\b|\bin vain\b|\bmakes no difference\b|\balso (?:hangs?|fails?)\b|\b(?:hangs?|fails?) (?:too|as well|all the same)\b"
}
pattern! { NOT_NEEDED = r"(?i)\bNCCL_P2P_DISABLE\b[^.;]{0,12}\b(?:no longer|not|isn['’]t) (?:needed|necessary|required)\b|\b(?:without|no need for) NCCL_P2P_DISABLE\b" }
pattern! { IRRELEVANT = r"(?i)\b(?:will|would|could|should|might|please|try|can you|have you|how to|whether)\b|\?\s*$|\bcu_?init\b" }
pattern! { SLOW = r"(?i)\b(?:slow\w*|poor|low|bad|terrible|only \d+(?:\.\d+)? ?GB/s|degraded|drops? to)\b.{0,40}\b(?:bandwidth|busbw|throughput|NCCL|all[-_ ]?reduce\w*|GPUDirect|RDMA|GDR|P2P)\b|\b(?:bandwidth|busbw|throughput|GPUDirect|RDMA|GDR|NCCL|all[-_ ]?reduce\w*)\b.{0,40}\b(?:is |are |too |very |far |much )?(?:slow\w*|poor|low|lower|bad|degraded|lost|switched off|turned off|disabled|not used|isn['’]t used)\b" }
pattern! {
    /// A comparison with GPUs of another kind in the same place, and they are well.
    OTHER_GPUS = r"(?i)\b(?:Tesla|Quadro|[VPTA]\d{2,3}|RTX A\d{4}|RTX 6000|[1-3]0[5-9]0(?: ?Ti)?s?|other (?:GPUs|cards|boards))\b[^.;]{0,90}\b(?:same (?:\w+ ){0,2}(?:machine|VM|guest|host|box|slots?|server|board)|says? OK|shows? OK|gets? (?:P2P|OK))\b|\bswap\w*\b[^.;]{0,30}\b(?:in|for|with)\b[^.;]{0,30}\b(?:[1-3]0[5-9]0(?: ?Ti)?s?|Tesla|[VPTA]\d{2,3}|RTX A\d{4})\b"
}
pattern! { TRANSLATED = r"(?i)\b(?:AMD-Vi|IOMMU|VT-?d|DMAR|intel_iommu|amd_iommu)\b[^.;]{0,30}\b(?:translat\w+|DMA-FQ|in DMA mode|is (?:on|active|enabled)|enabled|active|=\s*on)\b|\bno\b.{0,4}\biommu=?\b.{0,40}\bcommand line\b" }

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
pub(crate) fn about_peers(text: &str) -> bool {
    let lower = text.to_lowercase();
    let starts = ["cuinit", "uvm_"].iter().any(|word| lower.contains(word))
        || (lower.contains("cuda") && !matches(&PARTICULAR, text));
    let general =
        |switch: &PeerSwitch| matches!(switch, PeerSwitch::IommuOff | PeerSwitch::IommuPassthrough);
    !switches(text).iter().all(general) || (matches(&SUBJECT, text) && !starts)
}

/// What a clause says of a run: how it ended, and what had been changed for it. `subject` tells
/// that its paragraph speaks of traffic between GPUs.
pub(super) fn run_of(text: &str, subject: bool) -> Option<(PeerResult, Vec<PeerSwitch>)> {
    let mut under = switches(text);
    if matches(&NOT_NEEDED, text) {
        under.retain(|switch| *switch != PeerSwitch::P2pOff);
    }
    let works = matches(&WORKS, text);
    if under.is_empty() && subject && works && matches(&DRIVER, text) {
        under.push(PeerSwitch::OtherDriver);
    }
    let hangs = matches(&HANGS, text);
    let result = if under.is_empty() {
        // As things are: the clause itself must speak of such traffic.
        let failed = hangs || (matches(&FAILS, text) && !works);
        let failed = failed && is_subject(text);
        failed.then_some(if hangs { PeerResult::Hung } else { PeerResult::Failed })
    } else if hangs && (matches(&IN_VAIN, text) || !works) {
        Some(PeerResult::Hung)
    } else if matches(&IN_VAIN, text) {
        Some(PeerResult::Failed)
    } else {
        works.then_some(PeerResult::Completed)
    };
    Some((result?, under))
}

/// Whether the clause speaks of traffic between GPUs.
pub(super) fn is_subject(text: &str) -> bool {
    matches(&SUBJECT, text)
}

/// Whether the clause asks, proposes or tells of something else.
pub(super) fn is_irrelevant(text: &str) -> bool {
    matches(&IRRELEVANT, text)
}

/// Whether bandwidth is said to be low.
pub(super) fn is_slow(text: &str) -> bool {
    matches(&SLOW, text)
}

/// Whether GPUs of another kind are said to do it.
pub(super) fn is_comparison(text: &str) -> bool {
    matches(&OTHER_GPUS, text) && !matches(&IN_VAIN, text)
}

/// What is said of the IOMMU as things are, and not of what was tried.
pub(super) fn iommu(text: &str) -> Option<IommuMode> {
    if matches(&WORKS, text) || matches(&IN_VAIN, text) {
        None
    } else if matches(&IOMMU_PT, text) {
        Some(IommuMode::Passthrough)
    } else if matches(&IOMMU_OFF, text) {
        Some(IommuMode::Off)
    } else {
        matches(&TRANSLATED, text).then_some(IommuMode::Translated)
    }
}
