//! Experiments: probes that cost more than they tell on a sound machine, and when they are worth
//! it. Pure; only the program that called runs them and weighs again.

use facts::{Facts, Origin};

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

#[cfg(test)]
mod tests {
    use facts::model::cuda::{Stage, Trial, TrialResult};
    use facts::model::nvml::NvmlGpu;
    use facts::{Origin, Seen};

    use super::*;

    fn working() -> Facts {
        let mut facts = Facts::default();
        facts.cuda.trials.push(Trial {
            stage: Stage::Device,
            result: TrialResult::Code(0),
            fresh_process: Some(true),
            hmm_disabled: None,
            seconds: None,
            traced: false,
            what: "cuInit".to_owned(),
            under: None,
            origin: Origin::item("probe:cuinit#1"),
        });
        facts
    }

    fn with_gpu(gpu: NvmlGpu) -> Facts {
        let mut facts = working();
        facts.nvml.gpus.push(Seen::new(gpu, Origin::item("probe:nvml#1")));
        facts
    }

    #[test]
    fn a_sound_machine_pays_for_no_context() {
        assert_eq!(wanted(&working()), None);
        let mode = |mode: &str| NvmlGpu { compute_mode: Some(mode.into()), ..NvmlGpu::default() };
        assert_eq!(wanted(&with_gpu(mode("Default"))), None);
        assert!(wanted(&with_gpu(mode("Prohibited"))).is_some());
        let full = NvmlGpu { memory_mib: Some((80_000, 81_000)), ..NvmlGpu::default() };
        assert!(wanted(&with_gpu(full)).is_some());
    }

    #[test]
    fn no_experiment_where_cuinit_fails_or_a_context_was_made() {
        assert_eq!(wanted(&Facts::default()), None);
        let mut facts = with_gpu(NvmlGpu { mig: Some(true), ..NvmlGpu::default() });
        assert!(wanted(&facts).is_some());
        facts.cuda.trials[0].stage = Stage::Free;
        assert_eq!(wanted(&facts), None);
    }
}
