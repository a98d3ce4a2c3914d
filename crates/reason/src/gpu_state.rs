//! Questions about the state of GPUs, their links and the machine around them, each answered in
//! one place.

use facts::model::log::LogEvent;
use facts::model::pci::{PciAddress, PciDevice};
use facts::model::platform::VgpuSide;
use facts::{Facts, Origin, Seen};

use crate::machine;
use crate::xid_burst::{self, same_card};

/// The recovery that the driver asks for, when it asks for one: as NVML tells it, as the last Xid
/// 154 of a GPU does, or as a report does.
pub fn recovery_action(facts: &Facts) -> Option<Seen<String>> {
    let told_by_nvml = facts.nvml.gpus.iter().find_map(|gpu| {
        let action = gpu.value.recovery_action.as_deref().filter(|action| !is_none(action))?;
        Some(Seen::new(action.to_owned(), gpu.origin.clone()))
    });
    told_by_nvml
        .or_else(|| logged_action(facts))
        .or_else(|| facts.nvml.recovery_told.first().cloned())
}

/// Where NVML was seen to ask for no recovery of any GPU.
pub fn no_recovery_asked(facts: &Facts) -> Option<Origin> {
    let mut actions =
        facts.nvml.gpus.iter().filter_map(|gpu| Some((gpu.value.recovery_action.as_deref()?, gpu)));
    let (first, gpu) = actions.next()?;
    (first == "None" && actions.all(|(action, _)| action == "None")).then(|| gpu.origin.clone())
}

fn is_none(action: &str) -> bool {
    matches!(action, "None" | "N/A" | "" | "Unknown" | "[N/A]" | "[Not Supported]")
}

/// A failed assertion or check of the driver that tells this status, such as
/// `NV_ERR_RESET_REQUIRED` (nv_status table).
pub fn asserted<'a>(facts: &'a Facts, status: &str) -> Option<&'a LogEvent> {
    let lines = facts.log.with("NV_ASSERT").chain(facts.log.with("NV_CHECK"));
    lines.into_iter().find(|event| event.text.contains(&format!("[{status}]")))
}

/// The driver's log says that the GPU stays closed until it is reset.
pub fn reset_required_logged(facts: &Facts) -> Option<&LogEvent> {
    asserted(facts, "NV_ERR_RESET_REQUIRED")
}

/// `GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)`: the last word on
/// each GPU counts, and the first GPU that still waits is named.
fn logged_action(facts: &Facts) -> Option<Seen<String>> {
    let mut last: Vec<(Option<PciAddress>, &LogEvent)> = Vec::new();
    for (number, event) in facts.log.xids() {
        if number != xid_burst::RECOVERY_ACTION {
            continue;
        }
        match last.iter_mut().find(|(device, _)| *device == event.device) {
            Some(known) => known.1 = event,
            None => last.push((event.device, event)),
        }
    }
    last.into_iter().find_map(|(_, event)| {
        let (_, to) = event.text.rsplit_once(" to ")?;
        let action = to.split_once('(')?.1.split(')').next()?.trim();
        (!is_none(action)).then(|| Seen::new(action.to_owned(), event.origin.clone()))
    })
}

