//! `lspci` becomes devices of the bus.

use crate::extract::places::Places;
use crate::model::Facts;
use crate::model::pci::PciDevice;
use crate::observed::{Observed, Origin, Seen};
use crate::parse::At;
use crate::parse::lspci::{self, LspciDevice};
use crate::raw::RawItem;

/// Enters a listing. A whole one that holds no device of NVIDIA shows that there is none.
pub fn apply_lspci(item: &RawItem, facts: &mut Facts) {
    let Some(text) = item.text() else { return };
    let places = Places::new(item, &text);
    let listing = lspci::parse(&text).value;
    for At { line, value: (address, flags) } in listing.acs {
        let origin = places.at(line);
        facts.pci.access_control.push(Seen::new((address, flags), origin));
    }
    if listing.devices.is_empty() {
        let shown =
            item.filter.as_deref().is_some_and(|filter| filter.eq_ignore_ascii_case("nvidia"));
        if listing.device_count > 0 && !item.partial || shown {
            facts.pci.devices.or_better(Observed::Absent(item.silence()));
        }
        return;
    }
    facts.mentions_gpu = true;
    for At { line, value } in listing.devices {
        if let Some(At { line, .. }) = &value.lost {
            facts.pci.lost.push(Seen::new(value.device.address, places.at(*line)));
        }
        enter(located(value, item), places.at(line), facts);
    }
}

/// The device with origins of the item in the place of the parser's bare lines.
fn located(found: LspciDevice, item: &RawItem) -> PciDevice {
    let mut device = found.device;
    locate(&mut device.driver, item);
    locate(&mut device.bars, item);
    locate(&mut device.link, item);
    locate(&mut device.numa_node, item);
    locate(&mut device.iommu_group, item);
    device
}

fn locate<T>(observed: &mut Observed<T>, item: &RawItem) {
    if let Observed::Seen(seen) = observed {
        seen.origin = item.origin_at(seen.origin.line, &seen.origin.excerpt);
    }
}

/// Enters a device, or adds to what is known of the one at its address.
fn enter(device: PciDevice, origin: Origin, facts: &mut Facts) {
    let Observed::Seen(Seen { value: devices, .. }) = &mut facts.pci.devices else {
        facts.pci.devices = Observed::seen(vec![device], origin);
        return;
    };
    match devices.iter_mut().find(|known| known.address == device.address) {
        Some(known) => merge(known, device),
        None => devices.push(device),
    }
}

/// What sysfs told stays; lspci adds the name and what is missing.
fn merge(known: &mut PciDevice, device: PciDevice) {
    known.device = known.device.or(device.device);
    known.class = known.class.or(device.class);
    known.subsystem = known.subsystem.or(device.subsystem);
    known.name = known.name.take().or(device.name);
    known.driver.or_better(device.driver);
    known.bars.or_better(device.bars);
    known.link.or_better(device.link);
    known.numa_node.or_better(device.numa_node);
    known.iommu_group.or_better(device.iommu_group);
}
