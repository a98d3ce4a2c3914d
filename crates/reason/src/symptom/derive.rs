//! From facts to symptoms.

use facts::model::cuda::{Stage, TrialResult};
use facts::model::experiment::Effect;
use facts::model::framework::FrameworkMessage;
use facts::model::nvml::NvmlResult;
use facts::{Facts, Observed, Origin};

use super::{Symptom, SymptomId, hardware};
use crate::machine;
use crate::readings::{self, code};

/// Every symptom that the facts show, in a fixed order.
pub fn derive(facts: &Facts) -> Vec<Symptom> {
    let mut found = Vec::new();
    cuda_init(facts, &mut found);
    cuda_after_init(facts, &mut found);
    nvml(facts, &mut found);
    driver_absent(facts, &mut found);
    gpus(facts, &mut found);
    for (id, summary, origin) in super::driver_side::symptoms(facts) {
        push(&mut found, id, None, summary, &origin);
    }
    engine(facts, &mut found);
    framework(facts, &mut found);
    super::peers::derive(facts, &mut found);
    super::slow::derive(facts, &mut found);
    super::process::derive(facts, &mut found);
    super::stuck::derive(facts, &mut found);
    if found.is_empty()
        && let Some((id, summary, origin)) = super::driver_side::stuck(facts)
    {
        push(&mut found, id, None, summary, &origin);
    }
    if found.is_empty()
        && let Some(said) = facts.library.interposer_complaints.first()
    {
        let summary = format!("a preloaded library says: {}", said.value);
        push(&mut found, SymptomId::CudaContextFails, None, summary, &said.origin);
    }
    found
}

pub(super) fn push(
    found: &mut Vec<Symptom>,
    id: SymptomId,
    code: Option<i64>,
    summary: String,
    origin: &Origin,
) {
    if found.iter().any(|known| known.id == id && known.code == code) {
        return;
    }
    found.push(Symptom { id, code, summary, origin: origin.clone(), explained_by: Vec::new() });
}

/// `3 (CUDA_ERROR_NOT_INITIALIZED)`.
pub(crate) fn named_cuda_code(code: i64) -> String {
    match nvabi::cuda_result::by_code(code) {
        Some(result) => format!("{code} ({})", result.name),
        None => code.to_string(),
    }
}

/// `18 (NVML_ERROR_LIB_RM_VERSION_MISMATCH)`.
pub(crate) fn named_nvml_code(code: i64) -> String {
    match nvabi::nvml_return::by_code(code) {
        Some(result) => format!("{code} ({})", result.name),
        None => code.to_string(),
    }
}

fn cuda_init(facts: &Facts, found: &mut Vec<Symptom>) {
    let trials: Vec<_> = facts.cuda.plain().collect();
    let hung = trials.iter().filter(|trial| {
        matches!(trial.result, TrialResult::Hung { .. }) && trial.stage <= Stage::Init
    });
    if let Some(first) = hung.clone().next() {
        let (hung, all) = (hung.count(), trials.len());
        let summary = format!("{} did not return in {hung} of {all} trials", first.what);
        push(found, SymptomId::CudaInitHangs, None, summary, &first.origin);
    }
    for trial in &trials {
        let early = trial.stage <= Stage::Count;
        match trial.result {
            TrialResult::Crashed(signal) => {
                let by = signal.map_or(String::new(), |signal| format!(" by signal {signal}"));
                let summary = format!("the process was ended{by} inside {}", trial.what);
                push(
                    found,
                    SymptomId::CudaInitCrashes,
                    signal.map(i64::from),
                    summary,
                    &trial.origin,
                );
            }
            TrialResult::Code(number) if number != 0 && early && !belongs_above(number) => {
                let summary = format!("{} answers {}", trial.what, named_cuda_code(number));
                push(found, SymptomId::CudaInitFails, Some(number), summary, &trial.origin);
            }
            TrialResult::Failed if early => {
                let summary = format!("{} does not start", trial.what);
                push(found, SymptomId::CudaInitFails, None, summary, &trial.origin);
            }
            TrialResult::Code(_)
            | TrialResult::Failed
            | TrialResult::Hung { .. }
            | TrialResult::WrongResult => {}
        }
    }
    only_under_a_condition(facts, found);
    only_under_an_experiment(facts, found);
}

