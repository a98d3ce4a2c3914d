//! The `nvml` probe.

use crate::model::Facts;
use crate::model::health::GpuHealth;
use crate::model::nvml::{NvmlGpu, NvmlQuery, NvmlResult};
use crate::model::pci::PciAddress;
use crate::model::probe_run::{ProbeCall, ProbeRun};
use crate::model::share::MigDevice;
use crate::observed::{Observed, Origin, Seen};
use crate::version::{CudaVersion, DriverVersion};
use crate::wire::Outcome;

pub(super) fn apply(run: &ProbeRun, facts: &mut Facts) {
    for call in run.calls.iter().filter(|call| call.call.starts_with("nvml")) {
        facts.nvml.queries.push(NvmlQuery {
            query: call.call.clone(),
            device: call.on.as_deref().and_then(|on| on.parse().ok()),
            result: NvmlResult::Code(call.code),
            ms: Some(call.ms),
            origin: call.origin.clone(),
        });
        answer(call, facts);
    }
    unfinished(run, facts);
    if let Some(call) = run.call("load").filter(|call| call.code != 0) {
        let error = call.value.clone().unwrap_or_default();
        facts.library.nvml_load_error = Observed::seen(error, call.origin.clone());
    } else if let (Some(call), Some(path)) = (run.call("load"), run.note("mapped-libnvidia-ml")) {
        let mapped =
            crate::extract::libraries::by_path(path, "libnvidia-ml.so.1", &call.origin, facts);
        facts.library.nvml = Observed::seen(mapped, call.origin.clone());
    }
}

/// The call that was entered and did not return.
fn unfinished(run: &ProbeRun, facts: &mut Facts) {
    let Some((call, on)) = &run.in_flight else { return };
    let result = match run.outcome {
        Outcome::TimedOut if run.was_cut_short() => return,
        Outcome::TimedOut | Outcome::Unkillable => NvmlResult::Hung,
        Outcome::Crashed => NvmlResult::Crashed,
        Outcome::Returned | Outcome::NotStarted | Outcome::Malformed => return,
    };
    if call.starts_with("nvmlInit") {
        facts.nvml.init = Observed::seen(result.clone(), run.origin.clone());
    }
    facts.nvml.queries.push(NvmlQuery {
        query: call.clone(),
        device: on.as_deref().and_then(|on| on.parse().ok()),
        result,
        ms: None,
        origin: run.origin.clone(),
    });
}

fn answer(call: &ProbeCall, facts: &mut Facts) {
    if call.call.starts_with("nvmlInit") {
        facts.nvml.init = Observed::seen(NvmlResult::Code(call.code), call.origin.clone());
        return;
    }
    let Some(value) = call.value.as_deref().filter(|_| call.code == 0) else { return };
    let origin = || call.origin.clone();
    match (call.call.as_str(), &call.on) {
        ("nvmlSystemGetDriverVersion", _) => {
            if let Some(version) = DriverVersion::parse(value) {
                facts.nvml.driver_version = Observed::seen(version, origin());
            }
        }
        ("nvmlSystemGetNVMLVersion", _) => {
            // NVML calls itself "13.590.48.01" or "12.550.163.01": the CUDA major, then the driver.
            let version = value.split_once('.').and_then(|(_, rest)| DriverVersion::parse(rest));
            if let Some(version) = version.or_else(|| DriverVersion::parse(value)) {
                facts.library.reported = Observed::seen(version, origin());
            }
        }
        ("nvmlSystemGetCudaDriverVersion" | "nvmlSystemGetCudaDriverVersion_v2", _) => {
            if let Some(version) = value.parse().ok().and_then(CudaVersion::from_api) {
                facts.nvml.cuda_version = Observed::seen(version, origin());
            }
        }
        ("nvmlDeviceGetCount" | "nvmlDeviceGetCount_v2", _) => {
            if let Ok(count) = value.parse() {
                facts.nvml.count = Observed::seen(count, origin());
            }
        }
        ("nvmlSystemGetConfComputeState", _) => {
            facts.platform.cc_on.or_later(Observed::seen(value == "on", origin()));
        }
        ("nvmlSystemGetConfComputeGpusReadyState", _) => {
            facts.platform.cc_ready.push(Seen::new(value == "ready", origin()));
        }
        ("nvmlDeviceGetMigDeviceHandleByIndex", on) => {
            let gpu = on.as_deref().and_then(|on| on.parse().ok());
            mig_devices(gpu, value, &origin(), facts);
        }
        (name, Some(on)) if name.starts_with("nvmlDevice") => {
            if let Ok(index) = on.parse() {
                describe(gpu(index, call, facts), name, value);
            }
        }
        _ => {}
    }
}

fn gpu<'a>(index: u32, call: &ProbeCall, facts: &'a mut Facts) -> &'a mut NvmlGpu {
    let gpus = &mut facts.nvml.gpus;
    let position =
        gpus.iter().position(|gpu| gpu.value.index == Some(index)).unwrap_or_else(|| {
            let value = NvmlGpu { index: Some(index), ..NvmlGpu::default() };
            gpus.push(Seen::new(value, call.origin.clone()));
            gpus.len() - 1
        });
    &mut gpus[position].value
}

