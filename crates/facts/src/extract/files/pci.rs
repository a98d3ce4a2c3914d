//! The PCI bus, put together from many attribute files of sysfs.

use std::collections::BTreeMap;

use super::container::is_gvisor;
use super::reading::{Learn, Reading};
use crate::model::Facts;
use crate::model::pci::{Link, LinkErrors, PciAddress, PciDevice, VENDOR_NVIDIA};
use crate::observed::{Observed, Origin, Seen, Why};
use crate::parse::pci_sysfs as parse;
use crate::raw::{RawItem, RawSet};

/// Where the kernel lists all devices.
const DEVICES: &str = "/sys/bus/pci/devices";

/// The attribute files of one device, by their path below its folder.
type Attributes<'a> = BTreeMap<&'a str, &'a RawItem>;

/// NVIDIA's devices on the bus.
///
/// They are `Absent` when the folder of all devices was listed (or is not there, although other
/// files of /sys are) and each device in it is known to be another vendor's. A listed device whose
/// vendor could not be read leaves the answer open. In gVisor, whose /sys holds no bus, nothing is
/// said.
pub fn assemble(raw: &RawSet) -> Observed<Vec<PciDevice>> {
    let devices = attributes(raw);
    let nvidia = devices.iter().filter_map(|(address, attributes)| {
        let found = vendor(attributes)?;
        (found.value == VENDOR_NVIDIA).then(|| (found.origin, device(*address, attributes)))
    });
    let nvidia: Vec<(Origin, PciDevice)> = nvidia.collect();
    if let Some((origin, _)) = nvidia.first() {
        let origin = origin.clone();
        return Observed::seen(nvidia.into_iter().map(|(_, device)| device).collect(), origin);
    }
    raw.files(DEVICES).last().map_or_else(Observed::default, |item| none_found(item, &devices, raw))
}

/// The type of an IOMMU group: `DMA`, `DMA-FQ`, `identity`, `blocked`.
pub(super) fn iommu_type(reading: &Reading, facts: &mut Facts) {
    let Some(group) = reading.component(3).and_then(|group| group.parse::<u32>().ok()) else {
        return;
    };
    let kind = reading.single(|text| Some(text.trim().to_owned()));
    facts.pci.iommu_types.entry(group).or_default().learn(kind);
}

fn attributes(raw: &RawSet) -> BTreeMap<PciAddress, Attributes<'_>> {
    let mut devices: BTreeMap<PciAddress, Attributes> = BTreeMap::new();
    for (rest, item) in raw.below(DEVICES) {
        let Some((folder, file)) = rest.split_once('/') else {
            continue;
        };
        if let Some(address) = PciAddress::parse(folder) {
            devices.entry(address).or_default().insert(file, item);
        }
    }
    devices
}

/// What the listing says when no device of NVIDIA is known.
fn none_found(
    item: &RawItem,
    devices: &BTreeMap<PciAddress, Attributes>,
    raw: &RawSet,
) -> Observed<Vec<PciDevice>> {
    if raw.files("/proc/version").filter_map(RawItem::text).any(|text| is_gvisor(&text)) {
        return Observed::default();
    }
    let listing = Reading::new(item, DEVICES).listing();
    match listing {
        Observed::Seen(Seen { value: names, origin }) => {
            let known = |name: &String| {
                let attributes = PciAddress::parse(name).and_then(|address| devices.get(&address));
                attributes.and_then(vendor).is_some()
            };
            if names.iter().all(known) {
                Observed::Absent(origin)
            } else {
                Observed::Unknown(Why::Unparsed(origin))
            }
        }
        Observed::Absent(origin) => {
            let sysfs = raw.below("/sys").any(|(_, item)| item.bytes().is_some());
            if sysfs { Observed::Absent(origin) } else { Observed::default() }
        }
        other => other.map(|_| Vec::new()),
    }
}

fn vendor(attributes: &Attributes) -> Option<Seen<u16>> {
    let from_file = attributes.get("vendor").and_then(|item| {
        let text = item.text()?;
        Some(Seen::new(parse::identifier(&text)?, item.origin_at(1, &text)))
    });
    from_file.or_else(|| {
        let item = attributes.get("uevent")?;
        let (vendor, device) = parse::uevent(&item.text()?).value.id?;
        Some(Seen::new(vendor, item.origin_at(0, &format!("PCI_ID={vendor:04X}:{device:04X}"))))
    })
}

