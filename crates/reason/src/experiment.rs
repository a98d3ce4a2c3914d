//! Experiments: probes that cost more than they tell on a sound machine, and when they are worth
//! it. Pure; only the program that called runs them and weighs again.

mod ladder;
#[cfg(test)]
mod tests;

use facts::{Facts, Origin};

pub use self::ladder::{Rung, beyond_init, control, due, ladder, no_more, usual};

use crate::readings;

/// A further probe that is worth running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Experiment {
    /// cuInit answers 0, and something makes it doubtful that more than cuInit works: create a
    /// context, allocate, copy, run a kernel. The reason, and where it was seen.
    ///
    /// A context takes as long as cuInit itself (0.12 s on an H200, driver 580.159.04), which a
    /// machine without such a sign need not pay.
    Context(String, Origin),
}

/// The experiment that the facts call for, if any.
pub fn wanted(facts: &Facts) -> Option<Experiment> {
    readings::cuda_works(facts)?;
    if facts.cuda.trials.iter().any(|trial| trial.stage >= facts::model::cuda::Stage::Context) {
        return None;
    }
    let (reason, origin) = sign_on_a_gpu(facts).or_else(|| sign_in_the_log(facts))?;
    Some(Experiment::Context(reason, origin))
}

/// NVML says something of a GPU that contexts, and not cuInit, run into.
fn sign_on_a_gpu(facts: &Facts) -> Option<(String, Origin)> {
    facts.nvml.gpus.iter().find_map(|gpu| {
        let is = |field: &Option<String>, fine: &[&str]| {
            field.as_deref().filter(|text| !fine.contains(text)).map(str::to_owned)
        };
        let sign = is(&gpu.value.compute_mode, &["Default", "N/A"])
            .map(|mode| format!("compute mode {mode}"))
            .or_else(|| {
                is(&gpu.value.recovery_action, &["None", "N/A"])
                    .map(|action| format!("recovery action {action}"))
            })
            .or_else(|| is(&gpu.value.virtualization, &["None", "Pass-Through", "N/A"]))
            .or_else(|| gpu.value.mig.filter(|mig| *mig).map(|_| "MIG is on".to_owned()))
            .or_else(|| nearly_full(gpu.value.memory_mib))?;
        Some((sign, gpu.origin.clone()))
    })
}

/// Less than a sixteenth of the memory is free.
fn nearly_full(memory_mib: Option<(u64, u64)>) -> Option<String> {
    let (used, total) = memory_mib?;
    let free = total.saturating_sub(used);
    (total > 0 && free < total / 16).then(|| format!("{free} MiB of memory are free"))
}

/// The kernel log reports a fault of a GPU.
fn sign_in_the_log(facts: &Facts) -> Option<(String, Origin)> {
    let (xid, event) = facts.log.xids().next()?;
    Some((format!("the kernel log has Xid {xid}"), event.origin.clone()))
}
