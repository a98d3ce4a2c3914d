//! What NCCL, its tests, CUDA's peer samples and the frameworks above them print of traffic between
//! GPUs.

use super::Line;
use super::pattern::{captures, group, matches, pattern};
use crate::model::Facts;
use crate::model::p2p::{PeerResult, PeerRun, PeerSwitch};
use crate::observed::{Observed, Seen, clean_excerpt};
use crate::raw::ItemName;

pattern! { WARN = r"\bNCCL WARN (?P<message>.+)" }
pattern! {
    /// NCCL or PyTorch report a call that failed.
    FAILED = r"\bnccl(?:UnhandledCudaError|SystemError|InternalError|RemoteError)\b|\bNCCL (?:error in|failure)\b|NCCL WARN (?:.{0,40}\bCuda failure|.{0,80}\bCUDA error \d|Failed to (?:bind|map|allocate|import|create))"
}
pattern! {
    /// The watchdog of PyTorch, or a time limit of a test.
    TIMED_OUT = r"(?i)watchdog caught collective operation timeout|collective operation timeout: WorkNCCL|Timeout at NCCL work|\[PG [^\]]*\].{0,60}timed out|Some NCCL operations have failed or timed out"
}
pattern! {
    /// One row of nccl-tests: size, count, type, operation, root, then times and bandwidths.
    TEST_ROW = r"^\s*\d+\s+\d+\s+(?:float|half|int8|uint8|int32|bfloat16|double|int64)\s+(?:sum|prod|min|max|avg|none|all)\s+-?\d+\s+[\d.]+\s+[\d.]+"
}
pattern! { OVER_P2P = r"\bvia P2P/" }
pattern! {
    GIVEN_UP = r"(?i)\bP2P is disabled between|GPU ?Direct RDMA (?:is )?(?:disabled|not available|not supported)|\bGDR (?:0|is )?disabled|disabl\w+ (?:GDR|GPU ?Direct)|lacks GPU P2P capability or P2P test failed"
}
pattern! { MULTICAST = r"NVLS multicast support is (?P<not>not )?available" }
pattern! {
    /// A call for NVLink multicast that failed.
    MULTICAST_FAILED = r"(?i)(?:\bnvls\w*\.cc\b|\bNVLS\b|NVLink SHARP|\bcuMulticast\w+|\b(?:NVLink|CUDA|GPU) multicast\b|\bmulticast (?:object|memory|bind)\b).{0,200}?\b(?:CUDA error|Cuda failure|returns?|returned|answers?|fail\w*|error)\b"
}
pattern! { CODE = r"(?i)\b(?:CUDA error|Cuda failure|returns?|returned|answers?|failed with|error|code)\s*[:=(]?\s*(?:error\s*)?(?:code\s*)?(?P<code>\d{1,3}\b|CUDA_ERROR_[A-Z_]+)" }
pattern! {
    /// `Device=0 CAN Access Peer Device=1`.
    SAMPLE = r"\bDevice=(?P<a>\d+) (?P<can>CAN|CANNOT) Access Peer Device=(?P<b>\d+)"
}
pattern! {
    /// `> Peer access from NVIDIA X (GPU0) -> NVIDIA X (GPU1) : Yes`.
    SIMPLE = r"Peer access from .{0,80}\((?P<a>GPU\d+)\) -> .{0,80}\((?P<b>GPU\d+)\)\s*:\s*(?P<can>Yes|No)"
}
pattern! {
    /// `cuDeviceCanAccessPeer says 1`, `torch.cuda.can_device_access_peer(0, 1) = True`.
    CAN_ACCESS = r"(?i)(?:\b|cuDevice|cudaDevice)can_?(?:device_?)?access_?peer\w*(?:\([^)]{0,30}\))?[^\n]{0,24}?(?:=|:|→|->|\bis\b|\breturn(?:s|ed)?\b|\bsays?\b|\bgives?\b|\breports?\b|\banswers?\b)\s*[`'(]?(?P<can>1|0|true|false|yes|no)\b"
}
pattern! { ADVERTISED = r"(?i)\b(?:P2P|peer(?:[- ]to[- ]peer)?(?: access)?)\b[^\n.]{0,24}\b(?:is |are )?(?:reported|listed|advertised|shown|claimed) (?:as |to be )?(?:supported|available|possible|OK|working|accessible)" }
pattern! { REFUSED = r"(?i)peer access is not supported between these two devices|Peer to Peer access is not available amongst GPUs|\bcudaErrorPeerAccessUnsupported\b|\bCUDA_ERROR_PEER_ACCESS_UNSUPPORTED\b" }
pattern! {
    /// The samples compare what arrived.
    WRONG = r"(?i)\bVerification error @ element|\b(?:p2p|peer(?:[- ]to[- ]peer)?|GPU ?\d? ?(?:to|->|→) ?GPU ?\d?)\b[^\n]{0,90}\b(?:wrong (?:data|result|value)s?|mismatch\w*|corrupt\w*|fails? verification|verification fail\w*|verify fail\w*|data is wrong|arrives? wrong|garbage|(?:all |only )?zeros)\b"
}
pattern! {
    /// A word of the driver's peer matrix that a report quotes by itself; the matrix's own legend
    /// (`CNS  = Chipset not supported`) is no quotation.
    WORD = r"\b(?:(?i:topo\b[^\n]{0,20}-p2p|p2p (?:matrix|status|capabilit\w+|support)|peer matrix))\b[^\n]{0,70}?\b(?P<word>CNS|GNS|TNS|NS)\b|(?P<chipset>(?i:chipset not supported))"
}