/// It works as it is, and an experiment shows that it fails otherwise, such as for the user on whose
/// behalf root looks.
fn only_under_an_experiment(facts: &Facts, found: &mut Vec<Symptom>) {
    for made in facts.experiments.iter().filter(|made| made.effect == Effect::Fails) {
        let Some(run) = &made.run else { continue };
        let how = match run.result {
            TrialResult::Code(number) => format!("answers {}", named_cuda_code(number)),
            TrialResult::Hung { .. } => "does not return".to_owned(),
            TrialResult::Crashed(_) => "crashes".to_owned(),
            TrialResult::Failed | TrialResult::WrongResult => "does not work".to_owned(),
        };
        let summary = format!("{} {how} {}", run.what, made.change.words());
        let code = if let TrialResult::Code(code) = run.result { Some(code) } else { None };
        push(found, SymptomId::CudaInitFails, code, summary, &made.origin);
    }
}

/// "It works with X", and nothing is said of it without: it does not work without.
fn only_under_a_condition(facts: &Facts, found: &mut Vec<Symptom>) {
    // Where work between GPUs is what fails, such a sentence is about that work.
    if facts.cuda.plain().next().is_some() || facts.p2p.broken().is_some() {
        return;
    }
    let cured = facts.cuda.trials.iter().find(|trial| trial.ok() && trial.under.is_some());
    if let Some(trial) = cured {
        let summary = "CUDA works only under a condition".to_owned();
        push(found, SymptomId::CudaInitFails, None, summary, &trial.origin);
    }
}

/// Codes that say nothing of cuInit even when the input names no stage: the runtime's own check
/// of versions, and those of kernels and contexts.
fn belongs_above(number: i64) -> bool {
    matches!(
        number,
        code::INSUFFICIENT_DRIVER
            | code::NO_BINARY_FOR_GPU
            | code::UNSUPPORTED_PTX
            | code::DEVICE_UNAVAILABLE
    )
}

fn cuda_after_init(facts: &Facts, found: &mut Vec<Symptom>) {
    for trial in facts.cuda.plain() {
        let TrialResult::Code(number) = trial.result else {
            if trial.result == TrialResult::WrongResult {
                let summary = format!("{} gave wrong data", trial.what);
                push(found, SymptomId::CudaContextFails, None, summary, &trial.origin);
            } else if matches!(trial.result, TrialResult::Hung { .. }) && trial.stage > Stage::Init
            {
                let summary = format!("{} did not return", trial.what);
                push(found, SymptomId::CudaContextFails, None, summary, &trial.origin);
            }
            continue;
        };
        if number == 0 || (trial.stage <= Stage::Count && !belongs_above(number)) {
            continue;
        }
        let summary = format!("{} answers {}", trial.what, named_cuda_code(number));
        let id = match number {
            code::INSUFFICIENT_DRIVER => SymptomId::FrameworkNoGpu,
            code::NO_BINARY_FOR_GPU | code::UNSUPPORTED_PTX => SymptomId::FrameworkNoCode,
            _ => SymptomId::CudaContextFails,
        };
        push(found, id, Some(number), summary, &trial.origin);
    }
}

fn nvml(facts: &Facts, found: &mut Vec<Symptom>) {
    match &facts.nvml.init {
        Observed::Seen(seen) => match seen.value {
            NvmlResult::Code(0) => {}
            NvmlResult::Code(number) => {
                let summary = format!("NVML answers {}", named_nvml_code(number));
                push(found, SymptomId::NvmlFails, Some(number), summary, &seen.origin);
            }
            NvmlResult::Hung => {
                let summary = "nvmlInit does not return".to_owned();
                push(found, SymptomId::NvmlHangs, None, summary, &seen.origin);
            }
            NvmlResult::Crashed => {
                let summary = "the process dies inside nvmlInit".to_owned();
                push(found, SymptomId::NvmlFails, None, summary, &seen.origin);
            }
        },
        Observed::Absent(_) | Observed::Denied(..) | Observed::Unknown(_) => {}
    }
    if let Some(query) = facts.nvml.hung().next() {
        let summary = format!("{} does not return", query.query);
        push(found, SymptomId::NvmlHangs, None, summary, &query.origin);
    }
    if found.is_empty() {
        found.extend(hardware::refused_client(facts));
    }
}

