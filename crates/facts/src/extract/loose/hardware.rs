//! The GPU's own faults as reports and programs tell of them without the kernel's line: Xids, a
//! GPU off the bus, memory errors, a recovery action.

use std::sync::LazyLock;

use regex::Regex;

use super::Line;
use super::pattern::{Lazy, captures, group, matches, pattern};
use crate::model::Facts;
use crate::observed::{Seen, clean_excerpt};

pattern! {
    /// `Xid 79`, `XID error: 48`, `Xid=31 on Device=GPU-…`, `Xids 13, 31 and 45`, and the metric
    /// `DCGM_FI_DEV_XID_ERRORS{gpu="0"} 79`.
    XID = r"(?i)(?:\bXIDs?(?:[ _](?:errors?|code|event|number|error code))?\s*(?:was|is|of)?\s*[:=#(]{0,2}\s*|XID_ERRORS\{[^}]*\}\s+)(?P<list>\d{1,3}(?:\s*(?:,|/|&|and|then|->|→|followed by)\s*(?:Xid\s*)?\d{1,3})*)(?:[^\d.%]|$|\.\s|\.$)"
}
pattern! { SXID = r"(?i)\bSXIDs?(?:[ _](?:errors?|code|event))?\s*[:=#(]{0,2}\s*(?P<number>\d{5})\b" }
pattern! { DENIED = r"(?i)\b(?:no|not|never|without|isn['’]t|wasn['’]t|aren['’]t|neither|nor|instead of|unlike|clean of)\b[^.\n]{0,24}\b(?:xids?|fallen|fell|fall)\b" }
pattern! { OFF_BUS = r"(?i)\b(?:has |have |had )?(?:fallen|fell|falls|falling|dropped|drops|dropping) (?:completely )?(?:off(?: of)?|out of) the (?:PCI(?:e|[- ]Express)? )?bus\b" }
pattern! { MEMORY = r"(?i)\buncorrectable ECC error\b|\bCUDA_ERROR_ECC_UNCORRECTABLE\b|\bcudaErrorECCUncorrectable\b|\bdouble[- ]bit ECC error|\brow[- ]?remapp?(?:ing|er)? (?:has )?fail(?:ed|ure)\b" }
pattern! {
    RECOVERY = r"(?i)\brecovery action\b[^\n]{0,40}?\b(?P<action>(?:GPU )?Reset(?: Required)?|(?:Node |System )?Reboot(?: Required)?|Drain and Reset|Drain P2P|Bus Reset)\b"
}

pattern! {
    /// "The GPU does not show up in lspci", "lspci lists no NVIDIA device".
    NOT_LISTED = r"(?i)\b(?:[de]?GPUs?|cards?|nvidia|RTX|GTX|Tesla)\b[^.\n]{0,40}(?:\b(?:not|no longer|never)\b|n['’]t\b)[^.\n]{0,16}\b(?:show(?:s|n|ing)?|appear(?:s|ing)?|list(?:s|ed)?|visible|detected|found|seen|there|present)\b[^.\n]{0,24}\blspci\b|\blspci\b[^.\n]{0,60}(?:\b(?:not|no longer)\b|n['’]t\b)[^.\n]{0,12}\b(?:shows?|lists?|sees?|finds?|reports?|detects?)\b[^.\n]{0,30}\b(?:[de]?GPUs?|cards?|nvidia|anything)\b|\blspci\b[^.\n]{0,60}\b(?:returns?|gives?|shows?|prints?|lists?|outputs?|yields?|reports?|is)\b[^.\n]{0,6}\b(?:nothing|empty|blank|no (?:nvidia|GPU|output|devices?|cards?))\b|\b(?:[de]?GPUs?|cards?|nvidia)\b[^.\n]{0,24}\b(?:missing|absent|gone|disappear\w*|vanish\w*)\b[^.\n]{0,8}\b(?:in|from)\b[^.\n]{0,12}\blspci\b"
}
pattern! { UNSURE = r"(?i)\b(?:if|whether|make sure|audio|driver in use)\b|\?\s*$" }

static NUMBER: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\d{1,3}").ok());

/// Most statements of one kind that are kept.
const LIMIT: usize = 64;

