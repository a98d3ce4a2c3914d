//! Commands that show single tasks: `ps`, and `ls -l` of the descriptors of a process.

use super::Output;
use crate::model::Facts;
use crate::parse::{numbered, ps};

pub(super) fn apply(output: &Output<'_>, facts: &mut Facts) -> bool {
    match output.command.program() {
        "ps" => {
            let flags = output.command.arguments();
            let aux = flags.iter().any(|word| {
                let letters = word.trim_start_matches('-');
                letters.contains('u') && letters.bytes().all(|byte| b"auxwf".contains(&byte))
            });
            for row in ps::rows(output.text, aux).iter().filter(|row| row.state == 'D') {
                let line = output.text.lines().nth(row.line.max(1) as usize - 1).unwrap_or("");
                facts.task_parts.row(row, &output.item.origin_at(row.line, line));
            }
            true
        }
        "ls" | "ll" => descriptors(output, facts),
        _ => false,
    }
}

/// `lrwx------ 1 root root 64 Nov 30 10:00 9 -> /dev/nvidia-uvm`
fn descriptors(output: &Output<'_>, facts: &mut Facts) -> bool {
    let mut operands = output.command.operands();
    let folder = operands
        .next()
        .and_then(|path| path.trim_end_matches('/').strip_prefix("/proc/")?.strip_suffix("/fd"));
    let Some(process) = folder else { return false };
    for (_, line) in numbered(output.text) {
        if let Some((head, target)) = line.split_once(" -> ")
            && let Some(descriptor) = head.split_ascii_whitespace().next_back()
            && let Ok(descriptor) = descriptor.parse()
        {
            facts.task_parts.link(process, descriptor, target.trim().to_owned());
        }
    }
    true
}