/// The addresses of all GPUs that any source names.
pub fn cards(facts: &Facts) -> Vec<PciAddress> {
    let on_bus = facts.pci.gpus().filter_map(|gpu| gpu.address);
    let by_nvml = facts.nvml.gpus.iter().filter_map(|gpu| gpu.value.address);
    let by_module = facts.module.gpus.iter().filter_map(|gpu| gpu.value.address);
    let logged = facts
        .log
        .events
        .iter()
        .filter(|event| {
            let by_driver = event.text.contains("NVRM") || event.text.starts_with("nvidia ");
            by_driver || event.signature == "PCI_FOUND"
        })
        .filter_map(|event| event.device);
    let mut all: Vec<PciAddress> = on_bus.chain(by_nvml).chain(by_module).chain(logged).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Whether a line of the kernel's is about a GPU, or another function of its card.
pub fn is_about_gpu(facts: &Facts, event: &LogEvent) -> bool {
    if event.text.starts_with("nvidia ") || event.text.contains("NVRM") {
        return true;
    }
    let cards = cards(facts);
    let named = addresses(&event.text).chain(event.device);
    named.into_iter().any(|address| cards.iter().any(|card| same_card(*card, address)))
}

/// Whole addresses, `0000:01:00.0`, in a line.
fn addresses(text: &str) -> impl Iterator<Item = PciAddress> {
    text.split(|ch: char| !ch.is_ascii_hexdigit() && ch != ':' && ch != '.')
        .map(|word| word.trim_matches([':', '.']))
        .filter(|word| word.len() == 12 && word.matches(':').count() == 2)
        .filter_map(PciAddress::parse)
}

/// A GPU at work whose link is below what it and its slot can do. An idle one is not judged: it
/// goes down to the first generation by design.
pub fn slow_link(facts: &Facts) -> Option<Seen<String>> {
    facts.nvml.gpus.iter().find_map(|gpu| {
        let health = &gpu.value.health;
        let below = |now: Option<u8>, most: Option<u8>| Some((now?, most?)).filter(|(n, m)| n < m);
        let link = &health.link;
        let statement = below(link.width, link.width_max)
            .map(|(now, most)| format!("at work, the link runs at x{now} of x{most}"))
            .or_else(|| {
                let (now, most) = below(link.generation, link.generation_max)?;
                Some(format!("at work, the link runs at PCIe generation {now} of {most}"))
            })?;
        health.is_loaded().then(|| Seen::new(statement, gpu.origin.clone()))
    })
}

/// The first error of a switch that the driver calls fatal: `SXid (PCI:…): 12028, Fatal, Link 28 …`.
pub fn fatal_sxid(facts: &Facts) -> Option<&LogEvent> {
    let mut lines = facts.log.with("NVSWITCH_SXID");
    lines.find(|event| event.get("msg").is_some_and(|said| said.starts_with("Fatal")))
}

/// How many repaired errors a link may report before that is a finding.
const CORRECTED_LINES: usize = 10;
const CORRECTED_COUNT: u64 = 1000;

/// What shows that a GPU's link makes errors: AER lines about it, or its own counters. A handful
/// of corrected ones is normal.
pub fn link_errors(facts: &Facts) -> Option<Seen<String>> {
    logged_errors(facts).or_else(|| counted_errors(facts))
}

fn logged_errors(facts: &Facts) -> Option<Seen<String>> {
    let reports = facts.log.events.iter().filter(|event| {
        let report = matches!(event.signature, "AER_BUS" | "AER_REPORT");
        // Only after an error that was not corrected does the kernel ask drivers to recover.
        let unrecovered = event.signature == "AER_NORECOVER" && event.text.starts_with("nvidia ");
        report && is_about_gpu(facts, event) || unrecovered
    });
    let severe = |event: &&LogEvent| {
        event.signature == "AER_NORECOVER"
            || event.get("sev").is_some_and(|sev| sev.starts_with("Uncorrect"))
    };
    if let Some(event) = reports.clone().find(severe) {
        let text = facts::observed::clean_excerpt(&event.text);
        return Some(Seen::new(format!("the link reports: {text}"), event.origin.clone()));
    }
    let count = reports.clone().count();
    let first = reports.clone().next()?;
    (count >= CORRECTED_LINES).then(|| {
        let statement =
            format!("the kernel log has {count} lines of corrected errors on the GPU's link");
        Seen::new(statement, first.origin.clone())
    })
}

fn counted_errors(facts: &Facts) -> Option<Seen<String>> {
    facts.pci.gpus().find_map(|gpu| {
        let seen = gpu.link_errors.as_seen()?;
        let errors = seen.value;
        let statement = if errors.fatal > 0 {
            format!("the GPU has counted {} fatal errors on its link", errors.fatal)
        } else if errors.correctable >= CORRECTED_COUNT {
            format!("the GPU has counted {} corrected errors on its link", errors.correctable)
        } else {
            return None;
        };
        Some(Seen::new(statement, seen.origin.clone()))
    })
}

/// The hypervisor under which this machine runs, when it is known to be a guest: by a reading of
/// the machine, or by what the report says.
pub fn hypervisor(facts: &Facts) -> Option<Seen<String>> {
    if machine::is_wsl(facts) {
        return None;
    }
    match facts.host.hypervisor.as_seen() {
        Some(seen) if seen.value == "none" => None,
        Some(seen) => Some(seen.clone()),
        None => facts.platform.guest_told.first().cloned(),
    }
}

/// Where it was seen that this is the guest of a vGPU.
pub fn vgpu_guest(facts: &Facts) -> Option<Origin> {
    let by_nvml = facts.nvml.gpus.iter().find(|gpu| {
        let mode = gpu.value.virtualization.as_deref().is_some_and(|mode| mode == "VGPU");
        mode || gpu.value.name.as_deref().is_some_and(is_vgpu_name)
    });
    by_nvml.map(|gpu| gpu.origin.clone()).or_else(|| {
        let told = facts.platform.vgpu.iter();
        let guest = told.clone().find(|told| told.value == VgpuSide::Guest);
        let host = told.clone().any(|told| told.value == VgpuSide::Host);
        guest.or_else(|| told.clone().next().filter(|_| !host)).map(|told| told.origin.clone())
    })
}

/// Where it was seen that vGPUs are in play at all, on either side.
pub fn vgpu(facts: &Facts) -> Option<Origin> {
    let by_nvml =
        facts.nvml.gpus.iter().find(|gpu| {
            gpu.value.virtualization.as_deref().is_some_and(|mode| mode.contains("VGPU"))
        });
    let told = facts.platform.vgpu.first().map(|told| told.origin.clone());
    by_nvml.map(|gpu| gpu.origin.clone()).or(told).or_else(|| vgpu_guest(facts))
}

/// `GRID V100D-8C`, `NVIDIA A40-48Q`, `NVIDIA A100-1-5CME`: a profile stands behind the name.
fn is_vgpu_name(name: &str) -> bool {
    let profile = name.rsplit('-').next().unwrap_or("");
    let profile = profile.strip_suffix("ME").unwrap_or(profile);
    let sized = profile
        .strip_suffix(['A', 'B', 'C', 'Q'])
        .is_some_and(|size| !size.is_empty() && size.bytes().all(|byte| byte.is_ascii_digit()));
    name.contains('-') && sized || name.starts_with("GRID ")
}

/// The driver of a GPU that gives it to guests.
pub fn passthrough_driver(gpu: &PciDevice) -> Option<&Seen<String>> {
    let seen = gpu.driver.as_seen()?;
    matches!(seen.value.as_str(), "vfio-pci" | "pci-stub" | "xen-pciback").then_some(seen)
}

/// Base address registers of GPUs that have a size and no address: the GPU, the register and
/// where that was seen.
pub fn registers_without_address(facts: &Facts) -> Vec<(Option<PciAddress>, u8, Origin)> {
    let mut found = Vec::new();
    for gpu in facts.pci.gpus() {
        let Some(bars) = gpu.bars.as_seen() else { continue };
        let bare = bars.value.iter().filter(|bar| bar.start == 0 && bar.size_bytes > 0);
        found.extend(bare.map(|bar| (gpu.address, bar.index, bars.origin.clone())));
    }
    found
}

/// Where a listing gives every register of every GPU an address. A register that could not be
/// placed may be left out of such a listing, so that this speaks against and never decides.
pub fn registers_all_placed(facts: &Facts) -> Option<Origin> {
    let mut first = None;
    for gpu in facts.pci.gpus() {
        let bars = gpu.bars.as_seen()?;
        if bars.value.is_empty() || bars.value.iter().any(|bar| bar.start == 0) {
            return None;
        }
        first = first.or_else(|| Some(bars.origin.clone()));
    }
    first
}

#[cfg(test)]
mod tests {
    use facts::raw::{ItemName, RawItem, RawSet};

    use super::*;

    fn facts(log: &str) -> Facts {
        let mut raw = RawSet::new();
        raw.push(RawItem::new(ItemName::Command("dmesg".to_owned()), log.as_bytes()));
        facts::extract(&raw)
    }

    #[test]
    fn the_last_recovery_action_of_a_gpu_counts() {
        let to_reset = "NVRM: Xid (PCI:0000:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)\n";
        let to_none = "NVRM: Xid (PCI:0000:01:00): 154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)\n";
        let waits = facts(to_reset);
        assert_eq!(recovery_action(&waits).unwrap().value, "GPU Reset Required");
        assert!(recovery_action(&facts(&format!("{to_reset}{to_none}"))).is_none());
    }

    #[test]
    fn names_of_vgpus() {
        for name in ["GRID V100D-8C", "NVIDIA A40-48Q", "NVIDIA L4-12Q", "NVIDIA A100-1-5CME"] {
            assert!(is_vgpu_name(name), "{name}");
        }
        for name in
            ["NVIDIA A100-SXM4-80GB", "NVIDIA H100 PCIe", "NVIDIA A100-PCIE-40GB", "Tesla T4"]
        {
            assert!(!is_vgpu_name(name), "{name}");
        }
    }

    #[test]
    fn errors_count_only_on_the_gpus_own_link() {
        let line = |address: &str| {
            format!("pcieport 0000:00:1c.0: AER: Corrected error received: {address}\n").repeat(12)
        };
        let gpu = "NVRM: Xid (PCI:0000:01:00): 45, pid=7, name=python, Ch 00000008\n";
        assert!(link_errors(&facts(&format!("{gpu}{}", line("0000:01:00.0")))).is_some());
        assert!(link_errors(&facts(&format!("{gpu}{}", line("0000:3d:00.0")))).is_none());
    }
}
