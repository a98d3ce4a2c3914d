//! /proc/driver/nvidia.

use super::reading::{Learn, Reading};
use crate::model::Facts;
use crate::model::module::GpuInformation;
use crate::model::pci::PciAddress;
use crate::observed::{Observed, Seen, Why};
use crate::parse::proc_nvidia;

/// `version`: the loaded module's version and flavour.
pub(super) fn version(reading: &Reading, facts: &mut Facts) {
    if let Some(other) = reading.without_bytes() {
        facts.module.nvrm.or_later(other);
        return;
    }
    let Some(text) = reading.text() else { return };
    let parsed = proc_nvidia::version(text.as_str());
    let mut lines = text.lines();
    match parsed.value.nvrm {
        Some(nvrm) => {
            if let Some(arch) = parsed.value.arch {
                facts.host.arch.learn(lines.observed(arch));
            }
            facts.module.nvrm.or_later(lines.observed(nvrm));
        }
        // The line may be missing from a part, or from an empty file of a masked /proc.
        None if parsed.complaints.is_empty() => {}
        None => {
            let unparsed = Why::Unparsed(reading.item.origin());
            facts.module.nvrm.learn(Observed::Unknown(unparsed));
        }
    }
    reading.complain(&parsed.complaints, facts);
}

/// `params`: the NVreg values in force.
pub(super) fn params(reading: &Reading, facts: &mut Facts) {
    let Some(text) = reading.text() else { return };
    let parsed = proc_nvidia::params(text.as_str());
    let mut lines = text.lines();
    for at in parsed.value {
        let Seen { value: (name, value), origin } = lines.seen(at);
        facts.module.params.insert(name, Seen::new(value, origin));
    }
    reading.complain(&parsed.complaints, facts);
}

/// `registry`: settings of the driver's registry that are not NVreg parameters, under their own
/// names.
pub(super) fn registry(reading: &Reading, facts: &mut Facts) {
    let Some(text) = reading.text() else { return };
    let parsed = proc_nvidia::registry(text.as_str());
    let mut lines = text.lines();
    for at in parsed.value.into_iter().filter(|at| !at.value.1.is_empty()) {
        let Seen { value: (name, value), origin } = lines.seen(at);
        facts.module.params.entry(name).or_insert(Seen::new(value, origin));
    }
    reading.complain(&parsed.complaints, facts);
}

/// `gpus/BDF/registry`: nearly always empty; only what cannot be read is kept.
pub(super) fn gpu_registry(reading: &Reading, facts: &mut Facts) {
    let Some(text) = reading.text() else { return };
    reading.complain(&proc_nvidia::registry(text.as_str()).complaints, facts);
}

/// The folder `gpus`: which devices the module has attached to.
pub(super) fn gpu_folders(reading: &Reading, facts: &mut Facts) {
    let folders = reading.listing().map(|names| {
        names.iter().filter_map(|name| PciAddress::parse(name)).collect::<Vec<PciAddress>>()
    });
    facts.module.gpu_folders.or_later(folders);
}

/// `gpus/BDF/information`.
pub(super) fn information(reading: &Reading, facts: &mut Facts) {
    let Some(text) = reading.text() else { return };
    let mut parsed = proc_nvidia::information(text.as_str());
    let gpu = &mut parsed.value;
    gpu.address = gpu.address.or_else(|| address(reading));
    let known = gpu.model.is_some() || gpu.minor.is_some() || gpu.uuid.is_some();
    if known {
        let origin = reading.item.origin_at(1, text.as_str().lines().next().unwrap_or(""));
        let same = |seen: &&mut Seen<_>| same_gpu(&seen.value, gpu);
        let seen = Seen::new(gpu.clone(), origin);
        match facts.module.gpus.iter_mut().find(same) {
            Some(earlier) => *earlier = seen,
            None => facts.module.gpus.push(seen),
        }
    }
    reading.complain(&parsed.complaints, facts);
}

/// The same GPU read again, later in the input. GPUs without an address are told apart by minor.
fn same_gpu(one: &GpuInformation, other: &GpuInformation) -> bool {
    match (one.address, other.address) {
        (Some(one), Some(other)) => one == other,
        _ => one.minor.is_some() && one.minor == other.minor,
    }
}

/// `gpus/BDF/power`.
pub(super) fn power(reading: &Reading, facts: &mut Facts) {
    let (Some(text), Some(address)) = (reading.text(), address(reading)) else {
        return;
    };
    let parsed = proc_nvidia::power(text.as_str());
    let mut lines = text.lines();
    let values = facts.module.gpu_power.entry(address).or_default();
    for at in parsed.value {
        let Seen { value: (name, value), origin } = lines.seen(at);
        values.insert(name, Seen::new(value, origin));
    }
    reading.complain(&parsed.complaints, facts);
}

/// The address in /proc/driver/nvidia/gpus/BDF/….
fn address(reading: &Reading) -> Option<PciAddress> {
    PciAddress::parse(reading.component(4)?)
}
