//! What NVML, the fabric, CUDA and the frameworks answered.

use facts::Layer;
use facts::model::cuda::{CallTime, CudaDevice, Trial, TrialResult};
use facts::model::fabric::ServiceState;
use facts::model::framework::{Package, Torch};
use facts::model::health::GpuHealth;
use facts::model::nvml::{NvmlGpu, NvmlResult};
use facts::model::{Cuda, Fabric, Framework, Nvml};

use super::listing::{Listing, known_parts};

pub(super) fn nvml(nvml: &Nvml, listing: &mut Listing) {
    listing.observed(Layer::Nvml, "init", &nvml.init, result_text);
    listing.shown(Layer::Nvml, "count", &nvml.count);
    listing.shown(Layer::Nvml, "driver_version", &nvml.driver_version);
    listing.shown(Layer::Nvml, "driver_told", &nvml.driver_told);
    listing.shown(Layer::Nvml, "cuda_version", &nvml.cuda_version);
    listing.list(Layer::Nvml, "gpu", &nvml.gpus, gpu_text);
    for query in &nvml.queries {
        let device = query.device.map_or(String::new(), |device| format!(" {device}"));
        let time = query.ms.map_or(String::new(), |ms| format!(" in {ms:.1} ms"));
        let text = format!("{}{time}", result_text(&query.result));
        listing.value(Layer::Nvml, format!("{}{device}", query.query), text, &query.origin);
    }
    for seen in &nvml.topology {
        let (row, column, word) = &seen.value;
        listing.value(Layer::Nvml, format!("topology {row} {column}"), word, &seen.origin);
    }
}

fn result_text(result: &NvmlResult) -> String {
    match result {
        NvmlResult::Code(code) => format!("answers {code}"),
        NvmlResult::Hung => "did not return".to_owned(),
        NvmlResult::Crashed => "crashed".to_owned(),
    }
}

fn gpu_text(gpu: &NvmlGpu) -> String {
    let memory = gpu.memory_mib.map(|(used, all)| format!("{used} of {all} MiB"));
    known_parts(&[
        ("", gpu.address.map(|address| address.to_string())),
        ("", gpu.name.clone()),
        ("minor", gpu.minor.map(|minor| minor.to_string())),
        ("GSP", gpu.gsp_version.clone()),
        ("compute mode", gpu.compute_mode.clone()),
        ("MIG", gpu.mig.map(|mig| mig.to_string())),
        ("addressing", gpu.addressing_mode.clone()),
        ("recovery action", gpu.recovery_action.clone()),
        ("fabric", gpu.fabric_state.clone()),
        ("fabric status", gpu.fabric_status.clone()),
        ("persistence", gpu.persistence.map(|on| on.to_string())),
        ("virtualization", gpu.virtualization.clone()),
        ("license", gpu.license.clone()),
        ("memory", memory),
        ("", Some(condition(&gpu.health)).filter(|text| !text.is_empty())),
    ])
}

fn condition(health: &GpuHealth) -> String {
    let link = &health.link;
    let of = |now: Option<u8>, most: Option<u8>| Some(format!("{} of {}", now?, most?));
    known_parts(&[
        ("P", health.performance_state.map(|state| state.to_string())),
        ("utilization", health.utilization_percent.map(|percent| format!("{percent} %"))),
        ("PCIe generation", of(link.generation, link.generation_max)),
        ("lanes", of(link.width, link.width_max)),
        ("replays", link.replays.map(|count| count.to_string())),
        ("remapped rows", health.remapped_uncorrectable.map(|rows| rows.to_string())),
        ("remapping pending", health.remap_pending.map(|pending| pending.to_string())),
        ("remapping failed", health.remap_failed.map(|failed| failed.to_string())),
        ("uncorrectable errors", health.uncorrectable_volatile.map(|count| count.to_string())),
        ("in its life", health.uncorrectable_aggregate.map(|count| count.to_string())),
    ])
}

pub(super) fn fabric(fabric: &Fabric, listing: &mut Listing) {
    listing.observed(Layer::Fabric, "manager", &fabric.manager, |state| match state {
        ServiceState::Running => "running".to_owned(),
        ServiceState::Stopped(what) => format!("stopped: {what}"),
        ServiceState::NotInstalled => "not installed".to_owned(),
    });
    listing.shown(Layer::Fabric, "manager_version", &fabric.manager_version);
    listing.yes_no(Layer::Fabric, "nvswitch", &fabric.nvswitch);
    for (text, origin) in &fabric.messages {
        listing.value(Layer::Fabric, "message", text, origin);
    }
}

