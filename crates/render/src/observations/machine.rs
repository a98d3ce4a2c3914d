//! The bus, the machine, the kernel modules, the firmware, the kernel log.

use facts::Layer;
use facts::model::host::ConfigValue;
use facts::model::module::{GpuInformation, ModuleFile, NvrmVersion};
use facts::model::pci::{Bar, Link, PciDevice};
use facts::model::{Firmware, Host, KernelLog, Module, Pci};

use super::listing::{Listing, known_parts};

pub(super) fn pci(pci: &Pci, listing: &mut Listing) {
    listing.whole_list(Layer::Pci, "devices", &pci.devices);
    for (number, device) in pci.devices.value().into_iter().flatten().enumerate() {
        let name = device.address.map_or(format!("device[{number}]"), |at| at.to_string());
        if let Some(origin) = pci.devices.origin() {
            listing.value(Layer::Pci, name.clone(), identity(device), origin);
        }
        let field = |field: &str| format!("{name} {field}");
        listing.observed(Layer::Pci, field("driver"), &device.driver, Clone::clone);
        listing.observed(Layer::Pci, field("link"), &device.link, link);
        listing.observed(Layer::Pci, field("bars"), &device.bars, |bars| join(bars, bar));
        listing.observed(Layer::Pci, field("power_state"), &device.power_state, Clone::clone);
        listing.observed(Layer::Pci, field("runtime_status"), &device.runtime_status, Clone::clone);
        listing.observed(Layer::Pci, field("numa_node"), &device.numa_node, ToString::to_string);
        listing.observed(Layer::Pci, field("iommu_group"), &device.iommu_group, u32::to_string);
    }
}

fn identity(device: &PciDevice) -> String {
    let ids = device.device.map(|id| format!("{:04x}:{id:04x}", device.vendor));
    let subsystem = device.subsystem.map(|(vendor, id)| format!("{vendor:04x}:{id:04x}"));
    known_parts(&[
        ("", ids),
        ("class", device.class.map(|class| format!("{class:06x}"))),
        ("subsystem", subsystem),
        ("", device.name.clone()),
    ])
}

fn link(link: &Link) -> String {
    format!(
        "{} GT/s x{} of {} GT/s x{}",
        link.current_gts, link.current_width, link.max_gts, link.max_width
    )
}

fn bar(bar: &Bar) -> String {
    format!("BAR{} {:#x} {} MiB", bar.index, bar.start, bar.size_bytes >> 20)
}

pub(super) fn host(host: &Host, listing: &mut Listing) {
    listing.shown(Layer::Platform, "hostname", &host.hostname);
    listing.shown(Layer::Platform, "os", &host.os);
    listing.shown(Layer::Platform, "proxmox", &host.proxmox);
    listing.shown(Layer::Platform, "arch", &host.arch);
    listing.shown(Layer::Platform, "hypervisor", &host.hypervisor);
    listing.shown(Layer::Platform, "uptime_s", &host.uptime_s);
    listing.yes_no(Layer::Platform, "wsl", &host.wsl);
    listing.yes_no(Layer::Platform, "tegra", &host.tegra);
    listing.shown(Layer::Kernel, "release", &host.kernel);
    listing.observed(Layer::Kernel, "cmdline", &host.cmdline, |words| words.join(" "));
    listing.map(Layer::Kernel, "CONFIG_", &host.config, config);
    listing.yes_no(Layer::Kernel, "secure_boot", &host.secure_boot);
    listing.observed(Layer::Sandbox, "container", &host.container, |kind| kind.name().to_owned());
}

fn config(value: &ConfigValue) -> String {
    match value {
        ConfigValue::Yes => "y".to_owned(),
        ConfigValue::Module => "m".to_owned(),
        ConfigValue::No => "not set".to_owned(),
        ConfigValue::Text(text) => text.clone(),
    }
}