pub(super) fn read(line: &Line<'_>, prose: bool, facts: &mut Facts) {
    let lower = line.text.to_ascii_lowercase();
    let marks = ["xid", "off", "the bus", "ecc", "remap", "recovery action", "lspci"];
    if line.has("NVRM:") || !marks.iter().any(|mark| lower.contains(mark)) {
        return;
    }
    xids(line, facts);
    if let Some(number) = group(&SXID, line.text, "number").and_then(|number| number.parse().ok())
        && said(&SXID, line.text)
        && facts.log.told_sxids.len() < LIMIT
    {
        facts.mentions_gpu = true;
        facts.log.told_sxids.push(Seen::new(number, line.origin()));
    }
    if matches(&MEMORY, line.text) && facts.nvml.memory_errors_told.len() < LIMIT {
        facts.mentions_gpu = true;
        let told = Seen::new(clean_excerpt(line.text), line.origin());
        facts.nvml.memory_errors_told.push(told);
    }
    if !prose {
        return;
    }
    if said(&OFF_BUS, line.text) && facts.log.told_off_bus.len() < LIMIT {
        facts.mentions_gpu = true;
        facts.log.told_off_bus.push(line.origin());
    }
    let unlisted = |said: &str| matches(&NOT_LISTED, said) && !matches(&UNSURE, said);
    if lower.contains("lspci")
        && super::statement::sentences(line.text).any(unlisted)
        && facts.pci.told_absent.len() < LIMIT
    {
        facts.mentions_gpu = true;
        facts.pci.told_absent.push(line.origin());
    }
    if let Some(action) = group(&RECOVERY, line.text, "action")
        && facts.nvml.recovery_told.len() < LIMIT
    {
        facts.mentions_gpu = true;
        facts.nvml.recovery_told.push(Seen::new(action.to_owned(), line.origin()));
    }
}

/// Whether a sentence of the line says so without denying it.
fn said(pattern: &Lazy, text: &str) -> bool {
    text.split(". ").any(|sentence| matches(pattern, sentence) && !matches(&DENIED, sentence))
}

fn xids(line: &Line<'_>, facts: &mut Facts) {
    let Some(found) = captures(&XID, line.text) else { return };
    let (Some(list), Some(numbers)) = (found.name("list"), NUMBER.as_ref()) else { return };
    if !said(&XID, line.text) || line.has("://") {
        return;
    }
    for number in numbers.find_iter(list.as_str()) {
        let known = number.as_str().parse().ok().filter(|n| nvabi::xid::by_number(*n).is_some());
        if let Some(number) = known.filter(|_| facts.log.told_xids.len() < LIMIT) {
            facts.mentions_gpu = true;
            facts.log.told_xids.push(Seen::new(number, line.origin()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::loose::lines_of;

    fn told(text: &str) -> Vec<u32> {
        lines_of(text).log.told_xids.iter().map(|seen| seen.value).collect()
    }

    #[test]
    fn xids_in_all_words() {
        assert!(
            [&XID, &SXID, &DENIED, &OFF_BUS, &MEMORY, &RECOVERY, &NOT_LISTED, &UNSURE]
                .iter()
                .all(|p| p.is_some())
        );
        assert_eq!(told("the kernel log shows Xid 79 on one card"), [79]);
        assert_eq!(told("XidCriticalError: Xid=48 on Device=GPU-1234, going unhealthy."), [48]);
        assert_eq!(told("DCGM_FI_DEV_XID_ERRORS{gpu=\"3\",host=\"a\"} 94"), [94]);
        assert_eq!(told("we get XID errors: 13, 31 and 45 from time to time"), [13, 31, 45]);
        assert_eq!(told("GPU 3 XID error code 95."), [95]);
        assert_eq!(told("there is no Xid 79 in dmesg"), Vec::<u32>::new());
        assert_eq!(told("xid 3.5 times"), Vec::<u32>::new());
        assert_eq!(told("NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen"), Vec::<u32>::new());
    }

    #[test]
    fn what_lspci_does_not_show() {
        let absent = |text: &str| !lines_of(text).pci.told_absent.is_empty();
        for text in [
            "The dGPU doesn't show up in lspci at all",
            "lspci | grep -i nvidia returns nothing",
            "after a suspend lspci no longer lists the card",
            "The GPU is missing from lspci",
        ] {
            assert!(absent(text), "{text}");
        }
        for text in [
            "Check if lspci shows nothing",
            "lspci shows the card, but nvidia-smi does not find it",
            "nvidia-smi does not work. Here is lspci:",
        ] {
            assert!(!absent(text), "{text}");
        }
    }

    #[test]
    fn other_faults_in_words() {
        let facts = lines_of(
            "The GPU fell off the PCIe bus during training\nNow and then GPU 1 falls out of the bus\nGPU Recovery Action is not None (Reset)\nRuntimeError: CUDA error: uncorrectable ECC error encountered\n",
        );
        assert_eq!(facts.log.told_off_bus.len(), 2);
        assert_eq!(facts.nvml.recovery_told.first().map(|told| told.value.as_str()), Some("Reset"));
        assert_eq!(facts.nvml.memory_errors_told.len(), 1);
        assert!(lines_of("it never fell off the bus").log.told_off_bus.is_empty());
        let apart = lines_of("The GPU fell off the bus. There is no Xid before it.");
        assert_eq!(apart.log.told_off_bus.len(), 1);
        assert!(lines_of("GPU Recovery Action : None").nvml.recovery_told.is_empty());
    }
}
