//! Faults that container engines, hooks and orchestrators report, wherever the message stands:
//! a shell, a journal, an event of Kubernetes, a report that wraps its lines.

use super::fault_words::faults;
use super::pattern::{matches, pattern};
use super::{Line, bounded};
use crate::model::Facts;
use crate::model::engine::EngineFault;
use crate::model::framework::FrameworkMessage;
use crate::observed::{Observed, Seen, clean_excerpt};
use crate::raw::RawItem;

/// Words of which each message holds one; a line without any is passed over at little cost.
const MARKS: [&str; 34] = [
    "nvidia-container-",
    "bpf",
    "BPF",
    "devices.allow",
    "CDI",
    "cdi",
    "nvidia.com/gpu",
    "could not select device driver",
    "nvproxy",
    "client sync file",
    "list-supported-drivers",
    "fulfil mount",
    "stat'ing file",
    "to rootfs",
    "driver is in use",
    "loaded with refcount",
    "nvidia driver components",
    "pre-installed on the node",
    "driver rpc error",
    "load library failed",
    "untime name",
    "untime specified",
    "unknown runtime",
    "no runtime for",
    "NVIDIA Container Toolkit?",
    "default runtime to",
    "could not load NVML library",
    "mknod",
    "crun",
    "OCI runtime",
    "executable file not found",
    "subsystem devices",
    "gathering device information",
    "change root directory",
];

pattern! { KEPT = r"(?i)NVIDIA GPU driver is already pre-installed on the node" }

pattern! { NO_SMI = r#"exec: \\*"?nvidia-smi\\*"?: (?:stat [^:]{1,60}: )?executable file not found"# }
pattern! { TOO_OLD = r"(?i)requirement error: unsatisfied condition: [^\n]{0,80}\b(?:cuda|driver)\s*[>=]" }

/// Most faults that are kept: a pod that restarts for ever says the same for ever.
const LIMIT: usize = 64;

/// How many lines a message may go on over, when a terminal or a mail wrapped it.
const WRAPPED_LINES: usize = 3;

/// Reads every message in a text.
pub(super) fn apply(item: &RawItem, text: &str, facts: &mut Facts) {
    let mut rest = text.lines();
    for (number, line) in crate::parse::numbered(text) {
        rest.next();
        let line = bounded(line);
        if facts.sandbox.engine.faults.len() >= LIMIT {
            return;
        }
        if !MARKS.iter().any(|mark| line.contains(mark)) {
            continue;
        }
        let window = window(line, rest.clone());
        let at = Line { item, number, text: line };
        for fault in faults(&window, line.len()) {
            enter(fault, &at, facts);
        }
        notices(&at, facts);
    }
}

/// The line and what may be its continuation.
fn window<'a>(line: &str, following: impl Iterator<Item = &'a str>) -> String {
    let mut out = line.to_owned();
    for next in
        following.take(WRAPPED_LINES).map(bounded).take_while(|next| !next.trim().is_empty())
    {
        out.push(' ');
        out.push_str(next.trim());
    }
    out
}

/// The hook's failure to load a library is not that of a program in a container or on the host.
fn not_the_programs(line: &Line<'_>, facts: &mut Facts) {
    let own = line.origin();
    for error in [&mut facts.library.nvml_load_error, &mut facts.library.cuda_load_error] {
        let same = error
            .origin()
            .is_some_and(|origin| origin.input == own.input && origin.line == own.line);
        if same {
            *error = Observed::default();
        }
    }
}

fn enter(fault: EngineFault, line: &Line<'_>, facts: &mut Facts) {
    facts.mentions_gpu = true;
    if matches!(fault, EngineFault::HookLacksLibrary(_)) {
        not_the_programs(line, facts);
    }
    let sandbox = &mut facts.sandbox;
    let text = clean_excerpt(line.text);
    // A line that the reader of hook messages has had already is one message, not two.
    if !sandbox.engine_messages.iter().any(|known| known.value.1 == text) {
        sandbox.engine_messages.push(Seen::new((kind(&fault), text), line.origin()));
    }
    sandbox.engine.faults.push(Seen::new(fault, line.origin()));
}

/// The short id under which the message is shown among those of engines.
fn kind(fault: &EngineFault) -> &'static str {
    match fault {
        EngineFault::CdiUnresolvable(_)
        | EngineFault::CdiUnknown(_)
        | EngineFault::PathMissing(_) => "cdi",
        EngineFault::NoGpuRuntime(_) | EngineFault::PluginLacksDriver => "driver",
        EngineFault::GvisorVersion(_) | EngineFault::GvisorCall(_) => "gvisor",
        EngineFault::HookTimedOut => "rpc",
        EngineFault::DriverInUse(_) => "operator",
        EngineFault::DeviceProgram(..)
        | EngineFault::DeviceList(_)
        | EngineFault::NoDeviceController
        | EngineFault::UnknownDevice(_)
        | EngineFault::HookLacksLibrary(_)
        | EngineFault::DriverRootMissing
        | EngineFault::NodeMissing(_)
        | EngineFault::LibraryInImage(_)
        | EngineFault::MknodRefused(_) => "cli",
    }
}

/// Lines that are no fault and belong to the same programs.
fn notices(line: &Line<'_>, facts: &mut Facts) {
    if matches(&KEPT, line.text) {
        facts.mentions_gpu = true;
        facts.sandbox.engine.host_driver_kept = Observed::seen((), line.origin());
    }
    if matches(&NO_SMI, line.text) {
        facts.mentions_gpu = true;
        facts.library.smi.or_better(Observed::Absent(line.origin()));
    }
    // The image's own condition on the driver, which the hook checks before the container starts.
    let framework = &mut facts.framework;
    let too_old = FrameworkMessage::DriverTooOld { found: None };
    let known = framework.messages.iter().any(|(message, _)| *message == too_old);
    if matches(&TOO_OLD, line.text) && !known {
        framework.messages.push((too_old, line.origin()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_expression_compiles() {
        assert!([&KEPT, &NO_SMI, &TOO_OLD].iter().all(|pattern| pattern.is_some()));
    }

    #[test]
    fn a_wrapped_message_is_one() {
        let mut facts = Facts::default();
        let text = "nvidia-container-cli: mount error: failed to add device rules: unable to find any\nexisting device filters attached to the cgroup: bpf_prog_query(BPF_CGROUP_DEVICE)\nfailed: operation not permitted: unknown.\n";
        let item = RawItem::new(crate::raw::ItemName::Text("x".into()), text.as_bytes());
        apply(&item, text, &mut facts);
        assert_eq!(facts.sandbox.engine.faults.len(), 1);
    }
}
