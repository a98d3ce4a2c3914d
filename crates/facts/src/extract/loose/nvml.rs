//! What NVML answered, as nvidia-smi and other programs print it.

use super::Line;
use super::pattern::{captures, matches, pattern};
use crate::model::Facts;
use crate::model::nvml::{NvmlQuery, NvmlResult};
use crate::observed::Observed;
use crate::parse::smi_message::{self, SmiMessage};
use crate::version::DriverVersion;

pattern! { LIBRARY_VERSION = r"(?i)NVML library version:\s*(?P<version>\d+\.\d+(?:\.\d+)?)" }
pattern! {
    HANG = r"(?i)\bnvidia-smi\b[^.\n]{0,60}\b(?:hangs?|hung|freezes|frozen|gets stuck|is stuck|never returns?|does not return|blocks)\b"
}

pattern! {
    /// How ollama tells what nvmlInit or a query after it gave: `nvml vram init failure: 18`.
    INIT_CODE = r"\bnvml(?: \w+)? init failure: (?P<code>\d{1,3})\b"
}

pub(super) fn read(line: &Line<'_>, facts: &mut Facts) {
    if let Some(found) = captures(&LIBRARY_VERSION, line.text)
        && let Some(version) = found.name("version").and_then(|v| DriverVersion::parse(v.as_str()))
    {
        facts.library.reported = Observed::seen(version, line.origin());
    }
    if matches(&HANG, line.text) && !line.text.to_lowercase().contains("no longer") {
        facts.mentions_gpu = true;
        facts.nvml.queries.push(NvmlQuery {
            query: "nvidia-smi".to_owned(),
            device: None,
            result: NvmlResult::Hung,
            ms: None,
            origin: line.origin(),
        });
    }
    if let Some(found) = captures(&INIT_CODE, line.text)
        && let Ok(code) = found["code"].parse()
    {
        facts.mentions_gpu = true;
        facts.nvml.init.or_better(Observed::seen(NvmlResult::Code(code), line.origin()));
        return;
    }
    if one_gpu(line, facts) {
        return;
    }
    // A line may hold CUDA's message as well; NVML's own words begin here.
    let own = line.text.find("Failed to initialize NVML").and_then(|start| line.text.get(start..));
    let Some(text) = nvabi::error_text::in_line(own.unwrap_or(line.text)) else { return };
    if !matches!(text.api, "nvml" | "nvidia-smi") || !about_nvml(line, text.code) {
        return;
    }
    facts.mentions_gpu = true;
    let Some(code) = text.code else { return };
    let failed = Observed::seen(NvmlResult::Code(code), line.origin());
    // What nvidia-smi itself prints is its answer, whatever else the sentence around it tells.
    if line.has("Failed to initialize NVML") || super::statement::condition(line.text).is_none() {
        facts.nvml.init.or_better(failed);
    }
}

/// nvidia-smi's sentence on one GPU that does not answer, within prose. NVML itself does.
fn one_gpu(line: &Line<'_>, facts: &mut Facts) -> bool {
    if !line.has("nable to determine the device handle for ") {
        return false;
    }
    for message in smi_message::parse(line.text).value {
        if let SmiMessage::DeviceFailed(_, Some(code)) = message.value {
            facts.mentions_gpu = true;
            facts.nvml.queries.push(NvmlQuery {
                query: "nvmlDeviceGetHandleByPciBusId".to_owned(),
                device: None,
                result: NvmlResult::Code(code),
                ms: None,
                origin: line.origin(),
            });
        }
    }
    true
}

/// "Unknown Error" and "Insufficient Permissions" are everybody's words; the line must speak of
/// NVML, nvidia-smi or the NVIDIA driver.
fn about_nvml(line: &Line<'_>, code: Option<i64>) -> bool {
    // The container hook has errors of its own, and passes NVML's on by name.
    if line.has("nvidia-container-cli:")
        && !line.has("nvml error")
        && !line.has("Failed to initialize")
    {
        return false;
    }
    // An engine that finds no program in the image.
    if line.has("executable file not found") {
        return false;
    }
    // The kernel's lines on a GPU that needs a reset are none of NVML's.
    if line.has("NVRM:") || line.has("nvidia-uvm:") {
        return false;
    }
    let lower = line.text.to_lowercase();
    // A word or two that stand for a code elsewhere too: "chipset not supported" in a matrix.
    let generic =
        matches!(code, Some(3 | 6 | 10 | 999)) && !lower.contains("no devices were found");
    let reported =
        ["nvml", "fail", "error", "unable", "could"].iter().any(|word| lower.contains(word));
    if generic && !reported {
        return false;
    }
    ["nvml", "nvidia", "no devices were found", "driver/library", "gpu"]
        .iter()
        .any(|word| lower.contains(word))
}
