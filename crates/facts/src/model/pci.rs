//! NVIDIA devices on the PCI bus.

use std::collections::BTreeMap;
use std::fmt;

use crate::observed::{Observed, Origin, Seen};

/// NVIDIA's PCI vendor id.
pub const VENDOR_NVIDIA: u16 = 0x10de;

/// A PCI address, `dddd:bb:dd.f`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PciAddress {
    /// Domain.
    pub domain: u32,
    /// Bus.
    pub bus: u8,
    /// Device.
    pub device: u8,
    /// Function.
    pub function: u8,
}

impl PciAddress {
    /// Reads `0000:01:00.0`, `00000000:01:00.0` (NVML), `0000:01:00` (Xid lines) and `01:00.0`
    /// (lspci).
    pub fn parse(text: &str) -> Option<PciAddress> {
        let text = text.trim();
        let (head, function) = match text.rsplit_once('.') {
            Some((head, function)) => (head, u8::from_str_radix(function, 16).ok()?),
            None => (text, 0),
        };
        let parts: Vec<&str> = head.split(':').collect();
        let (domain, bus, device) = match parts.as_slice() {
            [domain, bus, device] => (u32::from_str_radix(domain, 16).ok()?, *bus, *device),
            [bus, device] => (0, *bus, *device),
            _ => return None,
        };
        let bus = u8::from_str_radix(bus, 16).ok()?;
        let device = u8::from_str_radix(device, 16).ok().filter(|device| *device < 32)?;
        (function < 8).then_some(PciAddress { domain, bus, device, function })
    }
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x}:{:02x}:{:02x}.{:x}", self.domain, self.bus, self.device, self.function)
    }
}

/// One base address register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bar {
    /// Index, 0 to 5.
    pub index: u8,
    /// Bus address of its start; 0 when firmware and kernel left it without one.
    pub start: u64,
    /// Size in bytes; 0 when the register is not in use.
    pub size_bytes: u64,
}

/// Link speed and width.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Link {
    /// Speed now, in GT/s.
    pub current_gts: f32,
    /// Lanes now.
    pub current_width: u8,
    /// Highest speed of the device, in GT/s.
    pub max_gts: f32,
    /// Most lanes of the device.
    pub max_width: u8,
}

/// Errors of a link, as the device's AER counters have them since boot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkErrors {
    /// Errors that were repaired by sending again.
    pub correctable: u64,
    /// Errors that lost a transaction.
    pub nonfatal: u64,
    /// Errors that made the link unreliable.
    pub fatal: u64,
}

/// One device.
#[derive(Debug, Clone)]
pub struct PciDevice {
    /// Its address, if the input tells.
    pub address: Option<PciAddress>,
    /// Vendor id.
    pub vendor: u16,
    /// Device id, if the input tells.
    pub device: Option<u16>,
    /// Class code, 24 bits (0x030000 VGA, 0x030200 3D controller, 0x068000 bridge such as NVSwitch).
    pub class: Option<u32>,
    /// Subsystem vendor and device.
    pub subsystem: Option<(u16, u16)>,
    /// Its name as the input calls it.
    pub name: Option<String>,
    /// The kernel driver bound to it; `Absent` when none is.
    pub driver: Observed<String>,
    /// Base address registers.
    pub bars: Observed<Vec<Bar>>,
    /// Link state.
    pub link: Observed<Link>,
    /// `power_state`: D0, D3hot, D3cold.
    pub power_state: Observed<String>,
    /// `power/runtime_status`.
    pub runtime_status: Observed<String>,
    /// Errors that the device itself has counted on its link (AER).
    pub link_errors: Observed<LinkErrors>,
    /// NUMA node; -1 when the firmware does not say.
    pub numa_node: Observed<i32>,
    /// IOMMU group.
    pub iommu_group: Observed<u32>,
}

impl PciDevice {
    /// A display or 3D controller of NVIDIA.
    pub fn is_gpu(&self) -> bool {
        self.vendor == VENDOR_NVIDIA && self.class.is_some_and(|class| class >> 16 == 0x03)
    }

    /// An NVSwitch: a bridge-class device of NVIDIA with one of the switches' ids (A100 1af1,
    /// H100 22a3; pci.ids 2026.10.24).
    pub fn is_nvswitch(&self) -> bool {
        self.vendor == VENDOR_NVIDIA
            && (matches!(self.device, Some(0x1af1 | 0x22a3)) || self.class == Some(0x06_80_00))
    }
}

/// The PCI bus.
#[derive(Debug, Clone, Default)]
pub struct Pci {
    /// NVIDIA's devices. `Absent` when the whole bus was listed and none is there.
    pub devices: Observed<Vec<PciDevice>>,
    /// Where a person says that lspci shows no GPU.
    pub told_absent: Vec<Origin>,
    /// Access-control flags (ACSCtl) of devices and of the bridges above them, as lspci words them.
    pub access_control: Vec<Seen<(PciAddress, String)>>,
    /// Devices whose configuration space reads as all ones (`rev ff`): gone from the bus.
    pub lost: Vec<Seen<Option<PciAddress>>>,
    /// Types of IOMMU groups by number: `DMA`, `DMA-FQ`, `identity`, `blocked`.
    pub iommu_types: BTreeMap<u32, Observed<String>>,
}

impl Pci {
    /// The GPUs that are known to be on the bus.
    pub fn gpus(&self) -> impl Iterator<Item = &PciDevice> {
        self.devices.value().into_iter().flatten().filter(|device| device.is_gpu())
    }

    /// The NVSwitches that are known to be on the bus.
    pub fn nvswitches(&self) -> impl Iterator<Item = &PciDevice> {
        self.devices.value().into_iter().flatten().filter(|device| device.is_nvswitch())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_in_all_spellings_are_one() {
        let plain = PciAddress::parse("0000:81:00.0").unwrap();
        for text in ["00000000:81:00.0", "81:00.0", "0000:81:00"] {
            assert_eq!(PciAddress::parse(text), Some(plain));
        }
        assert_eq!(plain.to_string(), "0000:81:00.0");
        assert_eq!(PciAddress::parse("nonsense"), None);
        assert_eq!(PciAddress::parse("0000:81:40.0"), None);
    }
}