fn device(address: PciAddress, attributes: &Attributes) -> PciDevice {
    let uevent = attributes.get("uevent").and_then(|item| item.text());
    let uevent = uevent.map(|text| parse::uevent(&text).value).unwrap_or_default();
    let identifier = |name: &str| number(attributes, name, parse::identifier);
    let subsystem = identifier("subsystem_vendor").zip(identifier("subsystem_device"));
    PciDevice {
        address: Some(address),
        vendor: VENDOR_NVIDIA,
        device: identifier("device").or(uevent.id.map(|(_, device)| device)),
        class: number(attributes, "class", parse::hexadecimal).or(uevent.class),
        subsystem: subsystem.or(uevent.subsystem),
        name: None,
        driver: driver(attributes),
        bars: observed(attributes, "resource", |text| {
            let parsed = parse::bars(text);
            parsed.complaints.is_empty().then_some(parsed.value)
        }),
        link: link(attributes),
        power_state: observed(attributes, "power_state", word),
        runtime_status: observed(attributes, "power/runtime_status", word),
        link_errors: link_errors(attributes),
        numa_node: observed(attributes, "numa_node", |text| text.trim().parse().ok()),
        iommu_group: observed(attributes, "iommu_group", |text| {
            parse::link_name(text)?.parse().ok()
        }),
    }
}

fn number<T>(attributes: &Attributes, name: &str, read: fn(&str) -> Option<T>) -> Option<T> {
    read(&attributes.get(name)?.text()?)
}

fn word(text: &str) -> Option<String> {
    let word = text.trim();
    (!word.is_empty()).then(|| word.to_owned())
}

fn observed<T>(
    attributes: &Attributes,
    name: &str,
    read: impl FnOnce(&str) -> Option<T>,
) -> Observed<T> {
    attributes.get(name).map_or_else(Observed::default, |item| Reading::new(item, "").single(read))
}

/// The driver that the link names; where only `uevent` was read, a missing DRIVER line says that
/// none is bound.
fn driver(attributes: &Attributes) -> Observed<String> {
    let link = observed(attributes, "driver", |text| parse::link_name(text).map(str::to_owned));
    if !link.is_unknown() {
        return link;
    }
    let Some(item) = attributes.get("uevent").filter(|item| !item.partial) else {
        return link;
    };
    match Reading::new(item, "").single(|text| Some(parse::uevent(text).value.driver)) {
        Observed::Seen(Seen { value: Some(name), origin }) => Observed::seen(name, origin),
        Observed::Seen(Seen { value: None, origin }) => Observed::Absent(origin),
        other => other.map(|_| String::new()),
    }
}

/// The three counters. Ports without AER have none of the files, and one that cannot be read
/// counts nothing.
fn link_errors(attributes: &Attributes) -> Observed<LinkErrors> {
    let total = |name: &str| observed(attributes, name, parse::aer_total);
    let correctable = total("aer_dev_correctable");
    let nonfatal = total("aer_dev_nonfatal").value().copied().unwrap_or(0);
    let fatal = total("aer_dev_fatal").value().copied().unwrap_or(0);
    correctable.map(|correctable| LinkErrors { correctable, nonfatal, fatal })
}

/// All four attributes, or the state of the first that could not be had.
fn link(attributes: &Attributes) -> Observed<Link> {
    let speed = |name: &str| observed(attributes, name, parse::link_speed_gts);
    let width = |name: &str| observed(attributes, name, parse::link_width);
    let current_gts = speed("current_link_speed");
    let current_width = width("current_link_width");
    let max_gts = speed("max_link_speed");
    let max_width = width("max_link_width");
    let values = (current_gts.value(), current_width.value(), max_gts.value(), max_width.value());
    if let (Some(&now), Some(&lanes), Some(&most), Some(&most_lanes)) = values {
        let link =
            Link { current_gts: now, current_width: lanes, max_gts: most, max_width: most_lanes };
        return current_gts.map(|_| link);
    }
    let speeds = [current_gts, max_gts].into_iter().map(|speed| speed.map(|_| ()));
    let widths = [current_width, max_width].into_iter().map(|width| width.map(|_| ()));
    let failed = speeds.chain(widths).find(|part| !part.is_seen()).unwrap_or_default();
    match failed {
        Observed::Absent(origin) => Observed::Absent(origin),
        Observed::Denied(errno, origin) => Observed::Denied(errno, origin),
        Observed::Unknown(why) => Observed::Unknown(why),
        Observed::Seen(_) => Observed::default(),
    }
}