fn driver_absent(facts: &Facts, found: &mut Vec<Symptom>) {
    if readings::cuda_works(facts).is_some() {
        return;
    }
    let wanted = wants_a_driver(facts);
    let nvml_works = readings::nvml_works(facts).is_some();
    let mut absent = |summary: &str, origin: &Origin| {
        push(found, SymptomId::DriverAbsent, None, summary.to_owned(), origin);
    };
    if let Some(origin) = facts.module.nvrm.absent().filter(|_| wanted && !nvml_works) {
        absent("no nvidia kernel module is running here", origin);
    } else if let Some(origin) = readings::nvml_failed_with(facts, code::NVML_DRIVER_NOT_LOADED) {
        absent("the tools cannot talk to a driver", &origin);
    } else if let Some(error) = load_error(facts).filter(|_| wanted || !facts.live) {
        absent(&format!("the loader says: {}", error.value), &error.origin);
    } else if let Some(origin) = facts.library.cuda.absent().filter(|_| wanted) {
        absent("there is no libcuda.so.1 here", origin);
    } else if let Some(origin) = facts.library.smi.absent().filter(|_| !nvml_works) {
        absent("nvidia-smi is not installed here", origin);
    }
}

/// Something here has or wants a GPU.
fn wants_a_driver(facts: &Facts) -> bool {
    facts.pci.gpus().next().is_some()
        || facts.library.cuda.is_seen()
        || facts.library.nvml.is_seen()
        || !facts.cuda.trials.is_empty()
        || facts.module.nvrm.is_seen()
        || facts.sandbox.gpu_requested.value() == Some(&true)
        || facts.node.gpu_nodes().any(|(_, node)| node.is_seen())
}

fn load_error(facts: &Facts) -> Option<&facts::Seen<String>> {
    let library = &facts.library;
    library.cuda_load_error.as_seen().or_else(|| library.nvml_load_error.as_seen())
}

/// How many of the GPUs on the bus belong here: a container sees its host's bus, and was given the
/// GPUs whose nodes it has.
fn given(facts: &Facts, on_bus: usize) -> usize {
    let nodes = facts.node.gpu_nodes().filter(|(_, node)| node.is_seen()).count();
    if machine::in_container(facts) && nodes > 0 { nodes.min(on_bus) } else { on_bus }
}

/// Whether somebody chose so many GPUs on purpose: CUDA_VISIBLE_DEVICES has as many entries as CUDA
/// counts GPUs. A list that breaks off at an entry that no GPU has is longer than that.
fn chosen(facts: &Facts, counted: u32) -> bool {
    let Observed::Seen(seen) = facts.process.env("CUDA_VISIBLE_DEVICES") else { return false };
    counted > 0 && u32::try_from(seen.value.split(',').count()) == Ok(counted)
}

fn gpus(facts: &Facts, found: &mut Vec<Symptom>) {
    let on_bus = hardware::expected_on_bus(facts);
    if let Some(seen) = facts.nvml.count.as_seen() {
        let counted = usize::try_from(seen.value).unwrap_or(usize::MAX);
        if counted < given(facts, on_bus) {
            let summary = format!("NVML counts {counted} of {on_bus} GPUs on the bus");
            push(found, SymptomId::GpuMissing, None, summary, &seen.origin);
        } else if counted == 0 {
            let summary = "NVML counts no GPU".to_owned();
            push(found, SymptomId::GpuMissing, None, summary, &seen.origin);
        }
    }
    if let (Some(cuda), Some(nvml)) = (facts.cuda.count.as_seen(), facts.nvml.count.as_seen())
        && cuda.value < nvml.value
        && !chosen(facts, cuda.value)
    {
        let summary =
            format!("CUDA counts {} of the {} GPUs that NVML lists", cuda.value, nvml.value);
        push(found, SymptomId::GpuMissing, None, summary, &cuda.origin);
    }
    let told = facts.pci.told_absent.first().filter(|_| facts.pci.devices.is_unknown());
    if on_bus == 0
        && let Some(origin) = facts.pci.devices.absent().or(told)
        && (needs_a_gpu(facts) || told.is_some())
        // A bus that is hidden from here holds nothing up.
        && readings::cuda_works(facts).is_none()
        && readings::nvml_works(facts).is_none()
    {
        let summary = "no NVIDIA GPU is on the PCI bus".to_owned();
        push(found, SymptomId::GpuMissing, None, summary, origin);
    }
    reported_by_the_kernel(facts, found);
}

