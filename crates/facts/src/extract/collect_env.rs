//! PyTorch's collect_env becomes facts of several layers.

use super::places::Places;
use super::smi::enter_gpu;
use crate::model::Facts;
use crate::model::nvml::NvmlGpu;
use crate::observed::{Observed, Origin, Seen};
use crate::parse::At;
use crate::parse::collect_env::{self, CollectEnv};
use crate::raw::RawItem;
use crate::version::KernelRelease;

/// Enters one output. A text that is none leaves the facts as they are.
pub fn apply(item: &RawItem, facts: &mut Facts) {
    let Some(text) = item.text() else { return };
    let parsed = collect_env::parse(&text);
    if parsed.value.is_empty() {
        return;
    }
    super::complaints::note(item, &parsed.complaints, facts);
    let places = Places::new(item, &text);
    let at = |line: u32| places.at(line);
    enter_framework(&parsed.value, &at, facts);
    enter_host(&parsed.value, &at, facts);
    enter_driver(&parsed.value, &at, facts);
    for At { line, value: (name, value) } in parsed.value.env {
        facts.process.env.insert(name, Seen::new(value, at(line)));
    }
}

fn enter_framework(env: &CollectEnv, at: &impl Fn(u32) -> Origin, facts: &mut Facts) {
    let framework = &mut facts.framework;
    if let Some(torch) = &env.torch {
        framework.torch.or_better(Observed::seen(torch.value.clone(), at(torch.line)));
    }
    if let Some(At { line, value }) = env.available {
        framework.torch_available.or_later(Observed::seen(value, at(line)));
    }
    if let Some(At { line, value }) = env.nvcc {
        framework.nvcc.or_better(Observed::seen(value, at(line)));
    }
    let packages = env.packages.iter();
    framework
        .packages
        .extend(packages.map(|At { line, value }| Seen::new(value.clone(), at(*line))));
}

fn enter_host(env: &CollectEnv, at: &impl Fn(u32) -> Origin, facts: &mut Facts) {
    if let Some(At { line, value }) = &env.os {
        facts.host.os.or_better(Observed::seen(value.clone(), at(*line)));
    }
    if let Some(At { line, value }) = &env.kernel
        && let Some(release) = KernelRelease::parse(value)
    {
        facts.host.kernel.or_better(Observed::seen(release, at(*line)));
    }
    if let Some(At { line, value }) = &env.hypervisor {
        facts.host.hypervisor.or_better(Observed::seen(value.clone(), at(*line)));
    }
}

/// collect_env asks nvidia-smi for the driver version and the GPUs, so these are NVML's answers.
fn enter_driver(env: &CollectEnv, at: &impl Fn(u32) -> Origin, facts: &mut Facts) {
    if let Some(At { line, value }) = &env.driver {
        facts.mentions_gpu = true;
        facts.nvml.driver_version.or_better(Observed::seen(value.clone(), at(*line)));
    }
    for At { line, value: (index, name) } in &env.gpus {
        let gpu = NvmlGpu { index: *index, name: Some(name.clone()), ..NvmlGpu::default() };
        enter_gpu(gpu, at(*line), facts);
    }
}
