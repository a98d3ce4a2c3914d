//! The same outputs in another order.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use facts::parse::command_line;
use facts::parse::transcript::{self, Segment};

/// Programs that only look.
const LOOKING: [&str; 16] = [
    "cat",
    "ls",
    "uname",
    "lsmod",
    "dmesg",
    "journalctl",
    "lspci",
    "modinfo",
    "grep",
    "env",
    "printenv",
    "id",
    "hostname",
    "dpkg",
    "rpm",
    "ldconfig",
];

/// Turns round the order of outputs that stand side by side and of which none depends on another:
/// commands that only look, each program once. What a command changes, and what a person tells
/// between two, comes before what follows it as it did.
pub(crate) fn in_other_order(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut moved = lines.clone();
    for run in runs(&transcript::split(text)) {
        let first = run.first().map_or(0, |block| block.from);
        let turned = run.iter().rev().flat_map(|block| &lines[block.from..block.to]);
        for (at, line) in (first..).zip(turned) {
            moved[at] = line;
        }
    }
    moved.iter().flat_map(|line| [*line, "\n"]).collect()
}

/// A prompt and its output, as indices of lines.
struct Block {
    from: usize,
    to: usize,
    program: String,
}

/// Runs of two and more blocks that may change places.
fn runs(segments: &[Segment]) -> Vec<Vec<Block>> {
    let mut runs: Vec<Vec<Block>> = vec![Vec::new()];
    for segment in segments {
        let block = block(segment);
        let last = runs.last_mut().unwrap();
        let joins = block.as_ref().is_some_and(|block| {
            let is_next = last.last().is_none_or(|before| before.to == block.from);
            is_next && last.iter().all(|other| other.program != block.program)
        });
        match block {
            Some(block) if joins => last.push(block),
            Some(block) => runs.push(vec![block]),
            None => runs.push(Vec::new()),
        }
    }
    runs.retain(|run| run.len() > 1);
    runs
}

fn block(segment: &Segment) -> Option<Block> {
    let command = segment.command.as_ref()?;
    // A caption and a fence stand between a command and its output, or the command has many lines.
    let from = (segment.command_line as usize).checked_sub(1)?;
    (segment.first_line == segment.command_line + 1).then_some(())?;
    let [simple] = command_line::parse(command).try_into().ok()?;
    let program = simple.program().to_owned();
    let looks =
        LOOKING.contains(&program.as_str()) || program == "nvidia-smi" && simple.words.len() == 1;
    let plain = simple.wrappers.is_empty() && simple.assignments.is_empty();
    let to = from + 1 + segment.text.lines().count();
    // Prose at the end of an output tells what comes next.
    let tells = segment.text.lines().any(|line| line.trim().is_empty());
    (looks && plain && !tells).then_some(Block { from, to, program })
}
