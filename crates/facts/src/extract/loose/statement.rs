//! What a person says of an experiment: it works with this, it fails even with that, nvidia-smi is
//! fine. Such statements are evidence of what was tried; they never replace a reading.

use super::Line;
use super::pattern::{captures, matches, pattern};
use crate::model::Facts;
use crate::model::cuda::{Stage, Trial, TrialResult};
use crate::model::nvml::NvmlResult;
use crate::observed::{Observed, Seen};

pattern! {
    /// It works under some condition.
    WORKS = r"(?i)\b(?:works?|worked|working|fixe[sd]|fix(?:es|ed)? it|cure[sd]|solve[sd]|resolve[sd]|succeeds?|initiali[sz]es|starts|goes away|went away|gone|no longer (?:hangs|fails)|is fine|runs fine|completes)\b"
}
pattern! {
    /// The condition.
    CONDITION = r"(?i)\b(?:with|after|once|when|if|by|under|setting|using|add|adding|putting|booting|minus|without|removing|dropping|recreating)\b|\bonly (?:works?|starts|succeeds|initiali[sz]es)\b|\b(?:works?|starts|succeeds) only\b"
}
pattern! { NEGATED = r"(?i)\b(?:not|never|no effect|n['’]t|doesn['’]t|didn['’]t|still (?:fails|hangs|the same|broken)|does nothing|without (?:success|effect)|makes no difference|fails)\b|n['’]t\b" }
pattern! {
    SMI_FINE = r"(?i)\bnvidia-smi\b[^.\n;]{0,50}\b(?:works?|working|worked|lists?|listed|shows?|showed|fine|ok|okay|sees|healthy|correct(?:ly)?|reports?|detects?)\b"
}
pattern! {
    RUN_FIRST = r"(?i)\b(?:once|after|until|unless|when|as soon as|only if|first|before)\b[^.\n]{0,24}\b(?:run|ran|running|runs|call\w*|execut\w+|invok\w+|start\w*|typ\w+)\b[^.\n]{0,16}\bnvidia-smi\b|\bnvidia-smi\b[^.\n]{0,12}\b(?:once|first)\b"
}
pattern! {
    /// What is told of the host is nothing that the container saw.
    ON_HOST = r"(?i)\b(?:on|from|at) (?:the |my |our |its )?(?:docker |bare |physical )?hosts?\b|\boutside (?:of )?(?:the |a |any )?(?:containers?|docker|pods?)\b"
}
pattern! { SMI_BAD = r"(?i)\b(?:not|n['’]t|no|fail\w*|cannot|can['’]t|hang\w*|error|mismatch|freez\w*|stuck|until|command|chipset|nothing|only|In Progress|Not Supported|Unlicensed)\b|n['’]t\b" }
pattern! { FABRIC_MANAGER = r"(?i)\b(?:nvidia-)?fabric[- ]?manager\b[^.\n]{0,40}\b(?P<state>not installed|not active|inactive|not running|failed|is not started|isn['’]t running|dead|masked|disabled)\b" }
pattern! { FABRIC_STATE = r"(?i)\bfabric(?: state)?\b[^.\n]{0,24}?['`:]?\s*(?P<state>In Progress|Not Started|Completed)\b" }
pattern! { NO_NVSWITCH = r"(?i)\b(?:no|not|without|lacks?|isn['’]t|has(?:n['’]t| no)|have no)\b[^.\n]{0,16}\b(?:NV ?Switch(?:es)?|HGX|DGX)\b" }
pattern! {
    /// A board whose GPUs are given to guests: its switches are the host's, or of another guest.
    OF_A_HOST = r"(?i)\b(?:VMs?|guests?|virtual machines?|pass(?:ed)?[- ]?(?:through|to)|libvirt|KVM|kubevirt|shared|slice)\b"
}
pattern! { NVSWITCH = r"(?i)\bNV ?Switch(?:es)?\b|\b(?:HGX|DGX)\b" }

/// The condition under which the line says that something works or fails, when it says one.
pub(super) fn condition(text: &str) -> Option<String> {
    // A line may hold several sentences; the condition belongs to what works.
    let conditional = |sentence: &str| matches(&WORKS, sentence) && matches(&CONDITION, sentence);
    let works = text.split(". ").any(conditional);
    works.then(|| crate::observed::clean_excerpt(text))
}

/// The sentences of a line. A dot within a number, a path or a name ends none.
pub(super) fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.split("; ")
        .flat_map(|part| part.split_inclusive(". "))
        .filter(|part| !part.trim().is_empty())
}

