//! What follows from pieces that stand in different layers.

use crate::model::Facts;
use crate::model::nvml::NvmlResult;
use crate::observed::{Observed, Seen};
use crate::version::DriverVersion;

/// Fills what one layer tells about another.
pub(super) fn apply(facts: &mut Facts) {
    super::told::apply(facts);
    super::probes::experiment::conclude(facts);
    running_firmware(facts);
    counted_gpus(facts);
    super::sides::apply(facts);
    reported_library(facts);
    fabric(facts);
    mentions(facts);
}

/// NVML's and /proc's word on the GSP firmware, when nothing better was entered.
fn running_firmware(facts: &mut Facts) {
    if !facts.firmware.running.is_empty() {
        return;
    }
    let from_proc = facts.module.gpus.iter().map(|gpu| (&gpu.value.gpu_firmware, &gpu.origin));
    let from_nvml = facts.nvml.gpus.iter().map(|gpu| (&gpu.value.gsp_version, &gpu.origin));
    let mut running = Vec::new();
    let mut not_running = Vec::new();
    for (text, origin) in from_proc.chain(from_nvml) {
        match text.as_deref().map(|text| (text, DriverVersion::parse(text))) {
            Some((_, Some(version))) => running.push(Seen::new(version, origin.clone())),
            Some(("N/A", None)) => not_running.push(origin.clone()),
            Some((_, None)) | None => {}
        }
    }
    facts.firmware.running = running;
    if facts.firmware.not_running.is_empty() {
        facts.firmware.not_running = not_running;
    }
}

/// A listing of GPUs is a count.
fn counted_gpus(facts: &mut Facts) {
    if facts.nvml.count.is_seen() {
        return;
    }
    let whole = facts.nvml.gpus.iter().all(|gpu| gpu.value.index.is_some());
    if let (true, Some(first)) = (whole, facts.nvml.gpus.first()) {
        let count = u32::try_from(facts.nvml.gpus.len()).unwrap_or(u32::MAX);
        facts.nvml.count = Observed::seen(count, first.origin.clone());
        let answered = Observed::seen(NvmlResult::Code(0), first.origin.clone());
        facts.nvml.init.or_better(answered);
    }
}

/// The version of libnvidia-ml by its file is as good as its own word.
fn reported_library(facts: &mut Facts) {
    if let Observed::Seen(Seen { value, origin }) = &facts.library.nvml
        && let Some(version) = &value.version
    {
        facts.library.reported.or_better(Observed::seen(version.clone(), origin.clone()));
    }
}

/// Switches on the bus, or the driver's major for them with nodes, mean a fabric.
fn fabric(facts: &mut Facts) {
    if facts.fabric.nvswitch.is_seen() {
        return;
    }
    if let Some(origin) = linked_through_switches(facts) {
        facts.fabric.nvswitch = Observed::seen(true, origin);
        return;
    }
    let on_bus = facts.pci.nvswitches().next().is_some();
    if let (true, Some(origin)) = (on_bus, facts.pci.devices.origin()) {
        facts.fabric.nvswitch = Observed::seen(true, origin.clone());
        return;
    }
    let node = facts.node.nodes.iter().find(|(path, node)| {
        let name = path.strip_prefix("/dev/nvidia-nvswitch").unwrap_or("");
        node.is_seen() && name.bytes().next().is_some_and(|byte| byte.is_ascii_digit())
    });
    if let Some(origin) = node.and_then(|(_, node)| node.origin()) {
        facts.fabric.nvswitch = Observed::seen(true, origin.clone());
    } else if let Observed::Seen(seen) = &facts.pci.devices {
        facts.fabric.nvswitch = Observed::seen(false, seen.origin.clone());
    }
}

/// A matrix in which a GPU has more links to its peers together than any GPU has: only switches lend
/// every pair all of them.
fn linked_through_switches(facts: &Facts) -> Option<crate::Origin> {
    const MOST_LINKS: u32 = 18;
    let rows = facts.nvml.topology.iter().filter(|cell| cell.value.0.starts_with("GPU"));
    let mut sums: std::collections::BTreeMap<&str, u32> = std::collections::BTreeMap::new();
    for cell in rows.filter(|cell| cell.value.1.starts_with("GPU")) {
        let links = cell.value.2.strip_prefix("NV").and_then(|links| links.parse::<u32>().ok());
        let sum = sums.entry(cell.value.0.as_str()).or_default();
        *sum = sum.saturating_add(links.unwrap_or(0));
        if *sum > MOST_LINKS {
            return Some(cell.origin.clone());
        }
    }
    None
}

fn mentions(facts: &mut Facts) {
    facts.mentions_gpu |= facts.live
        || !facts.log.events.is_empty()
        || !facts.log.unlisted.is_empty()
        || !facts.cuda.trials.is_empty()
        || !facts.nvml.queries.is_empty()
        || !facts.nvml.gpus.is_empty()
        || facts.pci.devices.is_seen()
        || facts.framework.torch.is_seen()
        || !facts.framework.messages.is_empty()
        || !facts.sandbox.engine_messages.is_empty()
        || facts.nvml.init.is_seen();
}
