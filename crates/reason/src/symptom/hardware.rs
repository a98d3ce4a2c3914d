//! Symptoms of the GPU and its bus: what the kernel log and NVML report of a GPU's own state.

use facts::model::nvml::{NvmlQuery, NvmlResult};
use facts::{Facts, Origin};

use super::{Symptom, SymptomId};
use crate::gpu_bars::{self, Bars};
use crate::gpu_state;
use crate::readings::{self, code};
use crate::xid_burst;

/// NVML_ERROR_GPU_IS_LOST and NVML_ERROR_RESET_REQUIRED (nvml.h).
const LOST_OR_LOCKED: [i64; 2] = [code::NVML_GPU_IS_LOST, code::NVML_RESET_REQUIRED];

/// Lines that report a fault of a GPU or of handing it over.
const LINES: [&str; 14] = [
    "GSP_GFW",
    "GFW_BOOT_WAIT",
    "FWSEC_INTERFACE",
    "GSP_FWSEC",
    "POWER_CABLE",
    "BAR_INVALID_LINE",
    "BAR_RESIZE_FATAL",
    "REMOVE_IN_USE",
    "UNBIND_LOCKED_OPEN",
    "ALREADY_BOUND",
    "PMU_HALTED",
    "CC_FATAL",
    "CC_DMA_DECRYPT",
    "RPC_GPU_LOST",
];

/// The Xid that a reader must know of. Those of programs count only while CUDA is not known to
/// work: they say nothing of the GPU.
pub(super) fn xid(facts: &Facts) -> Option<Symptom> {
    let bursts = xid_burst::bursts(facts);
    let own = bursts.iter().find_map(xid_burst::Burst::leading);
    let programs = bursts
        .first()
        .and_then(|burst| burst.xids().first().copied())
        .filter(|_| readings::cuda_works(facts).is_none());
    let xid = own.or(programs)?;
    let teller = if xid.is_quoted() { "the kernel log has" } else { "the input tells of" };
    let summary = format!("{teller} {}", xid_burst::named(xid.number));
    Some(symptom(SymptomId::GpuFaulted, Some(i64::from(xid.number)), summary, &xid.event.origin))
}

/// A module that refuses a program's libraries, where no program was seen to fail for it.
pub(super) fn refused_client(facts: &Facts) -> Option<Symptom> {
    if readings::cuda_works(facts).is_some() || readings::nvml_works(facts).is_some() {
        return None;
    }
    let event =
        facts.log.events.iter().find(|event| event.signature.starts_with("NVRM_API_MISMATCH"))?;
    let summary = "the nvidia module refuses libraries of another release".to_owned();
    Some(symptom(SymptomId::NvmlFails, None, summary, &event.origin))
}

/// What stands for a faulted GPU where no line of the driver's does.
pub(super) fn faulted(facts: &Facts) -> Option<Symptom> {
    let (summary, origin) = line(facts)
        .or_else(|| locked(facts))
        .or_else(|| memory(facts))
        .or_else(|| not_woken(facts))
        .or_else(|| told_off_bus(facts))
        .or_else(|| lost(facts))
        .or_else(|| switch(facts))
        .or_else(|| handing_over(facts))
        .or_else(|| link(facts))
        .or_else(|| without_room(facts))?;
    Some(symptom(SymptomId::GpuFaulted, None, summary, &origin))
}

fn symptom(id: SymptomId, code: Option<i64>, summary: String, origin: &Origin) -> Symptom {
    Symptom { id, code, summary, origin: origin.clone(), explained_by: Vec::new() }
}

fn line(facts: &Facts) -> Option<(String, Origin)> {
    let works = readings::cuda_works(facts).is_some();
    let event = facts.log.events.iter().find(|event| {
        // A GPU that belongs to a guest is no fault of a machine whose other GPUs work.
        LINES.contains(&event.signature) && !(works && event.signature == "ALREADY_BOUND")
    })?;
    let text = facts::observed::clean_excerpt(&event.text);
    Some((format!("the kernel log says: {text}"), event.origin.clone()))
}