pub(super) fn read(line: &Line<'_>, facts: &mut Facts) {
    for text in sentences(line.text) {
        experiment(&Line { item: line.item, number: line.number, text }, facts);
    }
    smi_fine(line, facts);
    fabric(line, facts);
}

/// "CUDA works after loading nvidia_uvm with uvm_disable_hmm=1".
fn experiment(line: &Line<'_>, facts: &mut Facts) {
    let Some(under) = condition(line.text) else { return };
    let about =
        ["cuda", "gpu", "cuinit", "torch", "works", "cure", "fix", "init", "nvidia-modprobe"];
    let lower = line.text.to_lowercase();
    if !about.iter().any(|word| lower.contains(word)) || about_smi_alone(line.text) {
        return;
    }
    if super::peers::about_peers(line.text) {
        return;
    }
    let negated = matches(&NEGATED, line.text);
    let by_switch = lower.contains("uvm_disable_hmm=1") || lower.contains("uvm_disable_hmm=y");
    let result = match (negated, by_switch) {
        (false, _) => TrialResult::Code(0),
        // A denial is only worth keeping for a switch that decides a cause.
        (true, true) => TrialResult::Code(999),
        (true, false) => return,
    };
    if facts.cuda.trials.iter().any(|trial| trial.under.as_deref() == Some(under.as_str())) {
        return;
    }
    facts.cuda.trials.push(Trial {
        hmm_disabled: by_switch.then_some(true),
        under: Some(under),
        ..Trial::new(Stage::Init, result, "CUDA", line.origin())
    });
}

/// nvidia-smi as what was done before something else worked: run as root it makes nodes and loads
/// modules.
fn runs_smi_first(text: &str) -> bool {
    matches(&RUN_FIRST, text)
}

/// That nvidia-smi works says nothing of CUDA.
fn about_smi_alone(text: &str) -> bool {
    if runs_smi_first(text) {
        return false;
    }
    let lower = text.to_lowercase();
    let of_cuda = ["cuda", "cuinit", "torch"].iter().any(|word| lower.contains(word));
    lower.contains("nvidia-smi works") || matches(&SMI_FINE, text) && !of_cuda
}

fn smi_fine(line: &Line<'_>, facts: &mut Facts) {
    if runs_smi_first(line.text) {
        return;
    }
    let Some(found) = captures(&SMI_FINE, line.text) else { return };
    let (Some(said), false) = (found.get(0), facts.nvml.init.is_seen()) else { return };
    // Only the clause itself: "nvidia-smi is fine but cuInit fails" is fine.
    let clause = said.as_str();
    let tail: String = line.text[said.end()..].chars().take(24).collect();
    let tail = tail.split([',', ';', '.', '(']).next().unwrap_or("");
    let tail = tail.split(" but ").next().unwrap_or("").split(" yet ").next().unwrap_or("");
    if matches(&SMI_BAD, clause) || matches(&SMI_BAD, tail) {
        return;
    }
    facts.mentions_gpu = true;
    if matches(&ON_HOST, clause) || matches(&ON_HOST, tail) {
        facts.sandbox.host_has_gpus.or_better(Observed::seen(true, line.origin()));
    }
    facts.nvml.init = Observed::seen(NvmlResult::Code(0), line.origin());
}

fn fabric(line: &Line<'_>, facts: &mut Facts) {
    use crate::model::fabric::ServiceState;
    if let Some(found) = captures(&FABRIC_MANAGER, line.text)
        && !facts.fabric.manager.is_seen()
    {
        let said = found.name("state").map_or("", |state| state.as_str()).to_lowercase();
        let state = if said == "not installed" {
            ServiceState::NotInstalled
        } else {
            ServiceState::Stopped(said)
        };
        facts.mentions_gpu = true;
        facts.fabric.manager = Observed::seen(state, line.origin());
    }
    if let Some(found) = captures(&FABRIC_STATE, line.text)
        && let Some(state) = found.name("state")
    {
        facts.mentions_gpu = true;
        facts.fabric.states.push(Seen::new(state.as_str().to_owned(), line.origin()));
    }
    if matches(&NVSWITCH, line.text)
        && !matches(&NO_NVSWITCH, line.text)
        && !matches(&OF_A_HOST, line.text)
    {
        facts.fabric.nvswitch.or_better(Observed::seen(true, line.origin()));
    }
}
