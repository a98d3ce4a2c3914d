//! Lines that stand for others which whoever pasted an output left out.

/// Words with which people say so.
const WORDS: [&str; 9] = [
    "snip",
    "snipped",
    "skipped",
    "omitted",
    "truncated",
    "output omitted",
    "output truncated",
    "lines omitted",
    "rest omitted",
];

/// True when some line stands for others: `...`, `[...]`, `<snip>`, `--- output omitted ---`. What
/// is missing from such an output proves nothing.
pub(super) fn stands_in(text: &str) -> bool {
    text.lines().any(is_elision)
}

fn is_elision(line: &str) -> bool {
    let line = line.trim();
    if line.is_empty() || line.len() > 60 {
        return false;
    }
    let words = line.trim_matches(|ch: char| !ch.is_alphanumeric());
    if words.is_empty() {
        return line.contains("...") || line.contains('…');
    }
    // A word alone may be anything; between marks it says that something was left out.
    words.len() + 2 <= line.len() && WORDS.contains(&words.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_out_is_seen() {
        for line in
            ["...", "[...]", "…", "   [ ... ]", "<snip>", "-- output omitted --", "(truncated)"]
        {
            assert!(stands_in(&format!("a\n{line}\nb\n")), "{line}");
        }
        for line in ["", "nvidia 1 0", "cut", "GPU 0: NVIDIA RTX...", "[drm]", "----", "> truncate"]
        {
            assert!(!stands_in(line), "{line}");
        }
    }
}
