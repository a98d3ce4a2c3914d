//! `lspci`, with any of `-D -n -nn -k -v -vv -vvv`: NVIDIA's devices, and the access-control
//! settings (ACS) of the bridges above them.

mod detail;
mod head;

use super::{At, Parsed, numbered};
use crate::model::pci::{PciAddress, PciDevice, VENDOR_NVIDIA};

/// A device and the words that only lspci has for it.
#[derive(Debug, Clone)]
pub struct LspciDevice {
    /// The typed part.
    pub device: PciDevice,
    /// `Kernel modules:`, the modules that could drive it.
    pub modules: Vec<String>,
    /// Something that shows it to be gone: `rev ff`, `Unknown header type 7f`.
    pub lost: Option<At<String>>,
}

/// The listing.
#[derive(Debug, Clone, Default)]
pub struct Lspci {
    /// NVIDIA's devices, in order, each at the line where it begins.
    pub devices: Vec<At<LspciDevice>>,
    /// How many devices of all vendors the listing holds.
    pub device_count: usize,
    /// `ACSCtl` lines of all devices that have one: address and flags, such as `SrcValid+ ReqRedir+`.
    pub acs: Vec<At<(PciAddress, String)>>,
}

/// Longest line that is looked at.
const LINE_LIMIT: usize = 4096;
/// Most devices of NVIDIA and most ACS lines that are kept.
const LIST_LIMIT: usize = 4096;

/// Reads the listing. Lines that belong to no device are passed over.
pub fn parse(text: &str) -> Parsed<Lspci> {
    let mut listing = Lspci::default();
    let mut current: Option<Current> = None;
    for (number, line) in numbered(text).filter(|(_, line)| line.len() <= LINE_LIMIT) {
        let content = line.trim();
        if let Some(head) = head::parse(content).filter(|_| !line.starts_with(['\t'])) {
            listing.device_count += 1;
            let nvidia = head.device.vendor == VENDOR_NVIDIA;
            let address = head.device.address;
            if nvidia && listing.devices.len() < LIST_LIMIT {
                let lost = head.lost.then(|| At::new(number, content.to_owned()));
                let device = LspciDevice { device: head.device, modules: Vec::new(), lost };
                listing.devices.push(At::new(number, device));
            }
            current = address.map(|address| Current { address, nvidia });
        } else if let Some(known) = &current
            && !detail(number, content, known, &mut listing)
        {
            current = None;
        }
    }
    Parsed::clean(listing)
}

struct Current {
    address: PciAddress,
    nvidia: bool,
}

/// Reads a line below a device. False when it cannot be that device's: the line at which another
/// one begins was left out.
fn detail(number: u32, content: &str, current: &Current, listing: &mut Lspci) -> bool {
    if let Some(flags) = content.strip_prefix("ACSCtl:") {
        if listing.acs.len() < LIST_LIMIT {
            listing.acs.push(At::new(number, (current.address, flags.trim().to_owned())));
        }
    } else if let (true, Some(device)) = (current.nvidia, listing.devices.last_mut()) {
        let known = &device.value.device;
        let again = content.starts_with("Subsystem:") && known.subsystem.is_some()
            || content.starts_with("Kernel driver in use:") && known.driver.is_seen();
        if again {
            return false;
        }
        detail::read(number, content, &mut device.value);
    }
    true
}
