//! The messages that libraries and tools print for codes.
//!
//! Table `error_texts`: measured with `cudaGetErrorString`, `cuGetErrorString` and
//! `nvmlErrorString` of several releases and from the strings of nvidia-smi; PyTorch's from its
//! source.

use std::cmp::Reverse;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};

use crate::table::Row;
use crate::tables::ERROR_TEXTS;

/// One message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorText {
    /// The text as printed, or the part of it that does not vary.
    pub text: &'static str,
    /// Who prints it: `cuda-driver`, `cuda-runtime`, `nvml`, `nvidia-smi` or `torch`.
    pub api: &'static str,
    /// The code that it stands for, in the numbering of `api` (of NVML for `nvidia-smi`, of the
    /// CUDA runtime for `torch`); `None` when the rest of the message has it, or there is none.
    pub code: Option<i64>,
    /// The code's name. May be empty.
    pub name: &'static str,
    /// Remarks. May be empty.
    pub note: &'static str,
    /// For texts that other programs print too (`out of memory`): words, separated by `|`, of
    /// which one must stand in the line as well. Empty for texts that speak for themselves.
    pub context: &'static str,
}

impl ErrorText {
    fn of(row: Row) -> ErrorText {
        ErrorText {
            text: row.text("text"),
            api: row.text("api"),
            code: row.number("code").and_then(|code| i64::try_from(code).ok()),
            name: row.text("name"),
            note: row.text("note"),
            context: row.text("context"),
        }
    }
}

/// A line that is searched, with what is the same for every text found in it.
struct Line<'a> {
    text: &'a str,
    /// The line without punctuation around it.
    bare: &'a str,
    /// Contexts that were looked for, and whether they are there: each is looked for once, so that
    /// a long line full of texts costs one pass a context.
    contexts: Vec<(&'static str, bool)>,
}

impl Line<'_> {
    fn new(text: &str) -> Line<'_> {
        Line { text, bare: without_punctuation(text), contexts: Vec::new() }
    }

    /// Whether what was found at `start` may be taken for the message: as whole words, and in its
    /// context. A line that is nothing but the text, such as deviceQuery's
    /// `-> initialization error`, needs no context.
    fn holds(&mut self, message: &ErrorText, start: usize) -> bool {
        let bytes = self.text.as_bytes();
        let before = start.checked_sub(1).and_then(|index| bytes.get(index));
        let after = bytes.get(start + message.text.len());
        self.stands_as_printed(message.text, start)
            && before.is_none_or(|byte| !byte.is_ascii_alphanumeric())
            // A digit may follow: `device handle for GPU0`.
            && after.is_none_or(|byte| !byte.is_ascii_alphabetic())
            && (self.has_context(message.context)
                || self
                    .bare
                    .eq_ignore_ascii_case(without_punctuation(message.text)))
    }

    /// A message of one word, such as NVML's `Timeout`, is a word of everyday language as well: it
    /// counts in its own spelling and behind the colon that tools print before it, or alone.
    fn stands_as_printed(&self, message: &str, start: usize) -> bool {
        if message.contains(' ') {
            return true;
        }
        let (before, rest) = self.text.split_at_checked(start).unwrap_or_default();
        let before = before.trim_end();
        rest.starts_with(message) && (before.is_empty() || before.ends_with([':', '>', '=']))
    }

    fn has_context(&mut self, context: &'static str) -> bool {
        if let Some((_, known)) = self.contexts.iter().find(|(known, _)| *known == context) {
            return *known;
        }
        let found = context.split('|').any(|word| contains_ignoring_case(self.text, word));
        self.contexts.push((context, found));
        found
    }
}

fn without_punctuation(text: &str) -> &str {
    text.trim_matches(|ch: char| !ch.is_ascii_alphanumeric())
}

fn contains_ignoring_case(line: &str, word: &str) -> bool {
    let mut windows = line.as_bytes().windows(word.len().max(1));
    word.is_empty() || windows.any(|window| window.eq_ignore_ascii_case(word.as_bytes()))
}

/// All messages with one automaton over them, which finds every text in one pass over a line.
struct Index {
    texts: Vec<ErrorText>,
    automaton: Option<AhoCorasick>,
}

static INDEX: LazyLock<Index> = LazyLock::new(|| {
    let texts: Vec<ErrorText> = ERROR_TEXTS.rows().map(ErrorText::of).collect();
    let automaton = AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::Standard)
        .build(texts.iter().map(|text| text.text))
        .ok();
    Index { texts, automaton }
});