/// Lines that say that a GPU did not come up, or went.
const FAULT_LINES: [&str; 12] = [
    "RMINIT_FAILED",
    "RM_INIT_ADAPTER",
    "FALLEN_BUS",
    "FALLEN_BUS_INIT",
    "GSP_RPC_TIMEOUT",
    "GSP_HEARTBEAT",
    "NEED_OPEN_MODULES",
    "OPEN_NO_GSP",
    "UNSUPPORTED_GPU",
    "LEGACY_GPU",
    "LEGACY_IGNORED",
    "BAR_INVALID",
];

/// Lines that say that a firmware file was not found. The initial RAM disk often lacks it, and the
/// driver loads it later from the real root, so that they count only while GSP does not run.
const FIRMWARE_LINES: [&str; 2] = ["GSP_FW_MISSING", "FW_DIRECT_LOAD"];

fn reported_by_the_kernel(facts: &Facts, found: &mut Vec<Symptom>) {
    let came_up_later = !facts.firmware.running.is_empty();
    let firmware = facts.log.first(&FIRMWARE_LINES).filter(|_| !came_up_later);
    if let Some(event) = facts.log.first(&FAULT_LINES).or(firmware) {
        let summary =
            format!("the kernel log says: {}", facts::observed::clean_excerpt(&event.text));
        push(found, SymptomId::GpuFaulted, None, summary, &event.origin);
    } else if let Some(symptom) = hardware::xid(facts).or_else(|| hardware::faulted(facts)) {
        found.push(symptom);
    }
}

/// Something here wants a GPU: a driver, a library, a request, or a failed call.
fn needs_a_gpu(facts: &Facts) -> bool {
    facts.module.nvrm.is_seen()
        || facts.library.cuda.is_seen()
        || facts.library.nvml.is_seen()
        || facts.sandbox.gpu_requested.value() == Some(&true)
        || !facts.cuda.trials.is_empty()
}

fn engine(facts: &Facts, found: &mut Vec<Symptom>) {
    if let Some(message) = facts.sandbox.engine_messages.first() {
        let summary = format!("the container engine says: {}", message.value.1);
        push(found, SymptomId::ContainerRefused, None, summary, &message.origin);
    }
}

fn framework(facts: &Facts, found: &mut Vec<Symptom>) {
    for (message, origin) in &facts.framework.messages {
        let (id, summary) = match message {
            FrameworkMessage::CapabilityNotCompatible { capability, .. } => {
                (SymptomId::FrameworkNoCode, format!("the framework has no code for {capability}"))
            }
            FrameworkMessage::NoKernelImage => {
                (SymptomId::FrameworkNoCode, "no kernel image is available for this GPU".to_owned())
            }
            FrameworkMessage::PtxTooNew => {
                (SymptomId::FrameworkNoCode, "the PTX is newer than the driver".to_owned())
            }
            FrameworkMessage::DriverTooOld { .. } => {
                (SymptomId::FrameworkNoGpu, "the framework calls the driver too old".to_owned())
            }
            FrameworkMessage::NoAccelerator => {
                (SymptomId::FrameworkNoGpu, "the framework finds no GPU".to_owned())
            }
            FrameworkMessage::FindsNoGpu => {
                (SymptomId::FrameworkNoGpu, "a program does not find the GPU".to_owned())
            }
            FrameworkMessage::NotCompiledWithCuda => {
                (SymptomId::FrameworkNoGpu, "the framework is built without CUDA".to_owned())
            }
            FrameworkMessage::UndefinedSymbol { library, .. } => {
                (SymptomId::FrameworkNoCode, format!("{library} does not load"))
            }
            FrameworkMessage::ToolkitMismatch { toolkit, framework } => (
                SymptomId::FrameworkNoCode,
                format!("toolkit {toolkit} and framework CUDA {framework} differ"),
            ),
            FrameworkMessage::MissingCudaLibrary { library } => {
                (SymptomId::FrameworkNoCode, format!("{library} cannot be opened"))
            }
            FrameworkMessage::ForkedSubprocess => {
                (SymptomId::CudaInitFails, "CUDA cannot start in a forked process".to_owned())
            }
        };
        push(found, id, None, summary, origin);
    }
    let blocked = found.iter().any(|symptom| symptom.id != SymptomId::FrameworkNoGpu);
    if let Some(seen) = facts.framework.torch_available.as_seen().filter(|seen| !seen.value)
        && !blocked
    {
        let summary = "torch.cuda.is_available() is False".to_owned();
        push(found, SymptomId::FrameworkNoGpu, None, summary, &seen.origin);
    }
}
