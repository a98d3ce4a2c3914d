//! Pasted text: cut at its prompts, each output to the reader of its command, and every line to
//! the readers of loose text.

use super::{commands, loose, strace, tasks};
use crate::model::Facts;
use crate::parse::{decode, transcript};
use crate::raw::{ItemName, RawItem};

/// Reads a pasted text.
pub(super) fn apply(item: &RawItem, facts: &mut Facts) {
    let Some(bytes) = item.bytes() else { return };
    let text = unquoted(decode::plain_text(bytes));
    let label: std::sync::Arc<str> = match &item.name {
        ItemName::Text(label) => label.as_str().into(),
        other => other.to_string().into(),
    };
    facts.mentions_gpu |= speaks_of_gpus(&text);
    for segment in transcript::split(&text) {
        let name = match &segment.command {
            Some(line) => ItemName::Command(line.clone()),
            None => ItemName::Text(label.to_string()),
        };
        let mut piece = RawItem::new(name, segment.text.as_bytes());
        piece.cut_from = Some(match &item.cut_from {
            // The text is itself the tail of a longer one.
            Some((whole, first)) => (std::sync::Arc::clone(whole), first + segment.first_line - 1),
            None => (std::sync::Arc::clone(&label), segment.first_line),
        });
        piece.taken_at = item.taken_at;
        piece.partial = item.partial;
        if let Some(line) = &segment.command {
            commands::apply(line, segment.command_line, &piece, facts);
        } else {
            loose::apply(&piece, &strace::without_records(&segment.text), facts);
            strace::apply(&piece, &segment.text, facts);
            tasks::loose(&piece, &segment.text, facts);
        }
    }
}

/// Whether a text has a word of the field in it: what it is about, before anything is understood.
fn speaks_of_gpus(text: &str) -> bool {
    const WORDS: [&str; 12] = [
        "gpu", "GPU", "gpus", "GPUs", "cuda", "Cuda", "CUDA", "nvidia", "Nvidia", "NVIDIA", "NCCL",
        "cuDNN",
    ];
    let start = text.get(..text.len().min(SPOKEN_BYTES)).unwrap_or(text);
    // By chance such letters stand in bytes that are no text, too.
    let odd = start.chars().filter(|ch| *ch == char::REPLACEMENT_CHARACTER).count();
    if odd * 50 > start.len() {
        return false;
    }
    start.split(|ch: char| !ch.is_ascii_alphanumeric()).any(|word| WORDS.contains(&word))
}

/// How much of a text is looked through for these words; a log speaks of its driver by its lines.
const SPOKEN_BYTES: usize = 64 << 10;

/// A mail or a forum quotes each line with `> `; when most lines are quoted the marks go. Lines
/// stay where they are.
fn unquoted(text: String) -> String {
    let filled = text.lines().filter(|line| !line.trim().is_empty()).count();
    // An empty line of a quotation is a mark alone; a prompt of Python's is none.
    let is_quoted = |line: &str| line == ">" || line.starts_with("> ");
    let quoted = text.lines().filter(|line| is_quoted(line.trim())).count();
    if filled == 0 || quoted * 10 < filled * 7 {
        return text;
    }
    let strip = |line: &str| {
        let rest = line.trim_start();
        rest.strip_prefix("> ").or_else(|| rest.strip_prefix('>')).unwrap_or(line).to_owned()
    };
    let mut out: Vec<String> = text.lines().map(strip).collect();
    if text.ends_with('\n') {
        out.push(String::new());
    }
    out.join("\n")
}