/// NVML knows the GPU and says that it is lost or must be reset, or gives no handle for it.
fn locked(facts: &Facts) -> Option<(String, Origin)> {
    let tells = |query: &&NvmlQuery| match query.result {
        NvmlResult::Code(code) if LOST_OR_LOCKED.contains(&code) => true,
        NvmlResult::Code(code) => code != 0 && query.query.starts_with("nvmlDeviceGetHandle"),
        _ => false,
    };
    if let Some(query) = facts.nvml.queries.iter().find(tells)
        && let NvmlResult::Code(code) = query.result
    {
        let summary = format!("NVML answers {} for a GPU", super::named_nvml_code(code));
        return Some((summary, query.origin.clone()));
    }
    let asked = gpu_state::recovery_action(facts)?;
    Some((format!("the driver asks for a recovery of the GPU: {}", asked.value), asked.origin))
}

/// Uncorrectable memory errors that a program met, or spare rows that are used up.
fn memory(facts: &Facts) -> Option<(String, Origin)> {
    if let Some(told) = facts.nvml.memory_errors_told.first() {
        return Some((told.value.clone(), told.origin.clone()));
    }
    facts.nvml.gpus.iter().find_map(|gpu| {
        let health = &gpu.value.health;
        let failed = health.remap_failed == Some(true);
        let pending = health.remap_pending == Some(true);
        let summary = match (failed, pending) {
            (true, _) => "replacing a bad memory row has failed",
            (false, true) => "a bad memory row waits for a reset to be replaced",
            (false, false) => return None,
        };
        Some((summary.to_owned(), gpu.origin.clone()))
    })
}

fn not_woken(facts: &Facts) -> Option<(String, Origin)> {
    // A GPU that works has woken since.
    if readings::cuda_works(facts).is_some() {
        return None;
    }
    let event = facts.log.with("PCI_D3COLD").find(|event| gpu_state::is_about_gpu(facts, event))?;
    let text = facts::observed::clean_excerpt(&event.text);
    Some((format!("the kernel log says: {text}"), event.origin.clone()))
}

/// A window of a GPU that the kernel could not place, where no driver has the GPU.
fn without_room(facts: &Facts) -> Option<(String, Origin)> {
    let bars = Bars::of(facts);
    let works = readings::cuda_works(facts).is_some() || readings::nvml_works(facts).is_some();
    let origin = bars.no_space.filter(|_| bars.placed.is_none() && !works)?;
    Some((gpu_bars::NO_SPACE.to_owned(), origin))
}

fn told_off_bus(facts: &Facts) -> Option<(String, Origin)> {
    let event = facts.log.first(&["FALLEN_BUS_TOLD"])?;
    let said = facts::observed::clean_excerpt(&event.text);
    Some((format!("the input says: {said}"), event.origin.clone()))
}

fn lost(facts: &Facts) -> Option<(String, Origin)> {
    let lost = facts.pci.lost.first()?;
    Some(("a GPU's configuration space reads as all ones".to_owned(), lost.origin.clone()))
}

fn switch(facts: &Facts) -> Option<(String, Origin)> {
    let event = gpu_state::fatal_sxid(facts)?;
    let sxid = event.get("sxid").unwrap_or("?");
    Some((format!("an NVSwitch reports the fatal SXid {sxid}"), event.origin.clone()))
}

fn handing_over(facts: &Facts) -> Option<(String, Origin)> {
    let told = facts.platform.unbind_told.first()?;
    Some((told.value.clone(), told.origin.clone()))
}

/// A loaded GPU whose link is below what GPU and slot can do, or one whose link reports errors.
fn link(facts: &Facts) -> Option<(String, Origin)> {
    let slow = gpu_state::slow_link(facts);
    slow.or_else(|| gpu_state::link_errors(facts)).map(|seen| (seen.value, seen.origin))
}

/// GPUs that a machine's own driver is meant to drive. What is given to guests is not missing on a
/// machine that nobody complains of.
pub(super) fn expected_on_bus(facts: &Facts) -> usize {
    let nobody_complains = facts.live || readings::cuda_works(facts).is_some();
    let given_away = facts.pci.gpus().filter(|gpu| gpu_state::passthrough_driver(gpu).is_some());
    let given_away = if nobody_complains { given_away.count() } else { 0 };
    facts.pci.gpus().count().saturating_sub(given_away)
}