/// All messages, by who prints them and code.
pub fn all() -> &'static [ErrorText] {
    &INDEX.texts
}

/// The message that a line holds, case aside. Of several, one with a code goes before one
/// without, then the longest, then the one whose case is right, then the first of the table.
pub fn in_line(line: &str) -> Option<&'static ErrorText> {
    let automaton = INDEX.automaton.as_ref()?;
    let mut line = Line::new(line);
    let mut best = None;
    for found in automaton.find_overlapping_iter(line.text) {
        let place = found.pattern().as_usize();
        let Some(message) = INDEX.texts.get(place) else {
            continue;
        };
        let exact = line.text.get(found.range()) == Some(message.text);
        let rank = (message.code.is_some(), message.text.len(), exact, Reverse(place));
        let better = best.is_none_or(|(_, best_rank)| rank > best_rank);
        if better && line.holds(message, found.start()) {
            best = Some((message, rank));
        }
    }
    best.map(|(message, _)| message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(line: &str) -> Option<(&'static str, i64)> {
        in_line(line).and_then(|message| Some((message.api, message.code?)))
    }

    #[test]
    fn lines_as_tools_print_them() {
        for (line, expected) in [
            ("RuntimeError: CUDA error: initialization error", ("cuda-driver", 3)),
            (
                "cudaGetDeviceCount returned 802\n-> system not yet initialized",
                ("cuda-driver", 802),
            ),
            ("RuntimeError: No CUDA GPUs are available", ("torch", 100)),
            (
                "RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda \
                 functions before calling NumCudaDevices() that might have already set an error? \
                 Error 803: system has unsupported display driver / cuda driver combination",
                ("cuda-driver", 803),
            ),
            (
                "RuntimeError: The NVIDIA driver on your system is too old (found version 11040).",
                ("torch", 35),
            ),
            (
                "RuntimeError: CUDA unknown error - this may be due to an incorrectly",
                ("torch", 999),
            ),
            ("Failed to initialize NVML: Driver/library version mismatch", ("nvml", 18)),
            ("Failed to initialize NVML: Unknown Error", ("nvml", 999)),
            ("Failed to initialize NVML: Insufficient Permissions", ("nvml", 4)),
            (
                "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. \
                 Make sure that the latest NVIDIA driver is installed and running.",
                ("nvidia-smi", 9),
            ),
            ("NO DEVICES WERE FOUND", ("nvidia-smi", 6)),
            (
                "Unable to determine the device handle for GPU 0000:01:00.0: GPU is lost.  \
                 Reboot the system to recover this GPU",
                ("nvidia-smi", 15),
            ),
            (
                "CUDA error 304 at ggml-cuda.cu:5065: OS call failed or operation not supported on this OS",
                ("cuda-driver", 304),
            ),
            (
                "cuda runtime error (35) : CUDA driver version is insufficient for CUDA runtime version at x",
                ("cuda-runtime", 35),
            ),
            ("all CUDA-capable devices are busy or unavailable", ("cuda-runtime", 46)),
            ("-> initialization error", ("cuda-driver", 3)),
            ("Driver Not Loaded", ("nvml", 9)),
            ("Unable to determine the device handle for GPU 0000:01:00.0: Timeout", ("nvml", 10)),
        ] {
            assert_eq!(code(line), Some(expected), "{line}");
        }
    }

    #[test]
    fn words_of_other_programs_are_not_taken() {
        for line in [
            "Out of memory: Killed process 4242 (python3) total-vm:1234kB",
            "nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1",
            "TimeoutError: connect timeout after 3 s",
            "nvidia-smi under `timeout 20` ended, NVML answered",
            "nvml: no timeout was set",
            "the Timeout of nvidia-smi is 5 s",
            "ls: cannot open directory: Operation not permitted",
            "grep: invalid argument",
            "",
        ] {
            assert_eq!(in_line(line), None, "{line}");
        }
    }

    #[test]
    fn a_message_without_a_code_gives_way_to_one_with_a_code() {
        let line = "Unable to determine the device handle for GPU0: 0000:01:00.0";
        assert_eq!(in_line(line).map(|message| message.code), Some(None));
        assert_eq!(code(&format!("{line}: Unknown Error")), Some(("nvml", 999)));
    }
}
