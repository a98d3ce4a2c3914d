//! The machine in a few words.

use std::collections::BTreeMap;

use facts::Facts;
use facts::model::host::ContainerKind;

/// What is known of the machine as a whole; what is not known is left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Machine {
    /// Host name.
    pub hostname: Option<String>,
    /// Operating system, with Proxmox VE named where it is one.
    pub os: Option<String>,
    /// Kernel release.
    pub kernel: Option<String>,
    /// Architecture.
    pub arch: Option<String>,
    /// The kind of container, when in one: `LXC 129, privileged`.
    pub container: Option<String>,
    /// The hypervisor, when in a guest.
    pub hypervisor: Option<String>,
    /// GPU models with their numbers, in order of name, without the maker's name.
    pub gpus: Vec<(String, usize)>,
}

/// Reads the machine's description out of the facts.
pub fn machine(facts: &Facts) -> Machine {
    let host = &facts.host;
    Machine {
        hostname: host.hostname.value().cloned(),
        os: operating_system(facts),
        kernel: host.kernel.value().map(ToString::to_string),
        arch: host.arch.value().cloned(),
        container: container(facts),
        hypervisor: host.hypervisor.value().filter(|name| *name != "none").cloned(),
        gpus: gpus(facts),
    }
}

fn operating_system(facts: &Facts) -> Option<String> {
    match facts.host.proxmox.value() {
        Some(version) if version.is_empty() => Some("Proxmox VE".to_owned()),
        Some(version) => Some(format!("Proxmox VE {version}")),
        None => facts.host.os.value().cloned(),
    }
}

fn container(facts: &Facts) -> Option<String> {
    let kind = facts.host.container.value().filter(|kind| **kind != ContainerKind::None)?;
    let mut words = kind.name().to_owned();
    if let Some(id) = lxc_id(facts) {
        words.push(' ');
        words.push_str(&id);
    }
    if let Some(maps) = facts.sandbox.uid_map.value() {
        let privileged = maps.iter().any(|range| range.inside == 0 && range.outside == 0);
        words.push_str(if privileged { ", privileged" } else { ", unprivileged" });
    }
    Some(words)
}

/// The number of an LXC container as it stands in the cgroup path, `…/lxc/129/…`.
fn lxc_id(facts: &Facts) -> Option<String> {
    let lines = facts.sandbox.cgroups.value()?;
    lines.iter().find_map(|line| {
        let (_, rest) = line.split_once("/lxc/")?;
        let id = rest.split('/').next()?;
        let numeric = !id.is_empty() && id.len() <= 9 && id.bytes().all(|b| b.is_ascii_digit());
        numeric.then(|| id.to_owned())
    })
}

/// Models from the best source there is: NVML, CUDA, the module, the bus.
fn gpus(facts: &Facts) -> Vec<(String, usize)> {
    let nvml = facts.nvml.gpus.iter().filter_map(|gpu| gpu.value.name.clone());
    let cuda = facts.cuda.devices.iter().filter_map(|gpu| gpu.value.name.clone());
    let module = facts.module.gpus.iter().filter_map(|gpu| gpu.value.model.clone());
    let bus = facts.pci.gpus().map(bus_name);
    let sources: [Vec<String>; 4] =
        [nvml.collect(), cuda.collect(), module.collect(), bus.collect()];
    let names = sources.into_iter().find(|names| !names.is_empty()).unwrap_or_default();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for name in names {
        let short = name.trim().trim_start_matches("NVIDIA ").to_owned();
        *counts.entry(short).or_default() += 1;
    }
    counts.into_iter().collect()
}

fn bus_name(gpu: &facts::model::pci::PciDevice) -> String {
    let known = gpu.device.and_then(nvabi::pci_id::by_device);
    match (known.and_then(|known| known.product_name), &gpu.name, gpu.device) {
        (Some(product), ..) => product.to_owned(),
        (None, Some(name), _) => name.clone(),
        (None, None, Some(device)) => format!("GPU 10de:{device:04x}"),
        (None, None, None) => "GPU of an unknown model".to_owned(),
    }
}
