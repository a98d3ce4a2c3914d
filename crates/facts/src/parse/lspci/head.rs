//! The first line of a device: `01:00.0 3D controller [0302]: NVIDIA Corporation GH100 [H200] [10de:2335] (rev a1)`.

use crate::model::pci::{PciAddress, PciDevice, VENDOR_NVIDIA};
use crate::observed::Observed;

/// A first line.
pub(super) struct Head {
    pub(super) device: PciDevice,
    pub(super) lost: bool,
}

/// Reads a first line.
pub(super) fn parse(line: &str) -> Option<Head> {
    let (slot, rest) = line.split_once(' ')?;
    let function = slot.rsplit_once('.').is_some_and(|(_, function)| function.len() == 1);
    let address = PciAddress::parse(slot).filter(|_| function)?;
    let (rest, revision) = match rest.rsplit_once(" (rev ") {
        Some((rest, revision)) => (rest, revision.split(')').next()),
        None => (rest, None),
    };
    let mut device = empty(address);
    match rest.split_once(": ") {
        Some((class, ids)) if numeric(class).is_some() => read_numeric(class, ids, &mut device)?,
        Some((class, name)) => read_named(class, name, &mut device),
        None => return None,
    }
    Some(Head { device, lost: revision == Some("ff") })
}

fn empty(address: PciAddress) -> PciDevice {
    PciDevice {
        address: Some(address),
        vendor: 0,
        device: None,
        class: None,
        subsystem: None,
        name: None,
        driver: Observed::default(),
        bars: Observed::default(),
        link: Observed::default(),
        power_state: Observed::default(),
        runtime_status: Observed::default(),
        link_errors: Observed::default(),
        numa_node: Observed::default(),
        iommu_group: Observed::default(),
    }
}

/// Four hexadecimal digits.
fn numeric(text: &str) -> Option<u16> {
    (text.len() == 4).then(|| u16::from_str_radix(text, 16).ok())?
}

/// `0302: 10de:2335` of `lspci -n`.
fn read_numeric(class: &str, ids: &str, device: &mut PciDevice) -> Option<()> {
    let (vendor, id) = id_pair(ids.split_ascii_whitespace().next()?)?;
    device.class = numeric(class).map(|class| u32::from(class) << 8);
    device.vendor = vendor;
    device.device = Some(id);
    Some(())
}

/// `10de:2335`.
pub(super) fn id_pair(text: &str) -> Option<(u16, u16)> {
    let (vendor, id) = text.split_once(':')?;
    Some((numeric(vendor)?, numeric(id)?))
}

fn read_named(class: &str, name: &str, device: &mut PciDevice) {
    let (class_words, class_code) = split_brackets(class);
    device.class = class_code
        .and_then(numeric)
        .map(|code| u32::from(code) << 8)
        .or_else(|| class_of_words(class_words));
    let (name, ids) = split_brackets(name);
    match ids.and_then(id_pair) {
        Some((vendor, id)) => {
            device.vendor = vendor;
            device.device = Some(id);
        }
        None if name.starts_with("NVIDIA Corporation")
            || name.starts_with("nVidia Corporation") =>
        {
            device.vendor = VENDOR_NVIDIA;
            device.device = unnamed_device(name);
        }
        None => {}
    }
    device.name = Some(short_name(name));
}

/// The text and what stands in the brackets at its end, when that is an id.
fn split_brackets(text: &str) -> (&str, Option<&str>) {
    let inner = text.trim_end().strip_suffix(']').and_then(|text| text.rsplit_once('['));
    match inner {
        Some((head, ids)) if numeric(ids).is_some() || id_pair(ids).is_some() => {
            (head.trim_end(), Some(ids))
        }
        _ => (text.trim_end(), None),
    }
}

/// `NVIDIA Corporation Device 2bb5`: an id that this lspci's list has no name for.
fn unnamed_device(name: &str) -> Option<u16> {
    let (_, id) = name.split_once(" Device ")?;
    numeric(id.split_ascii_whitespace().next()?)
}

/// The product's name without the vendor's.
fn short_name(name: &str) -> String {
    for vendor in ["NVIDIA Corporation ", "nVidia Corporation "] {
        if let Some(rest) = name.strip_prefix(vendor) {
            return rest.to_owned();
        }
    }
    name.to_owned()
}

/// The names that pci.ids gives the classes that NVIDIA's devices have.
fn class_of_words(words: &str) -> Option<u32> {
    const CLASSES: [(&str, u32); 8] = [
        ("VGA compatible controller", 0x03_00_00),
        ("3D controller", 0x03_02_00),
        ("Display controller", 0x03_80_00),
        ("Audio device", 0x04_03_00),
        ("Bridge", 0x06_80_00),
        ("USB controller", 0x0c_03_00),
        ("Serial bus controller", 0x0c_80_00),
        ("Infiniband controller", 0x02_07_00),
    ];
    CLASSES.iter().find(|(name, _)| words == *name).map(|(_, class)| *class)
}