fn describe(gpu: &mut NvmlGpu, name: &str, value: &str) {
    let text = || Some(value.to_owned());
    match name {
        "nvmlDeviceGetName" => gpu.name = text(),
        "nvmlDeviceGetUUID" => gpu.uuid = text(),
        "nvmlDeviceGetPciInfo" | "nvmlDeviceGetPciInfo_v3" => {
            gpu.address = value.split_whitespace().next().and_then(PciAddress::parse);
            let id = value.split_whitespace().nth(1).and_then(|id| id.strip_prefix("10de:"));
            gpu.device_id = id.and_then(|id| u16::from_str_radix(id, 16).ok());
        }
        "nvmlDeviceGetMinorNumber" => gpu.minor = value.parse().ok(),
        "nvmlDeviceGetArchitecture" => gpu.architecture = text(),
        "nvmlDeviceGetComputeMode" => gpu.compute_mode = text(),
        "nvmlDeviceGetMigMode" => gpu.mig = Some(value.starts_with('1')),
        "nvmlDeviceGetPersistenceMode" => gpu.persistence = Some(value == "1"),
        "nvmlDeviceGetVirtualizationMode" => gpu.virtualization = text(),
        "nvmlDeviceGetAddressingMode" => gpu.addressing_mode = text(),
        "nvmlDeviceGetGspFirmwareVersion" => gpu.gsp_version = text(),
        "nvmlDeviceGetGpuFabricInfo" | "nvmlDeviceGetGpuFabricInfoV" => {
            gpu.fabric_state = value.split(';').next().map(|part| part.trim().to_owned());
            gpu.fabric_status = value.split(';').nth(1).map(|part| part.trim().to_owned());
        }
        "nvmlDeviceGetRecoveryAction" => gpu.recovery_action = text(),
        "nvmlDeviceGetGridLicensableFeatures_v4" => gpu.license = text(),
        "nvmlDeviceGetMemoryInfo" | "nvmlDeviceGetMemoryInfo_v2" => {
            let mut parts = value.split('/').map(|part| part.trim().parse());
            if let (Some(Ok(used)), Some(Ok(total))) = (parts.next(), parts.next()) {
                gpu.memory_mib = Some((used, total));
            }
        }
        _ => condition(&mut gpu.health, name, value),
    }
}

/// What tells of a GPU's condition.
fn condition(health: &mut GpuHealth, name: &str, value: &str) {
    let small = || value.parse::<u8>().ok();
    match name {
        "nvmlDeviceGetPerformanceState" => {
            // 32 stands for "unknown".
            health.performance_state = small().filter(|state| *state <= 15);
        }
        "nvmlDeviceGetCurrPcieLinkGeneration" => health.link.generation = small(),
        "nvmlDeviceGetMaxPcieLinkGeneration" => health.link.generation_max = small(),
        "nvmlDeviceGetCurrPcieLinkWidth" => health.link.width = small(),
        "nvmlDeviceGetMaxPcieLinkWidth" => health.link.width_max = small(),
        "nvmlDeviceGetUtilizationRates" => health.utilization_percent = small(),
        "nvmlDeviceGetTotalEccErrors" => {
            let mut counts = value.split('/').map(|count| count.trim().parse().ok());
            health.uncorrectable_volatile = counts.next().flatten();
            health.uncorrectable_aggregate = counts.next().flatten();
        }
        "nvmlDeviceGetRemappedRows" => {
            for part in value.split(',').map(str::trim) {
                match part.split_once(' ') {
                    Some(("pending", word)) => health.remap_pending = yes(word),
                    Some(("failed", word)) => health.remap_failed = yes(word),
                    Some((count, "uncorrectable")) => {
                        health.remapped_uncorrectable = count.parse().ok();
                    }
                    _ => {}
                }
            }
        }
        "nvmlDeviceGetFieldValues" => {
            for part in value.split(',').map(str::trim) {
                match part.split_once(' ') {
                    Some(("retired-pending", count)) => {
                        health.remap_pending = health.remap_pending.or(Some(count != "0"));
                    }
                    Some(("pcie-replays", count)) => health.link.replays = count.parse().ok(),
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

fn yes(word: &str) -> Option<bool> {
    match word {
        "Yes" => Some(true),
        "No" => Some(false),
        _ => None,
    }
}

/// The MIG devices of one GPU in MIG mode. That there is none is told only as long as no other GPU
/// has one.
fn mig_devices(gpu: Option<u32>, uuids: &str, origin: &Origin, facts: &mut Facts) {
    let devices = uuids.split_whitespace().map(|uuid| MigDevice {
        gpu,
        profile: None,
        uuid: Some(uuid.to_owned()),
    });
    let mut devices: Vec<MigDevice> = devices.collect();
    let known = &mut facts.share.mig_devices;
    if let Observed::Seen(seen) = known {
        seen.value.append(&mut devices);
    } else if devices.is_empty() {
        known.or_better(Observed::Absent(origin.clone()));
    } else {
        *known = Observed::seen(devices, origin.clone());
    }
}
