//! The head line: program, machine, container, GPUs.

use super::machine;
use crate::{Report, VERSION};

/// The parts of the head line, to be joined by a middle dot.
pub fn head(report: &Report<'_>) -> Vec<String> {
    let machine = machine(report.facts);
    let mut parts = vec![format!("gpudx {VERSION}")];
    if !report.facts.live {
        parts.push(report.input.to_owned());
    }
    let kernel = machine.kernel.map(|kernel| format!("kernel {kernel}"));
    let system: Vec<String> = machine.os.into_iter().chain(kernel).collect();
    match (machine.hostname, system.is_empty()) {
        (Some(name), true) => parts.push(name),
        (Some(name), false) => parts.push(format!("{name} ({})", system.join(", "))),
        (None, false) => parts.push(system.join(", ")),
        (None, true) => {}
    }
    parts.extend(machine.hypervisor.map(|hypervisor| match hypervisor.as_str() {
        "unknown" => "in a virtual machine".to_owned(),
        _ => format!("guest of {hypervisor}"),
    }));
    parts.extend(machine.container.map(|container| format!("in {container}")));
    let gpus: Vec<String> =
        machine.gpus.iter().map(|(name, count)| format!("{count} × {name}")).collect();
    if !gpus.is_empty() {
        parts.push(gpus.join(" + "));
    }
    parts
}
