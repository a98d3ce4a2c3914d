//! Pasted text: cut at its prompts, each output to the reader of its command, and every line to
//! the readers of loose text.

use super::{commands, loose, strace, tasks};
use crate::model::Facts;
use crate::parse::{decode, transcript};
use crate::raw::{ItemName, RawItem};

/// Reads a pasted text.
pub(super) fn apply(item: &RawItem, facts: &mut Facts) {
    let Some(bytes) = item.bytes() else { return };
    let mut text = decode::plain_text(bytes);
    for _ in 0..QUOTING_DEPTH {
        match unquoted(&text) {
            Some(inner) => text = inner,
            None => break,
        }
    }
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

/// How often a quotation may have been quoted.
const QUOTING_DEPTH: usize = 3;

/// From how many quoted lines in a row on they are a quotation. A prompt `>` has its output below it.
const QUOTED_LINES: usize = 3;

/// A mail or a forum quotes each line with `> `; when most lines are quoted, or several in a row,
/// the marks go. Lines stay where they are. `None` for a text without a quotation.
fn unquoted(text: &str) -> Option<String> {
    let filled = text.lines().filter(|line| !line.trim().is_empty()).count();
    // An empty line of a quotation is a mark alone; a prompt of Python's is none.
    let is_quoted = |line: &str| line == ">" || line.starts_with("> ");
    let quoted = text.lines().filter(|line| is_quoted(line.trim())).count();
    if quoted < QUOTED_LINES.min(filled) || quoted == 0 {
        return None;
    }
    let all = quoted * 10 >= filled * 7;
    let lines: Vec<&str> = text.lines().collect();
    let strip = |line: &str| {
        let rest = line.trim_start();
        rest.strip_prefix("> ").or_else(|| rest.strip_prefix('>')).unwrap_or(line).to_owned()
    };
    let mut out: Vec<String> = Vec::with_capacity(lines.len() + 1);
    for run in lines.chunk_by(|one, next| is_quoted(one.trim()) == is_quoted(next.trim())) {
        let goes = all || run.len() >= QUOTED_LINES && is_quoted(run[0].trim());
        out.extend(run.iter().map(|line| if goes { strip(line) } else { (*line).to_owned() }));
    }
    if text.ends_with('\n') {
        out.push(String::new());
    }
    Some(out.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::unquoted;

    #[test]
    fn quotations_lose_their_marks() {
        let quoted = "I see\n> a\n> b\n>\n> c\nand then\nmore\nof it\nand so on\n";
        let plain = "I see\na\nb\n\nc\nand then\nmore\nof it\nand so on\n";
        assert_eq!(unquoted(quoted).as_deref(), Some(plain));
        assert_eq!(unquoted("> a\n> b\n").as_deref(), Some("a\nb\n"));
        for text in ["> ls\na b\n> pwd\n/root\n", ">>> 1\n1\n", "", "plain\n"] {
            assert_eq!(unquoted(text), None);
        }
    }
}
