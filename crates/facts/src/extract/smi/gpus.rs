//! One GPU that several outputs describe is one GPU.

use crate::model::Facts;
use crate::model::nvml::NvmlGpu;
use crate::observed::{Origin, Seen};

/// Enters what one output tells of a GPU: into the GPU that it is, or as a new one.
///
/// Indices decide where both are known, then addresses, then UUIDs; reports with masked UUIDs,
/// equal for all GPUs, are common. What was known stays unless the later output says otherwise.
pub fn enter_gpu(gpu: NvmlGpu, origin: Origin, facts: &mut Facts) {
    facts.mentions_gpu = true;
    match facts.nvml.gpus.iter_mut().find(|known| same(&known.value, &gpu)) {
        Some(known) => merge(&mut known.value, gpu),
        None => facts.nvml.gpus.push(Seen::new(gpu, origin)),
    }
}

fn same(known: &NvmlGpu, gpu: &NvmlGpu) -> bool {
    fn equal<T: PartialEq>(a: Option<&T>, b: Option<&T>) -> Option<bool> {
        Some(a? == b?)
    }
    equal(known.index.as_ref(), gpu.index.as_ref())
        .or_else(|| equal(known.address.as_ref(), gpu.address.as_ref()))
        .or_else(|| equal(known.uuid.as_ref(), gpu.uuid.as_ref()))
        .unwrap_or(false)
}

fn merge(known: &mut NvmlGpu, gpu: NvmlGpu) {
    // The table cuts long names; a longer spelling of the same name is the better one.
    let cut = known.name.as_deref().is_some_and(|name| name.ends_with("..."));
    let new_cut = gpu.name.as_deref().is_some_and(|name| name.ends_with("..."));
    if gpu.name.is_some() && (known.name.is_none() || cut || !new_cut) {
        known.name = gpu.name;
    }
    later(&mut known.index, gpu.index);
    later(&mut known.uuid, gpu.uuid);
    later(&mut known.address, gpu.address);
    later(&mut known.device_id, gpu.device_id);
    later(&mut known.minor, gpu.minor);
    later(&mut known.architecture, gpu.architecture);
    later(&mut known.compute_mode, gpu.compute_mode);
    later(&mut known.mig, gpu.mig);
    later(&mut known.addressing_mode, gpu.addressing_mode);
    later(&mut known.recovery_action, gpu.recovery_action);
    later(&mut known.fabric_state, gpu.fabric_state);
    later(&mut known.fabric_status, gpu.fabric_status);
    later(&mut known.gsp_version, gpu.gsp_version);
    later(&mut known.persistence, gpu.persistence);
    later(&mut known.memory_mib, gpu.memory_mib);
    later(&mut known.virtualization, gpu.virtualization);
    later(&mut known.license, gpu.license);
    known.health.update(&gpu.health);
}

fn later<T>(known: &mut Option<T>, new: Option<T>) {
    if new.is_some() {
        *known = new;
    }
}
