//! The attribute files of a PCI device below /sys/bus/pci/devices.

use super::{Parsed, numbered};
use crate::model::pci::Bar;

/// The flag that the kernel sets in a resource to which it could not give an address
/// (`IORESOURCE_UNSET` of linux/ioport.h).
const RESOURCE_UNSET: u64 = 0x2000_0000;

/// How many of the rows of `resource` are base address registers; the ROM and bridge windows
/// follow.
const BAR_COUNT: u8 = 6;

/// Reads a hexadecimal attribute such as `vendor` (`0x10de`) or `class` (`0x030200`).
pub fn hexadecimal(text: &str) -> Option<u32> {
    u32::from_str_radix(text.trim().strip_prefix("0x")?, 16).ok()
}

/// Reads a hexadecimal attribute of 16 bits.
pub fn identifier(text: &str) -> Option<u16> {
    u16::try_from(hexadecimal(text)?).ok()
}

/// Reads `current_link_speed` or `max_link_speed` in GT/s. A link that is down says `Unknown`,
/// which is 0 here.
pub fn link_speed_gts(text: &str) -> Option<f32> {
    let text = text.trim();
    if text.starts_with("Unknown") {
        return Some(0.0);
    }
    let (number, _) = text.split_once(" GT/s")?;
    number.parse().ok().filter(|speed: &f32| speed.is_finite() && *speed >= 0.0)
}

/// Reads `current_link_width` or `max_link_width`, in lanes; 0 for a link that is down.
pub fn link_width(text: &str) -> Option<u8> {
    text.trim().trim_start_matches('x').parse().ok()
}

/// The last component of a link's target: the driver's name of `driver`, the group's number of
/// `iommu_group`.
pub fn link_name(target: &str) -> Option<&str> {
    target.trim().rsplit('/').next().filter(|name| !name.is_empty())
}

/// Reads `resource`: `start end flags` a row, one row a register. Registers that are not in use
/// are left out.
pub fn bars(text: &str) -> Parsed<Vec<Bar>> {
    let mut parsed = Parsed::<Vec<Bar>>::default();
    for ((line, content), index) in numbered(text).zip(0..BAR_COUNT) {
        match row(content) {
            Some((0, 0, 0)) => {}
            Some((start, end, flags)) => parsed.value.push(bar(index, start, end, flags)),
            None => parsed.complain(line, "not a `start end flags` row of a PCI resource"),
        }
    }
    parsed
}

fn row(content: &str) -> Option<(u64, u64, u64)> {
    let mut words = content.split_whitespace().map(|word| {
        word.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok())
    });
    Some((words.next()??, words.next()??, words.next()??))
}

fn bar(index: u8, start: u64, end: u64, flags: u64) -> Bar {
    let size_bytes = if end > start { (end - start).saturating_add(1) } else { 0 };
    let start = if flags & RESOURCE_UNSET == 0 { start } else { 0 };
    Bar { index, start, size_bytes }
}

/// What `uevent` tells of a device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Uevent {
    /// The driver bound to it; `None` when the file has no such line, and so no driver is bound.
    pub driver: Option<String>,
    /// Class code.
    pub class: Option<u32>,
    /// Vendor and device id.
    pub id: Option<(u16, u16)>,
    /// Subsystem vendor and device id.
    pub subsystem: Option<(u16, u16)>,
}

/// Reads `uevent`: `KEY=value` lines, numbers in hexadecimal without `0x`.
pub fn uevent(text: &str) -> Parsed<Uevent> {
    let mut parsed = Parsed::<Uevent>::default();
    for (line, content) in numbered(text) {
        match content.split_once('=') {
            Some(("DRIVER", name)) => parsed.value.driver = Some(name.to_owned()),
            Some(("PCI_CLASS", class)) => parsed.value.class = u32::from_str_radix(class, 16).ok(),
            Some(("PCI_ID", pair)) => parsed.value.id = id_pair(pair),
            Some(("PCI_SUBSYS_ID", pair)) => parsed.value.subsystem = id_pair(pair),
            Some(_) => {}
            None if content.trim().is_empty() => {}
            None => parsed.complain(line, "not a `KEY=value` line of uevent"),
        }
    }
    parsed
}

/// The sum at the end of `aer_dev_correctable` and its like: `TOTAL_ERR_COR 12`.
pub fn aer_total(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with("TOTAL_ERR_"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

fn id_pair(text: &str) -> Option<(u16, u16)> {
    let (vendor, device) = text.split_once(':')?;
    Some((u16::from_str_radix(vendor, 16).ok()?, u16::from_str_radix(device, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!(identifier("0x10de\n"), Some(0x10de));
        assert_eq!(aer_total("RxErr 3\nBadTLP 1\nTOTAL_ERR_COR 4\n"), Some(4));
        assert_eq!(aer_total("RxErr 3\n"), None);
        assert_eq!(hexadecimal("0x030200\n"), Some(0x03_02_00));
        assert_eq!(identifier("10de"), None);
        assert_eq!(link_speed_gts("32.0 GT/s PCIe\n"), Some(32.0));
        assert_eq!(link_speed_gts("8 GT/s\n"), Some(8.0));
        assert_eq!(link_speed_gts("Unknown speed\n"), Some(0.0));
        assert_eq!(link_speed_gts("NaN GT/s\n"), None);
        assert_eq!(link_width("16\n"), Some(16));
        assert_eq!(link_name("../../../../bus/pci/drivers/vfio-pci\n"), Some("vfio-pci"));
        assert_eq!(link_name(""), None);
    }

    #[test]
    fn registers_with_and_without_an_address() {
        let parsed = bars(
            "0x00000000de000000 0x00000000deffffff 0x0000000000040200\n\
             0x0000220000000000 0x00002217ffffffff 0x000000000014220c\n\
             0x0000000000000000 0x0000000000000000 0x0000000000000000\n\
             0x0000000000000000 0x0000000001ffffff 0x000000002014220c\n\
             0x0000000000000000 0x0000000000000000 0x0000000000000000\n\
             0x0000000000000000 0x0000000000000000 0x0000000000000000\n\
             0x00000000df000000 0x00000000df07ffff 0x0000000000046200\n",
        );
        assert_eq!(parsed.complaints, []);
        assert_eq!(
            parsed.value,
            [
                Bar { index: 0, start: 0xde00_0000, size_bytes: 16 << 20 },
                Bar { index: 1, start: 0x2200_0000_0000, size_bytes: 96 << 30 },
                Bar { index: 3, start: 0, size_bytes: 32 << 20 },
            ]
        );
        let extreme = bars("0x0000000000000000 0xffffffffffffffff 0x1\ngarbage\n");
        assert_eq!(extreme.value[0].size_bytes, u64::MAX);
        assert_eq!(extreme.complaints.len(), 1);
    }

    #[test]
    fn uevent_with_and_without_a_driver() {
        let bound = uevent(
            "DRIVER=nvidia\nPCI_CLASS=30200\nPCI_ID=10DE:2335\nPCI_SUBSYS_ID=10DE:18BE\n\
             PCI_SLOT_NAME=0000:00:06.0\nMODALIAS=pci:v000010DEd00002335\n",
        );
        assert_eq!(bound.complaints, []);
        assert_eq!(bound.value.driver.as_deref(), Some("nvidia"));
        assert_eq!(bound.value.id, Some((0x10de, 0x2335)));
        assert_eq!(bound.value.class, Some(0x03_02_00));
        assert_eq!(uevent("PCI_ID=10DE:2335\n").value.driver, None);
    }
}