/// Most entries of one kind: every rank prints the same.
const LIMIT: usize = 256;

pub(super) fn read(line: &Line<'_>, facts: &mut Facts) {
    // A cheap look first: most lines of most texts are of something else.
    const MARKS: [&str; 10] = [
        "NCCL",
        "nccl",
        "P2P",
        "p2p",
        "eer",
        "ulticast",
        "NVLS",
        "hipset",
        "float",
        "Verification",
    ];
    if !MARKS.iter().any(|mark| line.text.contains(mark)) {
        return;
    }
    warnings(line, facts);
    runs(line, facts);
    access(line, facts);
    multicast(line, facts);
}

fn push<T>(list: &mut Vec<Seen<T>>, value: T, line: &Line<'_>) {
    if list.len() < LIMIT {
        list.push(Seen::new(value, line.origin()));
    }
}

fn warnings(line: &Line<'_>, facts: &mut Facts) {
    if let Some(message) = group(&WARN, line.text, "message") {
        facts.mentions_gpu = true;
        push(&mut facts.p2p.nccl_warnings, clean_excerpt(message), line);
    }
    if matches(&GIVEN_UP, line.text) {
        push(&mut facts.p2p.given_up, clean_excerpt(line.text), line);
    }
    if matches(&OVER_P2P, line.text) {
        facts.mentions_gpu = true;
        facts.p2p.nccl_uses_p2p.or_better(Observed::seen((), line.origin()));
    }
}

fn runs(line: &Line<'_>, facts: &mut Facts) {
    let result = if matches(&TIMED_OUT, line.text) {
        PeerResult::Hung
    } else if matches(&WRONG, line.text) {
        PeerResult::WrongData
    } else if matches(&FAILED, line.text) {
        PeerResult::Failed
    } else if matches(&TEST_ROW, line.text) {
        PeerResult::Completed
    } else {
        return;
    };
    let what = match result {
        PeerResult::WrongData => "a peer copy",
        PeerResult::Completed | PeerResult::Hung | PeerResult::Failed => "NCCL",
    };
    let run = PeerRun { what: what.to_owned(), result, under: switches(line) };
    facts.mentions_gpu = true;
    let last = facts.p2p.runs.last().map(|seen| &seen.value);
    if last != Some(&run) {
        push(&mut facts.p2p.runs, run, line);
    }
}

/// What was set for the command whose output this is.
fn switches(line: &Line<'_>) -> Vec<PeerSwitch> {
    match &line.item.name {
        ItemName::Command(command) => super::peers::switches(command),
        ItemName::File(_) | ItemName::Probe { .. } | ItemName::Text(_) => Vec::new(),
    }
}

fn access(line: &Line<'_>, facts: &mut Facts) {
    for pattern in [&SAMPLE, &SIMPLE] {
        if let Some(found) = captures(pattern, line.text) {
            let text = |name: &str| found.name(name).map_or("", |m| m.as_str());
            let pair = format!("{} and {}", text("a"), text("b"));
            let can = matches!(text("can"), "CAN" | "Yes");
            facts.mentions_gpu = true;
            push(&mut facts.p2p.access, (pair, can), line);
        }
    }
    if let Some(can) = group(&CAN_ACCESS, line.text, "can") {
        let can = matches!(can.to_ascii_lowercase().as_str(), "1" | "true" | "yes");
        facts.mentions_gpu = true;
        push(&mut facts.p2p.access, (String::new(), can), line);
    } else if matches(&REFUSED, line.text) {
        facts.mentions_gpu = true;
        push(&mut facts.p2p.access, (String::new(), false), line);
    } else if matches(&ADVERTISED, line.text) {
        push(&mut facts.p2p.access, (String::new(), true), line);
    }
    if let Some(found) = captures(&WORD, line.text) {
        let word = found.name("word").map_or("CNS", |m| m.as_str());
        let legend = line.text.split_once('=').is_some_and(|(key, _)| key.trim().len() <= 4);
        if !legend {
            facts.mentions_gpu = true;
            push(&mut facts.p2p.words, word.to_owned(), line);
        }
    }
}

