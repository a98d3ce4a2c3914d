//! The lines of the bus and of the fabric.

use crate::machine;
use facts::model::pci::PciDevice;
use facts::{Facts, Observed};

use super::{Line, not_seen};

/// `8 GPUs, all links at full width`.
pub(super) fn pci(facts: &Facts) -> Line {
    if machine::is_wsl(facts) {
        return Line::not_applicable("WSL: the GPU is not on the PCI bus");
    }
    if facts.host.tegra.value() == Some(&true) {
        return Line::not_applicable("Tegra: the GPU is not on the PCI bus");
    }
    match &facts.pci.devices {
        Observed::Absent(_) => Line::not_applicable("no NVIDIA GPU on the bus"),
        Observed::Seen(_) => {
            let gpus: Vec<&PciDevice> = facts.pci.gpus().collect();
            if gpus.is_empty() {
                return Line::unknown("devices of NVIDIA, but no GPU among them");
            }
            let parts =
                [Some(counted(gpus.len(), "GPU")), switches(facts), owners(&gpus), links(&gpus)];
            Line::ok(parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
        }
        unseen => Line::unknown(not_seen("PCI bus", unseen)),
    }
}

/// `1 GPU`, `8 GPUs`.
pub(super) fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

fn switches(facts: &Facts) -> Option<String> {
    let count = facts.pci.nvswitches().count();
    (count > 0)
        .then(|| if count == 1 { "1 NVSwitch".to_owned() } else { format!("{count} NVSwitches") })
}

/// A driver other than nvidia that owns GPUs.
fn owners(gpus: &[&PciDevice]) -> Option<String> {
    let foreign = |gpu: &&&PciDevice| gpu.driver.value().is_some_and(|owner| owner != "nvidia");
    let first = gpus.iter().find(foreign)?.driver.value()?;
    let count = gpus.iter().filter(foreign).count();
    Some(if count == gpus.len() {
        format!("bound to {first}")
    } else {
        format!("{count} of them bound to {first}")
    })
}

/// Width only: an idle link lowers its speed by design.
fn links(gpus: &[&PciDevice]) -> Option<String> {
    let known: Vec<_> = gpus.iter().filter_map(|gpu| gpu.link.value()).collect();
    let narrow = known.iter().filter(|link| link.current_width < link.max_width).count();
    match (known.len(), narrow) {
        (0, _) => None,
        (all, 0) if all == gpus.len() && all > 1 => Some("all links at full width".to_owned()),
        (_, 0) => Some("link at full width".to_owned()),
        (_, narrow) => Some(format!("{} below full width", counted(narrow, "link"))),
    }
}

/// `fabric Completed on 8 GPUs`, where there is a fabric.
pub(super) fn fabric(facts: &Facts) -> Option<Line> {
    facts.pci.nvswitches().next()?;
    let states: Vec<&str> =
        facts.nvml.gpus.iter().filter_map(|gpu| gpu.value.fabric_state.as_deref()).collect();
    let first = states.first()?;
    let alike = states.iter().filter(|state| *state == first).count();
    let line = format!("fabric {first} on {}", counted(alike, "GPU"));
    Some(if alike == states.len() && *first == "Completed" {
        Line::ok(line)
    } else {
        Line::unknown(line)
    })
}
