//! What a command line itself says, beside its output: how it was wrapped, that it did not end,
//! that it changed the module's parameters, that the shell did not find it.

use super::{Output, engine};
use crate::model::Facts;
use crate::observed::{Observed, Seen};

/// Before the output is read.
pub(super) fn before(output: &Output<'_>, command_line: u32, facts: &mut Facts) {
    if let Some(words) = output.command.container() {
        engine::request(words, output.typed(command_line), facts);
    }
    for (name, value) in &output.command.assignments {
        let relevant =
            ["CUDA_", "NVIDIA_", "LD_", "NCCL_"].iter().any(|prefix| name.starts_with(prefix));
        if relevant {
            let origin = output.typed(command_line);
            facts.process.env.insert(name.clone(), Seen::new(value.clone(), origin));
        }
    }
    not_found(output, facts);
}

/// `bash: nvidia-smi: command not found`.
fn not_found(output: &Output<'_>, facts: &mut Facts) {
    for (number, line) in crate::parse::numbered(output.text).take(3) {
        if line.contains("nvidia-smi") && line.contains("not found") {
            facts.mentions_gpu = true;
            let origin = output.item.origin_at(number, line);
            facts.library.smi = Observed::Absent(origin);
        }
    }
}

/// After the output was read: what the command changed holds from here on.
pub(super) fn after(output: &Output<'_>, command_line: u32, facts: &mut Facts) {
    let loads = matches!(output.command.program(), "modprobe" | "insmod")
        && !output.command.has_option("-r")
        && output.command.operands().any(|word| matches!(word, "nvidia_uvm" | "nvidia-uvm"));
    if !loads || output.text.contains("ERROR") || output.text.contains("FATAL") {
        return;
    }
    let switch = output.command.operands().find_map(|word| word.strip_prefix("uvm_disable_hmm="));
    if let Some(value) = switch {
        let origin = output.typed(command_line);
        facts.module.uvm_disable_hmm = Observed::seen(matches!(value, "1" | "Y" | "y"), origin);
    }
}