fn multicast(line: &Line<'_>, facts: &mut Facts) {
    if let Some(found) = captures(&MULTICAST, line.text) {
        let available = found.name("not").is_none();
        facts.fabric.multicast_available.or_better(Observed::seen(available, line.origin()));
        return;
    }
    if !matches(&MULTICAST_FAILED, line.text) {
        return;
    }
    let code = group(&CODE, line.text, "code").and_then(|code| {
        let number = code.parse().ok();
        number.or_else(|| Some(nvabi::cuda_result::by_name(code)?.code))
    });
    facts.mentions_gpu = true;
    push(&mut facts.fabric.multicast_failures, code, line);
}

#[cfg(test)]
mod tests {
    use super::super::lines_of;
    use super::*;

    fn results(text: &str) -> Vec<PeerResult> {
        lines_of(text).p2p.runs.into_iter().map(|run| run.value.result).collect()
    }

    #[test]
    fn what_nccl_and_its_tests_print() {
        use PeerResult::{Completed, Failed, Hung, WrongData};
        for (line, wanted) in [
            ("[rank0]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1)", Hung),
            ("ncclUnhandledCudaError: Call to CUDA function failed.", Failed),
            ("h:1:2 [0] x.cc:1 NCCL WARN Cuda failure 'invalid argument'", Failed),
            (
                "     8388608   2097152     float     sum      -1   630.4   13.15   13.15      0",
                Completed,
            ),
            ("Verification error @ element 1: val = 0.000000, ref = 4.000000", WrongData),
        ] {
            assert_eq!(results(line), [wanted], "{line}");
        }
        assert!(results("NCCL WARN Failed to open libibverbs.so[.1]").is_empty());
        let facts = lines_of("h:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\n");
        assert!(facts.p2p.nccl_uses_p2p.is_seen());
        let facts =
            lines_of("NCCL INFO GPU Direct RDMA Disabled for GPU 0 / HCA 0 (distance 8 > 5)");
        assert_eq!(facts.p2p.given_up.len(), 1);
        assert_eq!(lines_of("NCCL WARN something odd").p2p.nccl_warnings.len(), 1);
    }

    #[test]
    fn who_can_access_whom() {
        for (line, can) in [
            ("Device=0 CAN Access Peer Device=1", true),
            ("Device=0 CANNOT Access Peer Device=1", false),
            ("> Peer access from NVIDIA X (GPU0) -> NVIDIA X (GPU1) : No", false),
            ("cuDeviceCanAccessPeer says 1", true),
            ("torch.cuda.can_device_access_peer(0, 1) returns False", false),
            ("CUDA error: peer access is not supported between these two devices", false),
            ("P2P is reported as supported", true),
        ] {
            let facts = lines_of(line);
            let answers: Vec<bool> = facts.p2p.access.iter().map(|seen| seen.value.1).collect();
            assert_eq!(answers, [can], "{line}");
        }
        assert_eq!(lines_of("nvidia-smi topo -p2p r says CNS").p2p.words.len(), 1);
        assert!(lines_of("  CNS  = Chipset not supported").p2p.words.is_empty());
    }

    #[test]
    fn multicast_that_fails_and_multicast_that_is_there() {
        for (line, code) in [
            (
                "nvls.cc:379 NCCL WARN Failed to bind NVLink SHARP (NVLS) Multicast memory : CUDA error 401 'x'",
                Some(401),
            ),
            ("cuMulticastBindMem returned CUDA_ERROR_ILLEGAL_STATE", Some(401)),
            ("NVLS setup fails", None),
        ] {
            let facts = lines_of(line);
            let codes: Vec<Option<i64>> =
                facts.fabric.multicast_failures.iter().map(|seen| seen.value).collect();
            assert_eq!(codes, [code], "{line}");
        }
        let facts = lines_of("NCCL INFO NVLS multicast support is not available on dev 0");
        assert_eq!(facts.fabric.multicast_available.value(), Some(&false));
        assert!(facts.fabric.multicast_failures.is_empty());
    }
}
