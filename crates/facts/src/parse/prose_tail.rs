//! Where a pasted output ends and a person goes on speaking. Without fences nothing but the words
//! tells.

/// Function words of which a sentence has some and an output few.
const WORDS: [&str; 44] = [
    "the", "a", "an", "is", "are", "was", "were", "in", "on", "with", "without", "and", "of", "to",
    "it", "i", "we", "but", "not", "that", "this", "same", "when", "while", "after", "before",
    "from", "has", "have", "at", "by", "for", "no", "so", "my", "our", "there", "then", "does",
    "did", "makes", "works", "here", "only",
];

/// The trailing paragraphs of an output that are prose: where they begin, in bytes, and how many
/// lines stand before them. A paragraph of prose that more output follows belongs to the output:
/// programs print sentences too.
pub fn prose_tail(text: &str) -> Option<(usize, u32)> {
    let mut found = None;
    let mut line_starts = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        line_starts.push((at, line));
        at += line.len();
    }
    let mut paragraph_is_prose = true;
    for (index, (start, line)) in line_starts.iter().enumerate().rev() {
        if !line.trim().is_empty() {
            paragraph_is_prose &= is_sentence(line.trim_end());
            if !paragraph_is_prose {
                break;
            }
            let opens = index.checked_sub(1).and_then(|above| line_starts.get(above));
            if opens.is_some_and(|(_, above)| above.trim().is_empty()) {
                found = Some((*start, u32::try_from(index).unwrap_or(u32::MAX)));
            }
        }
    }
    found
}

/// True for a line that a person wrote.
fn is_sentence(line: &str) -> bool {
    let begins = line.chars().next().is_some_and(char::is_alphabetic);
    if !begins || line.len() > 2000 || line.contains("  ") || line.contains('\t') {
        return false;
    }
    let words: Vec<&str> = line.split(' ').collect();
    let plain = |word: &&&str| {
        let word = word.trim_matches(['.', ',', ':', ';', '!', '?', '(', ')', '\'', '"', '`']);
        !word.is_empty() && word.chars().all(|ch| ch.is_alphabetic() || ch == '-' || ch == '\'')
    };
    let known = words.iter().filter(|word| {
        let word = word.trim_matches(['.', ',', ':', ';', '!', '?', '(', ')']).to_lowercase();
        WORDS.contains(&word.as_str())
    });
    let (plain, known) = (words.iter().filter(plain).count(), known.count());
    let mostly_words = plain * 2 >= words.len();
    match line.trim_end_matches(['`', '"', ')']).chars().last() {
        Some('.' | '!' | '?') => mostly_words && words.len() >= 3 && known >= 1,
        Some(_) => mostly_words && words.len() >= 6 && known >= 2,
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail(text: &str) -> Option<&str> {
        prose_tail(text).and_then(|(at, _)| text.get(at..))
    }

    #[test]
    fn a_person_goes_on_after_the_output() {
        let text = "5.15.153.1-microsoft-standard-WSL2\n\nexport LD_LIBRARY_PATH=/usr/lib/wsl/lib makes it work.\n";
        assert_eq!(tail(text), Some("export LD_LIBRARY_PATH=/usr/lib/wsl/lib makes it work.\n"));
        assert_eq!(prose_tail(text).map(|(_, lines)| lines), Some(2));
        let two = "GPU 0: x\n\nThe host is fine.\n\nIt works with another image, too.\n";
        assert_eq!(tail(two), Some("The host is fine.\n\nIt works with another image, too.\n"));
    }

    #[test]
    fn programs_print_sentences_too() {
        for text in [
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.\n",
            "Container image\n\nThis container image and its contents are governed by a licence.\n\n0\n",
            "Traceback\n\nDuring handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\n  File \"x\"\n",
            "Is CUDA available: True\n\nVersions of relevant libraries:\n[pip3] torch==2.1\n",
            "",
        ] {
            assert_eq!(tail(text), None, "{text}");
        }
    }
}