pub(super) fn cuda(cuda: &Cuda, listing: &mut Listing) {
    for (trial, number) in cuda.trials.iter().zip(1..) {
        let number: usize = number;
        listing.value(Layer::Cuda, format!("trial[{number}]"), trial_text(trial), &trial.origin);
    }
    listing.shown(Layer::Cuda, "count", &cuda.count);
    listing.shown(Layer::Cuda, "driver_api", &cuda.driver_api);
    listing.list(Layer::Cuda, "device", &cuda.devices, device_text);
    listing.list(Layer::Cuda, "time in", &cuda.call_times, time_text);
    listing.list(Layer::Uvm, "failed call", &cuda.uvm_failures, |(call, status)| {
        format!("{call}: {status}")
    });
}

/// `UVM_REGISTER_GPU: 0.39 s, 2 calls: 0.181 s, 0.209 s`.
fn time_text(time: &CallTime) -> String {
    let each: Vec<String> = time.seconds.iter().take(16).map(|s| format!("{s:.3} s")).collect();
    let calls = if time.seconds.len() == 1 { "call" } else { "calls" };
    format!(
        "{}: {:.2} s, {} {calls}: {}",
        time.call,
        time.total_s(),
        time.seconds.len(),
        each.join(", ")
    )
}

fn trial_text(trial: &Trial) -> String {
    let result = match trial.result {
        TrialResult::Code(code) => format!("{} answers {code}", trial.what),
        TrialResult::Hung { killable: Some(false) } => {
            format!("{} did not return and cannot be killed", trial.what)
        }
        TrialResult::Hung { .. } => format!("{} did not return", trial.what),
        TrialResult::Crashed(Some(signal)) => {
            format!("{} ended by signal {signal}", trial.what)
        }
        TrialResult::Crashed(None) => format!("{} crashed", trial.what),
        TrialResult::Failed => format!("{} does not start", trial.what),
        TrialResult::WrongResult => format!("{} gave wrong data", trial.what),
    };
    let fresh = trial
        .fresh_process
        .map(|fresh| if fresh { "in a fresh process" } else { "in a forked process" }.to_owned());
    known_parts(&[
        ("", Some(result)),
        ("", trial.seconds.map(|seconds| format!("{seconds:.2} s"))),
        ("", fresh),
        ("under", trial.under.clone()),
        ("", trial.traced.then(|| "traced".to_owned())),
    ])
}

fn device_text(device: &CudaDevice) -> String {
    let capability = device.capability.map(|(major, minor)| format!("{major}.{minor}"));
    known_parts(&[
        ("", device.name.clone()),
        ("", device.pci.clone()),
        ("capability", capability),
        ("", device.uuid.clone()),
    ])
}

pub(super) fn framework(framework: &Framework, listing: &mut Listing) {
    listing.observed(Layer::Framework, "torch", &framework.torch, torch_text);
    listing.yes_no(Layer::Framework, "torch.cuda.is_available", &framework.torch_available);
    listing.shown(Layer::Framework, "nvcc", &framework.nvcc);
    listing.list(Layer::Framework, "toolkit", &framework.toolkits, |(path, version)| {
        format!("{version} at {path}")
    });
    listing.list(Layer::Framework, "package", &framework.packages, package_text);
    for (message, origin) in &framework.messages {
        listing.value(Layer::Framework, "message", format!("{message:?}"), origin);
    }
}

fn torch_text(torch: &Torch) -> String {
    let cuda = torch.cuda.map(|cuda| cuda.map_or("none".to_owned(), |cuda| cuda.to_string()));
    known_parts(&[
        ("", torch.version.clone()),
        ("CUDA", cuda),
        ("architectures", torch.arch_list.as_ref().map(|list| list.join(" "))),
    ])
}

fn package_text(package: &Package) -> String {
    known_parts(&[
        ("", Some(format!("{} {}", package.name, package.version))),
        ("CUDA", package.cuda.map(|cuda| cuda.to_string())),
        ("in", package.python.clone()),
    ])
}
