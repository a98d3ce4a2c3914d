//! Symptoms of the kernel's side: a module that cannot be built, found or loaded, a GPU that the
//! driver was not given, and a kernel that crashed in the driver's code.

use facts::model::module_message::ModuleMessage;
use facts::{Facts, Origin, Seen};

use super::SymptomId;
use crate::readings;

/// What the kernel's side shows: which symptom, in one line, and where it was seen.
pub(super) fn symptoms(facts: &Facts) -> Vec<(SymptomId, String, Origin)> {
    let works = readings::cuda_works(facts).is_some();
    let mut found = Vec::new();
    if let Some((summary, origin)) = faulted(facts, works) {
        found.push((SymptomId::GpuFaulted, summary, origin));
    }
    if works || readings::module_runs(facts).is_some() {
        return found;
    }
    let messages = &facts.module.messages;
    let of_others =
        |seen: &&Seen<ModuleMessage>| matches!(seen.value, ModuleMessage::OtherKeyRefused { .. });
    let said = messages.iter().find(|seen| speaks(&seen.value));
    if let Some(Seen { value, origin }) = said.or_else(|| messages.iter().find(of_others)) {
        found.push((SymptomId::DriverAbsent, summary_of(value), origin.clone()));
    } else if let Some(origin) = &facts.module.open_wanted_told {
        let summary = "the driver is told to refuse the GPU".to_owned();
        found.push((SymptomId::DriverAbsent, summary, origin.clone()));
    } else if let Some(event) = facts.log.first(&["ALREADY_BOUND", "PROBE_NOT_CALLED"]) {
        let summary = "the nvidia module is not given the GPU".to_owned();
        found.push((SymptomId::DriverAbsent, summary, event.origin.clone()));
    }
    found
}

/// A task that sleeps below frames of the driver's modules, where nothing else shows.
pub(super) fn stuck(facts: &Facts) -> Option<(SymptomId, String, Origin)> {
    let event = readings::blocked_task(facts)?;
    let task = event.get("comm").unwrap_or("a task");
    let frame = facts.log.frames.iter().find(|(frame, _)| frame.contains("[nvidia"));
    let summary = match frame {
        Some((frame, _)) => format!("{task} is stuck in {frame}"),
        None if readings::is_drivers_thread(task) => {
            format!("{task}, a thread of the driver's, is stuck in the kernel")
        }
        None => return None,
    };
    Some((SymptomId::GpuFaulted, summary, event.origin.clone()))
}

/// Messages after which there is no driver to talk to.
fn speaks(message: &ModuleMessage) -> bool {
    match message {
        ModuleMessage::NotFound { module, .. } => {
            readings::is_main_module(module) || readings::is_display_module(module)
        }
        ModuleMessage::Refused { module, .. } => readings::is_main_module(module),
        ModuleMessage::BuildFailed { of_nvidia, .. }
        | ModuleMessage::BuildFault { of_nvidia, .. } => *of_nvidia,
        ModuleMessage::HeadersMissing { .. }
        | ModuleMessage::CompilerDiffers
        | ModuleMessage::OtherKeyRefused { .. } => false,
    }
}

fn summary_of(message: &ModuleMessage) -> String {
    match message {
        ModuleMessage::NotFound { .. } => "no nvidia module is found to be loaded",
        ModuleMessage::Refused { .. } => "the kernel refuses to load the nvidia module",
        ModuleMessage::OtherKeyRefused { .. } => "the kernel refuses modules for their key",
        ModuleMessage::BuildFailed { .. }
        | ModuleMessage::BuildFault { .. }
        | ModuleMessage::HeadersMissing { .. }
        | ModuleMessage::CompilerDiffers => "the nvidia module cannot be built",
    }
    .to_owned()
}

/// Lines of the kernel log with which the driver gives a GPU up.
const FAULTS: [&str; 15] = [
    "OPEN_DC_ONLY",
    "OPEN_UNSUPPORTED_OLD",
    "GSP_NVDEC0",
    "GSP_VER_MISMATCH",
    "GSP_VER_UNKNOWN",
    "GSP_WPR2_UP",
    "VBIOS_ROM",
    "GSP_RPC_TIMEOUT_OLD",
    "GSP_HEARTBEAT_RM",
    "GSP_HEARTBEAT_LIBOS",
    "GSP_CLASS",
    "UVM_GLOBAL_ERROR",
    "UVM_FATAL_REPORTED",
    "UVM_RFMR",
    "NVLINK_RXDET",
];

/// What CUDA has got over since is no symptom; a crash of the kernel is one all the same.
fn faulted(facts: &Facts, works: bool) -> Option<(String, Origin)> {
    if let Some(event) = facts.log.first(&FAULTS).filter(|_| !works) {
        let text = facts::observed::clean_excerpt(&event.text);
        return Some((format!("the kernel log says: {text}"), event.origin.clone()));
    }
    if let Some((function, event)) = readings::driver_crash(facts) {
        let summary = format!("the kernel crashed or spins in {function}");
        return Some((summary, event.origin.clone()));
    }
    let told = facts.firmware.silence_told.first().filter(|_| !works)?;
    Some(("a GSP that stopped answering is told of".to_owned(), told.origin.clone()))
}
