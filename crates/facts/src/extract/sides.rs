//! Two sides in one input: the container, where NVML fails, and its host, where it answers. A
//! report shows both, in either order; what counts is the failure, and that the host works is
//! evidence.

use crate::model::Facts;
use crate::model::host::ContainerKind;
use crate::model::nvml::NvmlResult;
use crate::observed::{Observed, Seen};

/// Gives the failure its place when the host's answer came after it.
pub(super) fn apply(facts: &mut Facts) {
    let engine = &facts.sandbox.engine;
    let Some(failure) = engine.nvml_failures.last().cloned() else { return };
    let contained = facts.host.container.value().is_some_and(|kind| *kind != ContainerKind::None);
    if !contained || engine.nvml_works_inside.is_seen() {
        return;
    }
    let works = match &facts.nvml.init {
        Observed::Seen(Seen { value: NvmlResult::Code(0), origin }) => Some(origin.clone()),
        _ => facts.nvml.gpus.first().map(|gpu| gpu.origin.clone()),
    };
    let Some(origin) = works else { return };
    facts.sandbox.host_has_gpus.or_better(Observed::seen(true, origin));
    facts.nvml.init = Observed::seen(NvmlResult::Code(failure.value), failure.origin);
}