pub(super) fn module(module: &Module, listing: &mut Listing) {
    listing.observed(Layer::Module, "nvrm", &module.nvrm, nvrm);
    listing.shown(Layer::Module, "version_query", &module.version_query);
    listing.map(Layer::Module, "loaded ", &module.loaded, |loaded| {
        let users = loaded.use_count.map(|count| count.to_string());
        let parts = known_parts(&[("", loaded.state.clone()), ("users", users)]);
        if parts.is_empty() { "loaded".to_owned() } else { parts }
    });
    listing.map(Layer::Module, "major ", &module.majors, |major| major.major.to_string());
    for (name, seen) in &module.params {
        listing.value(Layer::Module, format!("NVreg_{name}"), &seen.value, &seen.origin);
    }
    listing.yes_no(Layer::Uvm, "uvm_disable_hmm", &module.uvm_disable_hmm);
    for (name, seen) in &module.uvm_params {
        listing.value(Layer::Uvm, name.clone(), &seen.value, &seen.origin);
    }
    for (name, option, origin) in &module.options {
        listing.value(Layer::Module, format!("options {name}"), option, origin);
    }
    listing.whole_list(Layer::Module, "on_disk", &module.on_disk);
    for file in module.on_disk.value().into_iter().flatten() {
        listing.value(Layer::Module, file.path.clone(), module_file(file), &file.origin);
    }
    listing.list(Layer::Module, "gpu", &module.gpus, gpu_information);
    listing.observed(Layer::Module, "card_info", &module.card_info, |cards| {
        join(cards, ToString::to_string)
    });
}

fn nvrm(nvrm: &NvrmVersion) -> String {
    let flavour = nvrm.flavour.map(|flavour| flavour.name().to_owned());
    known_parts(&[("", Some(nvrm.version.to_string())), ("", flavour)])
}

fn module_file(file: &ModuleFile) -> String {
    known_parts(&[
        ("version", file.version.as_ref().map(ToString::to_string)),
        ("", file.flavour.map(|flavour| flavour.name().to_owned())),
        ("vermagic", file.vermagic.clone()),
    ])
}

fn gpu_information(gpu: &GpuInformation) -> String {
    known_parts(&[
        ("", gpu.address.map(|address| address.to_string())),
        ("", gpu.model.clone()),
        ("minor", gpu.minor.map(|minor| minor.to_string())),
        ("GSP", gpu.gpu_firmware.clone()),
        ("VBIOS", gpu.video_bios.clone()),
        ("irq", gpu.irq.map(|irq| irq.to_string())),
        ("excluded", gpu.excluded.map(|excluded| excluded.to_string())),
        ("", gpu.uuid.clone()),
    ])
}

pub(super) fn firmware(firmware: &Firmware, listing: &mut Listing) {
    listing.list(Layer::Firmware, "running", &firmware.running, ToString::to_string);
    for (number, origin) in firmware.not_running.iter().enumerate() {
        listing.value(Layer::Firmware, format!("not_running[{number}]"), "N/A", origin);
    }
    listing.whole_list(Layer::Firmware, "files", &firmware.files);
    for file in firmware.files.value().into_iter().flatten() {
        let families = file.families.value().map(|families| families.join(" "));
        let text = known_parts(&[
            ("version", file.version.as_ref().map(ToString::to_string)),
            ("carries", families),
            ("faults:", (!file.faults.is_empty()).then(|| file.faults.join("; "))),
        ]);
        listing.value(Layer::Firmware, file.path.clone(), text, &file.origin);
    }
}

pub(super) fn log(log: &KernelLog, listing: &mut Listing) {
    listing.observed(Layer::Kernel, "log", &log.read, |first| match first {
        Some(stamp) => format!("read, from {stamp:.3} s on"),
        None => "read".to_owned(),
    });
    for event in &log.events {
        listing.value(
            Layer::Kernel,
            format!("log {}", event.signature),
            &event.text,
            &event.origin,
        );
    }
    for (frame, origin) in &log.frames {
        listing.value(Layer::Kernel, "log frame", frame, origin);
    }
}

fn join<T>(values: &[T], show: impl Fn(&T) -> String) -> String {
    values.iter().map(show).collect::<Vec<_>>().join(", ")
}
