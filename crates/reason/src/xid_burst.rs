//! Xids come in bursts: the first names the fault, those that follow are its consequences.

use facts::Facts;
use facts::model::log::LogEvent;
use facts::model::pci::PciAddress;

/// One Xid of a burst.
#[derive(Debug, Clone, Copy)]
pub struct BurstXid<'a> {
    /// Its number.
    pub number: u32,
    /// Its line.
    pub event: &'a LogEvent,
    /// Its place among the events of the log, for asking what came before it.
    pub index: usize,
}

impl BurstXid<'_> {
    /// Whether the driver's own line is there. A report or another program may tell of an Xid
    /// without it, and such a word is worth less.
    pub fn is_quoted(&self) -> bool {
        self.event.text.contains("Xid (")
    }
}

/// Xids of one GPU that followed each other closely.
#[derive(Debug, Clone)]
pub struct Burst<'a> {
    /// The GPU, if the lines name it.
    pub device: Option<PciAddress>,
    /// The Xids, in order. Never empty.
    xids: Vec<BurstXid<'a>>,
}

impl<'a> Burst<'a> {
    /// The Xids, in order.
    pub fn xids(&self) -> &[BurstXid<'a>] {
        &self.xids
    }

    /// The Xid that names the fault: the first that is neither a program's nor only tells what is
    /// to be done about another. `None` when programs alone are at fault.
    pub fn leading(&self) -> Option<BurstXid<'a>> {
        let mut own = self.xids.iter().filter(|xid| !is_application(xid.number));
        own.clone().find(|xid| xid.number != RECOVERY_ACTION).or_else(|| own.next()).copied()
    }

    /// The first Xid of this number.
    pub fn find(&self, number: u32) -> Option<BurstXid<'a>> {
        self.xids.iter().find(|xid| xid.number == number).copied()
    }
}

/// 154: the driver tells which recovery the GPU needs now. Another Xid was the reason.
pub const RECOVERY_ACTION: u32 = 154;

/// 79: the GPU has fallen off the bus.
pub const OFF_THE_BUS: u32 = 79;

/// Uncorrectable memory errors and what the driver does about them: double-bit errors (48), rows
/// and pages replaced (63) or not (64), many corrected errors (92), contained (94) and uncontained
/// (95) errors, an escaped error (140), channels retired (160, 161), less memory (168), DRAM and
/// SRAM errors of recent branches (171, 172).
pub const MEMORY: [u32; 12] = [48, 63, 64, 92, 94, 95, 140, 160, 161, 168, 171, 172];

/// A longer pause begins a new burst, in seconds. RPC timeouts of a GSP come 45 s apart.
const PAUSE_S: f64 = 180.0;

/// The bursts of the kernel log, in order of their first lines.
pub fn bursts(facts: &Facts) -> Vec<Burst<'_>> {
    let mut found: Vec<Burst<'_>> = Vec::new();
    for (index, event) in facts.log.events.iter().enumerate() {
        if event.signature != "XID" {
            continue;
        }
        let Some(number) = event.get("xid").and_then(|number| number.parse().ok()) else {
            continue;
        };
        let xid = BurstXid { number, event, index };
        let open = found.iter_mut().rev().find(|burst| burst.device == event.device);
        match open.filter(|burst| burst.xids.last().is_some_and(|last| follows(last.event, event)))
        {
            Some(burst) => burst.xids.push(xid),
            None => found.push(Burst { device: event.device, xids: vec![xid] }),
        }
    }
    found
}

/// Without stamps on both, the order of the lines is all there is. A stamp that goes back is of
/// another boot or another log.
fn follows(last: &LogEvent, next: &LogEvent) -> bool {
    match (last.time_s, next.time_s) {
        (Some(before), Some(after)) => (-1.0..=PAUSE_S).contains(&(after - before)),
        _ => true,
    }
}

/// Whether a program's own fault causes this Xid.
pub fn is_application(number: u32) -> bool {
    nvabi::xid::by_number(number).is_some_and(|xid| xid.application_fault)
}

/// The cause of the catalogue that an Xid points to by itself.
pub fn owner(number: u32) -> Option<&'static str> {
    match number {
        54 => Some("gpu.power-cable"),
        74 | 137 | 144..=150 | 155 => Some("fabric.nvlink-down"),
        78 => Some("platform.vgpu-version-skew"),
        OFF_THE_BUS => Some("pci.fell-off-bus"),
        119 | 120 => Some("firmware.gsp-timeout"),
        143 => Some("module.rm-init-failed"),
        RECOVERY_ACTION => Some("gpu.needs-reset"),
        167 | 176 => Some("pci.link-degraded"),
        number if MEMORY.contains(&number) => Some("gpu.memory-fault"),
        _ => None,
    }
}

/// `Xid 62 (PMU halted)`.
pub fn named(number: u32) -> String {
    match nvabi::xid::by_number(number) {
        Some(xid) if !xid.meaning.is_empty() && !xid.meaning.starts_with("not used") => {
            format!("Xid {number} ({})", xid.meaning)
        }
        _ => format!("Xid {number}"),
    }
}

/// Whether two addresses are functions of one card.
pub fn same_card(a: PciAddress, b: PciAddress) -> bool {
    (a.domain, a.bus, a.device) == (b.domain, b.bus, b.device)
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
    fn the_first_of_a_burst_leads_and_programs_never_do() {
        let log = facts(
            "[  100.0] NVRM: Xid (PCI:0000:01:00): 45, pid=7, name=python, Ch 00000008\n\
             [  100.1] NVRM: Xid (PCI:0000:01:00): 62, 323f0f30 0000c3d8\n\
             [  100.1] NVRM: Xid (PCI:0000:41:00): 31, pid=9, name=a, Ch 00000010\n\
             [  100.2] NVRM: Xid (PCI:0000:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)\n\
             [  101.0] NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.\n\
             [ 9000.0] NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.\n",
        );
        let bursts = bursts(&log);
        let leading: Vec<Option<u32>> =
            bursts.iter().map(|burst| burst.leading().map(|xid| xid.number)).collect();
        assert_eq!(leading, [Some(62), None, Some(79)]);
        assert_eq!(bursts[0].xids().len(), 4);
        assert!(bursts[0].find(79).is_some());
    }

    #[test]
    fn owners_and_names() {
        assert_eq!(owner(79), Some("pci.fell-off-bus"));
        assert_eq!(owner(95), Some("gpu.memory-fault"));
        assert_eq!(owner(62), None);
        assert!(named(62).starts_with("Xid 62 ("));
        assert_eq!(named(9999), "Xid 9999");
    }
}
