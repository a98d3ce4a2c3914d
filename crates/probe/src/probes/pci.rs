//! NVIDIA's devices on the PCI bus, from sysfs.

use super::Options;
use super::reader::Reader;
use crate::child::report::Report;

const DEVICES: &str = "/sys/bus/pci/devices";
/// NVIDIA's vendor id.
const VENDOR: &str = "0x10de";
/// Most devices that are described: a baseboard has 8 GPUs, 6 switches and their functions.
const DEVICES_LIMIT: usize = 128;

/// Attributes that the kernel has at hand; reading them touches no device.
const CALM: [&str; 19] = [
    "vendor",
    "device",
    "class",
    "subsystem_vendor",
    "subsystem_device",
    "revision",
    "resource",
    "enable",
    "irq",
    "numa_node",
    "power_state",
    "power/runtime_status",
    "power/control",
    "driver_override",
    "d3cold_allowed",
    "aer_dev_fatal",
    "aer_dev_nonfatal",
    "aer_dev_correctable",
    "uevent",
];
/// Attributes that read the device's configuration space, which wakes a suspended device first and
/// can hang there.
const WAKING: [&str; 5] = [
    "current_link_speed",
    "current_link_width",
    "max_link_speed",
    "max_link_width",
    "config",
];
const LINKS: [&str; 3] = ["driver", "iommu_group", "physfn"];

/// Lists the bus and describes NVIDIA's devices on it.
pub(super) fn run(report: &mut Report, options: &Options) {
    let reader = Reader::new(&options.root);
    let names = reader.listing(report, DEVICES);
    let is_nvidia = |name: &&String| {
        let vendor = reader.text(&format!("{DEVICES}/{name}/vendor"));
        vendor.is_some_and(|vendor| vendor.trim() == VENDOR)
    };
    let devices: Vec<String> = names
        .iter()
        .filter(is_nvidia)
        .take(DEVICES_LIMIT)
        .map(|name| format!("{DEVICES}/{name}"))
        .collect();
    for device in &devices {
        describe(report, &reader, device);
    }
    for device in &devices {
        let status = reader.text(&format!("{device}/power/runtime_status")).unwrap_or_default();
        if status.trim() == "suspended" {
            continue;
        }
        for name in WAKING {
            reader.risky_file(report, &format!("{device}/{name}"));
        }
    }
}

fn describe(report: &mut Report, reader: &Reader, device: &str) {
    reader.link(report, device);
    for name in LINKS {
        reader.link(report, &format!("{device}/{name}"));
    }
    for name in CALM {
        let path = format!("{device}/{name}");
        // Attributes differ between kernels; one that is missing tells nothing about the device.
        if reader.metadata(&path).is_some() {
            reader.file(report, &path);
        }
    }
    let group = std::fs::read_link(reader.place(device).join("iommu_group")).ok();
    let group = group.as_deref().and_then(|path| path.file_name()?.to_str());
    if let Some(group) = group {
        reader.file(report, &format!("/sys/kernel/iommu_groups/{group}/type"));
    }
}
