//! The lines of the kernel modules and of NVML.

use facts::model::module::Flavour;
use facts::model::nvml::NvmlResult;
use facts::{Facts, Observed};

use super::hardware::counted;
use super::{Line, not_seen};
use crate::readings;
use crate::symptom::named_nvml_code;

/// `nvidia 590.48.01 open; nvidia_uvm loaded, HMM not disabled`.
pub(super) fn module(facts: &Facts) -> Line {
    if let Some(version) = facts.module.version() {
        let flavour = facts.module.flavour().map_or("", |seen| match seen.value {
            Flavour::Open => " open",
            Flavour::Proprietary => " proprietary",
        });
        let uvm = uvm_words(facts).map(|words| format!("; {words}")).unwrap_or_default();
        return Line::ok(format!("nvidia {}{flavour}{uvm}", version.value));
    }
    if let Some(version) = facts.nvml.driver_version.value() {
        return Line::ok(format!("nvidia {version}, as NVML tells"));
    }
    if readings::module_loaded(facts).is_some() {
        return Line::unknown(match facts.nvml.driver_told.value() {
            Some(version) => format!("nvidia is loaded; {version} is told"),
            None => "nvidia is loaded; its version was not seen".to_owned(),
        });
    }
    if facts.module.nvrm.absent().is_some() || facts.module.loaded("nvidia").absent().is_some() {
        return Line::unknown("nvidia is not loaded");
    }
    if let Some(version) = facts.nvml.driver_told.value() {
        return Line::unknown(format!("{version} is told; whether it is loaded was not seen"));
    }
    Line::unknown(not_seen("module version", &facts.module.nvrm))
}

fn uvm_words(facts: &Facts) -> Option<String> {
    let loaded = readings::uvm_registered(facts).is_some();
    if !loaded {
        return readings::uvm_missing(facts).map(|_| "nvidia_uvm not loaded".to_owned());
    }
    let hmm = match facts.module.uvm_disable_hmm.value() {
        Some(true) => ", HMM disabled",
        Some(false) => ", HMM not disabled",
        None => "",
    };
    Some(format!("nvidia_uvm loaded{hmm}"))
}

/// A line of its own only when it is missing beneath a loaded driver.
pub(super) fn uvm(facts: &Facts) -> Option<Line> {
    readings::module_loaded(facts)?;
    if readings::uvm_registered(facts).is_some() || readings::cuda_works(facts).is_some() {
        return None;
    }
    readings::uvm_missing(facts).map(|_| Line::fault("nvidia_uvm is not loaded"))
}

/// `8 GPUs in 2.1 s`.
pub(super) fn nvml(facts: &Facts) -> Line {
    let hung: Vec<&str> = facts.nvml.hung().map(|query| query.query.as_str()).collect();
    match &facts.nvml.init {
        Observed::Seen(seen) => match seen.value {
            NvmlResult::Code(0) => {}
            NvmlResult::Code(code) => {
                return Line::fault(format!("answers {}", named_nvml_code(code)));
            }
            NvmlResult::Hung => return Line::fault("nvmlInit does not return"),
            NvmlResult::Crashed => return Line::fault("the process dies inside nvmlInit"),
        },
        unseen if facts.nvml.gpus.is_empty() && hung.is_empty() => {
            return Line::unknown(match super::cuda::cut_short(facts, "nvml") {
                Some(time) => format!("NVML had {time} only, too little for it to answer"),
                None => not_seen("NVML", unseen),
            });
        }
        Observed::Absent(_) | Observed::Denied(..) | Observed::Unknown(_) => {}
    }
    let answered = answered(facts);
    match hung.first() {
        Some(query) => Line::fault(format!("{query} does not return; {answered}")),
        None => Line::ok(answered),
    }
}

fn answered(facts: &Facts) -> String {
    let listed = u32::try_from(facts.nvml.gpus.len()).unwrap_or(u32::MAX);
    let count = facts.nvml.count.value().copied().or((listed > 0).then_some(listed));
    let Some(count) = count else {
        return "other queries answer".to_owned();
    };
    let gpus = counted(usize::try_from(count).unwrap_or(0), "GPU");
    match measured_seconds(facts) {
        Some(seconds) => format!("{gpus} in {seconds:.1} s"),
        None => gpus,
    }
}

/// The wall time of the probe of NVML, where there was one that ended.
fn measured_seconds(facts: &Facts) -> Option<f64> {
    let run = facts.probes.iter().find(|run| run.probe == "nvml" && !run.hung())?;
    Some(run.seconds)
}
