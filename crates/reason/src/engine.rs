//! Questions about container engines, hooks and policies that several causes ask.

use facts::model::engine::EngineFault;
use facts::model::node::NodeOpen;
use facts::model::nvml::NvmlResult;
use facts::{Errno, Facts, Observed, Origin, Seen};

use crate::readings;

/// The first fault of an engine for which `wanted` gives something.
pub(crate) fn fault<T>(
    facts: &Facts,
    wanted: impl Fn(&EngineFault) -> Option<T>,
) -> Option<Seen<T>> {
    facts.sandbox.engine.fault(wanted)
}

/// The last value of a setting of the engine or its toolkit.
pub(crate) fn setting(facts: &Facts, key: &str) -> Option<Seen<String>> {
    let found = facts.sandbox.settings.iter().rev().find(|setting| setting.value.0 == key)?;
    Some(Seen::new(found.value.1.clone(), found.origin.clone()))
}

/// Where it was said or seen that the engine runs without root.
pub(crate) fn rootless(facts: &Facts) -> Option<&Origin> {
    let engine = &facts.sandbox.engine;
    let seen = engine.rootless_seen.as_seen().or(engine.rootless.as_seen())?;
    seen.value.then_some(&seen.origin)
}

/// Where it was seen that the process is in a user namespace that does not map all ids.
pub(crate) fn user_namespace(facts: &Facts) -> Option<&Origin> {
    let seen = facts.sandbox.uid_map.as_seen()?;
    let whole = seen
        .value
        .iter()
        .any(|range| range.inside == 0 && range.outside == 0 && range.count == u32::MAX);
    (!whole).then_some(&seen.origin)
}

/// The nodes of the driver whose open failed so, with where that was seen.
pub(crate) fn refused_opens(facts: &Facts, errno: Errno) -> Vec<(String, Origin)> {
    let opens = facts.node.opens.iter();
    opens
        .filter(|(path, (open, _))| {
            path.starts_with("/dev/nvidia") && *open == NodeOpen::Failed(errno)
        })
        .map(|(path, (_, origin))| (path.clone(), origin.clone()))
        .collect()
}

/// Where it was seen that the driver works outside the container, or for any program at all.
pub(crate) fn driver_works(facts: &Facts) -> Option<Origin> {
    let told = facts.sandbox.host_has_gpus.as_seen().filter(|seen| seen.value);
    readings::nvml_works(facts)
        .or_else(|| told.map(|seen| seen.origin.clone()))
        .or_else(|| listed_gpus(facts))
}

/// nvidia-smi's table or list in an input whose last word on NVML is a failure: it came from
/// somewhere else than the container.
fn listed_gpus(facts: &Facts) -> Option<Origin> {
    let failed = matches!(facts.nvml.init.value(), Some(NvmlResult::Code(code)) if *code != 0);
    let version = facts.nvml.driver_version.as_seen().filter(|_| failed)?;
    (!facts.nvml.gpus.is_empty()).then(|| version.origin.clone())
}

/// A trial that worked under a condition that holds one of these words.
pub(crate) fn cured_by<'a>(facts: &'a Facts, words: &[&str]) -> Option<&'a Origin> {
    let cured = facts.cuda.trials.iter().find(|trial| {
        let under = trial.under.as_deref().map(str::to_lowercase).unwrap_or_default();
        trial.ok() && words.iter().any(|word| under.contains(word))
    })?;
    Some(&cured.origin)
}

/// The value of an observation that holds or not, when it is this one.
pub(crate) fn told(observed: &Observed<bool>, value: bool) -> Option<&Origin> {
    let seen = observed.as_seen()?;
    (seen.value == value).then_some(&seen.origin)
}
