//! The `cuinit` probe.

use crate::model::Facts;
use crate::model::cuda::{CudaDevice, Stage, Trial, TrialResult};
use crate::model::probe_run::{ProbeCall, ProbeRun};
use crate::observed::{Observed, Seen};
use crate::version::CudaVersion;
use crate::wire::Outcome;

pub(super) fn apply(run: &ProbeRun, facts: &mut Facts) {
    if let Some(mut trial) = trial(run) {
        trial.hmm_disabled = facts.module.uvm_disable_hmm.value().copied();
        facts.cuda.trials.push(trial);
    }
    load(run, facts);
    answers(run, facts);
}

/// Which stage a call of the probe belongs to.
fn stage(call: &str) -> Option<Stage> {
    let stage = match call {
        "load" => Stage::Load,
        "cuInit" => Stage::Init,
        "cuDriverGetVersion" => Stage::Version,
        "cuDeviceGetCount" => Stage::Count,
        "cuDevicePrimaryCtxRetain" | "cuCtxCreate" | "cuCtxCreate_v2" | "cuCtxSetCurrent" => {
            Stage::Context
        }
        "cuMemAlloc" | "cuMemAlloc_v2" => Stage::Allocation,
        "cuMemcpyHtoD" | "cuMemcpyHtoD_v2" | "cuMemcpyDtoH" | "cuMemcpyDtoH_v2"
        | "compare-copy" => Stage::Copy,
        "cuModuleLoadData"
        | "cuModuleGetFunction"
        | "cuLaunchKernel"
        | "cuCtxSynchronize"
        | "compare-kernel" => Stage::Kernel,
        "cuMemFree"
        | "cuMemFree_v2"
        | "cuModuleUnload"
        | "cuDevicePrimaryCtxRelease"
        | "cuDevicePrimaryCtxRelease_v2" => Stage::Free,
        _ if call.starts_with("cuDevice") => Stage::Device,
        _ => return None,
    };
    Some(stage)
}

/// Calls whose failure says nothing about whether CUDA comes up: an old library lacks some.
fn optional(call: &str) -> bool {
    matches!(call, "cuDeviceGetUuid" | "cuDeviceGetUuid_v2" | "cuDriverGetVersion")
}

/// The first call that failed decides; else how the run ended.
pub(super) fn trial(run: &ProbeRun) -> Option<Trial> {
    let failed = run
        .calls
        .iter()
        .find(|call| call.code != 0 && stage(&call.call).is_some() && !optional(&call.call));
    let (at, result, what) = match (failed, run.outcome) {
        // A library that does not load never ran: the loader's error says more than a trial.
        (Some(call), _) if call.call == "load" => return None,
        (Some(call), _) if call.call.starts_with("compare") => {
            (stage(&call.call)?, TrialResult::WrongResult, call.call.clone())
        }
        (Some(call), _) => (stage(&call.call)?, TrialResult::Code(call.code), call.call.clone()),
        (None, Outcome::Returned) => {
            let last = run.calls.iter().filter_map(|call| stage(&call.call)).max()?;
            (last, TrialResult::Code(0), "cuInit".to_owned())
        }
        (None, Outcome::TimedOut) if run.was_cut_short() => return None,
        (None, Outcome::TimedOut | Outcome::Unkillable) => {
            let killable = Some(run.outcome == Outcome::TimedOut);
            let (at, what) = in_flight(run);
            (at, TrialResult::Hung { killable }, what)
        }
        (None, Outcome::Crashed) => {
            let (at, what) = in_flight(run);
            (at, TrialResult::Crashed(run.code), what)
        }
        (None, Outcome::NotStarted | Outcome::Malformed) => return None,
    };
    let seconds = run.call("cuInit").map(|call| call.ms / 1000.0);
    let origin = failed.map_or_else(|| run.origin.clone(), |call| call.origin.clone());
    Some(Trial {
        fresh_process: Some(true),
        seconds,
        traced: run.traced,
        ..Trial::new(at, result, &what, origin)
    })
}

fn in_flight(run: &ProbeRun) -> (Stage, String) {
    match &run.in_flight {
        Some((call, _)) => (stage(call).unwrap_or(Stage::Load), call.clone()),
        None => (Stage::Load, "the probe of cuInit".to_owned()),
    }
}

fn load(run: &ProbeRun, facts: &mut Facts) {
    let Some(call) = run.call("load") else { return };
    if call.code != 0 {
        let error = call.value.clone().unwrap_or_default();
        facts.library.cuda_load_error = Observed::seen(error, call.origin.clone());
        return;
    }
    if let Some(path) = run.note("mapped-libcuda") {
        let mapped = crate::extract::libraries::by_path(path, "libcuda.so.1", &call.origin, facts);
        facts.library.cuda = Observed::seen(mapped, call.origin.clone());
    }
}

fn answers(run: &ProbeRun, facts: &mut Facts) {
    if let Some((call, version)) = number(run.call("cuDriverGetVersion"))
        && let Some(version) = CudaVersion::from_api(version)
    {
        facts.cuda.driver_api = Observed::seen(version, call.origin.clone());
    }
    if let Some((call, count)) = number(run.call("cuDeviceGetCount")) {
        let count = u32::try_from(count).unwrap_or(0);
        facts.cuda.count = Observed::seen(count, call.origin.clone());
    }
    let mut devices: Vec<Seen<CudaDevice>> = Vec::new();
    for call in run.calls.iter().filter(|call| call.code == 0) {
        let Some(ordinal) = call.on.as_deref().and_then(|on| on.parse::<u32>().ok()) else {
            continue;
        };
        if stage(&call.call) != Some(Stage::Device) {
            continue;
        }
        let known = devices.iter_mut().find(|device| device.value.ordinal == ordinal);
        if let Some(device) = known {
            describe(&mut device.value, call);
        } else {
            let mut device = CudaDevice { ordinal, ..CudaDevice::default() };
            describe(&mut device, call);
            devices.push(Seen::new(device, call.origin.clone()));
        }
    }
    if facts.cuda.devices.is_empty() {
        facts.cuda.devices = devices;
    }
}

fn describe(device: &mut CudaDevice, call: &ProbeCall) {
    let Some(value) = call.value.clone() else { return };
    match call.call.as_str() {
        "cuDeviceGetName" => device.name = Some(value),
        "cuDeviceGetUuid" | "cuDeviceGetUuid_v2" => device.uuid = Some(value),
        "cuDeviceGetPCIBusId" => device.pci = Some(value),
        "cuDeviceGetAttribute" => {
            let mut parts = value.split('.').map(str::parse);
            if let (Some(Ok(major)), Some(Ok(minor))) = (parts.next(), parts.next()) {
                device.capability = Some((major, minor));
            }
        }
        _ => {}
    }
}

fn number(call: Option<&ProbeCall>) -> Option<(&ProbeCall, i64)> {
    let call = call.filter(|call| call.code == 0)?;
    Some((call, call.value.as_deref()?.parse().ok()?))
}
