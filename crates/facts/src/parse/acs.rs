//! Access control (ACS) of PCI Express ports in the output of `lspci -vvv`, and which of the ports
//! have a GPU below them.

use super::{At, numbered};
use crate::model::p2p::PortAccess;
use crate::model::pci::PciAddress;

/// Longest line that is looked at.
const LINE_LIMIT: usize = 4096;
/// Most ports that are kept; large servers have some hundreds.
const PORTS_LIMIT: usize = 4096;

/// A device's head, and what its indented lines tell of the tree.
struct Port {
    address: PciAddress,
    /// Buses below it, first and last.
    below: Option<(u8, u8)>,
    flags: Option<(u32, String)>,
}

/// Reads the ports that show their access control. Lines without a device above them (what `grep`
/// left) give ports without an address.
pub fn parse(text: &str) -> Vec<At<PortAccess>> {
    let mut ports: Vec<Port> = Vec::new();
    let mut gpus: Vec<PciAddress> = Vec::new();
    let mut alone: Vec<At<PortAccess>> = Vec::new();
    for (number, line) in numbered(text).filter(|(_, line)| line.len() <= LINE_LIMIT) {
        let content = line.trim();
        if let Some((address, gpu)) = head(line) {
            gpus.extend(gpu.then_some(address));
            if ports.len() < PORTS_LIMIT {
                ports.push(Port { address, below: None, flags: None });
            }
        } else if let Some(port) = ports.last_mut()
            && let Some(rest) = content.strip_prefix("Bus: ")
        {
            port.below = buses(rest);
        } else if let Some(flags) = flags(content) {
            match ports.last_mut().filter(|port| port.flags.is_none()) {
                Some(port) => port.flags = Some((number, flags.to_owned())),
                None if alone.len() < PORTS_LIMIT => {
                    alone.push(At::new(number, access(None, None, flags)));
                }
                None => {}
            }
        }
    }
    let listed = ports.iter().filter_map(|port| {
        let (number, flags) = port.flags.as_ref()?;
        let above = above_gpu(port, &gpus);
        Some(At::new(*number, access(Some(port.address), above, flags)))
    });
    alone.extend(listed);
    alone
}

/// Whether a GPU is on one of the buses below; unknown where either is not in the listing.
fn above_gpu(port: &Port, gpus: &[PciAddress]) -> Option<bool> {
    let (first, last) = port.below?;
    if gpus.is_empty() {
        return None;
    }
    Some(
        gpus.iter()
            .any(|gpu| gpu.domain == port.address.domain && (first..=last).contains(&gpu.bus)),
    )
}

fn access(port: Option<PciAddress>, above_gpu: Option<bool>, flags: &str) -> PortAccess {
    let redirects = flags.contains("ReqRedir+") || flags.contains("CmpltRedir+");
    PortAccess { port, above_gpu, redirects, flags: flags.to_owned() }
}

/// `40:01.1 PCI bridge: …`: the address, and whether it is a GPU of NVIDIA.
fn head(line: &str) -> Option<(PciAddress, bool)> {
    if line.starts_with('\t') {
        return None;
    }
    let (slot, rest) = line.trim().split_once(' ')?;
    let function = slot.rsplit_once('.').is_some_and(|(_, function)| function.len() == 1);
    let address = PciAddress::parse(slot).filter(|_| function)?;
    let display = ["VGA compatible controller", "3D controller", "Display controller"];
    let gpu = rest.contains("NVIDIA") && display.iter().any(|class| rest.contains(class));
    rest.contains(": ").then_some((address, gpu))
}

/// `primary=40, secondary=41, subordinate=41, sec-latency=0`.
fn buses(text: &str) -> Option<(u8, u8)> {
    let number = |key: &str| {
        let (_, rest) = text.split_once(key)?;
        u8::from_str_radix(rest.split([',', ' ']).next()?, 16).ok()
    };
    Some((number("secondary=")?, number("subordinate=")?))
}

/// The flags of an `ACSCtl` line, also where a file name or an address stands before it.
fn flags(content: &str) -> Option<&str> {
    let (_, rest) = content.split_once("ACSCtl")?;
    let start = rest.find("SrcValid").or_else(|| rest.find("ReqRedir"))?;
    rest.get(start..)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTING: &str = "\
40:01.1 PCI bridge: Advanced Micro Devices, Inc. [AMD] Starship/Matisse GPP Bridge
\tBus: primary=40, secondary=41, subordinate=41, sec-latency=0
\t\tACSCap:\tSrcValid+ TransBlk+ ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans+
\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-
41:00.0 VGA compatible controller: NVIDIA Corporation AD102GL [RTX 5880 Ada Generation] (rev a1)
c0:03.1 PCI bridge: Advanced Micro Devices, Inc. [AMD] Starship/Matisse GPP Bridge
\tBus: primary=c0, secondary=c1, subordinate=c1, sec-latency=0
\t\tACSCtl:\tSrcValid- TransBlk- ReqRedir- CmpltRedir- UpstreamFwd- EgressCtrl- DirectTrans-
";

    #[test]
    fn ports_know_whether_a_gpu_is_below() {
        let ports = parse(LISTING);
        let told: Vec<_> = ports
            .iter()
            .map(|port| (port.line, port.value.above_gpu, port.value.redirects))
            .collect();
        assert_eq!(told, [(4, Some(true), true), (8, Some(false), false)]);
    }

    #[test]
    fn what_grep_left_has_no_address() {
        let ports = parse("\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+\n");
        assert_eq!(ports.len(), 1);
        assert_eq!((ports[0].value.port, ports[0].value.above_gpu), (None, None));
        assert!(ports[0].value.redirects);
        assert!(parse("ACSCtl is a register").is_empty());
    }
}
