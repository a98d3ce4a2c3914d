//! One automaton over the literals of all signatures, then only the expressions that it calls for.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use nvabi::signature::{self, Signature};
use regex::bytes::{Regex, RegexBuilder};

use super::literal;

/// A signature that a line matches, with its named groups.
#[derive(Debug, Clone)]
pub struct SignatureMatch {
    /// The row of the table.
    pub signature: &'static Signature,
    /// The named groups that took part.
    pub captures: BTreeMap<&'static str, String>,
}

/// What the automaton found in a line.
#[derive(Default)]
pub(super) struct Hits {
    /// Signatures to try, by index, ascending.
    signatures: Vec<usize>,
    /// The line names the driver.
    pub(super) names_driver: bool,
    /// The line may hold stack frames.
    pub(super) has_frames: bool,
}

impl Hits {
    fn clear(&mut self) {
        self.signatures.clear();
        self.names_driver = false;
        self.has_frames = false;
    }

    pub(super) fn any(&self) -> bool {
        self.names_driver || self.has_frames || !self.signatures.is_empty()
    }
}

/// What a pattern of the automaton stands for.
enum Meaning {
    Signature(usize),
    NamesDriver,
    Frame,
}

/// What a line that names the driver holds, as the driver's modules prefix their lines.
const DRIVER_NAMES: [&str; 10] = [
    "NVRM:",
    // Branches 515 and 520, before the name of a function.
    "NVRM ",
    "nvidia:",
    "nvidia 0",
    "[nvidia",
    "nvidia-uvm:",
    "nvidia-modeset:",
    "nvidia-nvlink",
    "nvidia-nvswitch",
    "nvidia-peermem",
];

/// A stack frame is `function+0x12/0x34`.
const FRAME: &str = "+0x";

/// The signatures, ready to match.
pub(super) struct Matcher {
    automaton: Option<AhoCorasick>,
    signatures: Vec<Signature>,
    meanings: Vec<Meaning>,
    regexes: Vec<OnceLock<Option<Regex>>>,
    /// Signatures without a certain literal, tried on lines that name the driver.
    unfiltered: Vec<usize>,
}

/// Texts of which each line that says something here holds at least one.
pub(crate) fn marks() -> impl Iterator<Item = String> {
    let literals = signature::all().filter_map(|signature| literal::required(signature.regex));
    let names = DRIVER_NAMES.into_iter().chain([FRAME]);
    literals.flatten().chain(names.map(str::to_owned))
}

/// Whether a line, without stamp and host, is one of the driver's or the kernel's about it, and does
/// not merely hold its name: within a word, a path or a sentence.
pub(super) fn names_driver(text: &str) -> bool {
    DRIVER_NAMES.iter().any(|name| {
        let mut places = text.match_indices(name);
        match *name {
            "NVRM " => text.starts_with(name) && !text.starts_with("NVRM version"),
            _ => places.any(|(at, _)| {
                let before = text.get(..at).and_then(|head| head.chars().next_back());
                !before.is_some_and(|ch| ch.is_alphanumeric() || matches!(ch, '/' | '-' | '_'))
            }),
        }
    })
}

/// The one matcher of the process, made on first use.
pub(super) fn matcher() -> &'static Matcher {
    static MATCHER: OnceLock<Matcher> = OnceLock::new();
    MATCHER.get_or_init(Matcher::new)
}

impl Matcher {
    fn new() -> Matcher {
        let signatures: Vec<Signature> = signature::all().collect();
        let mut patterns: Vec<String> = Vec::new();
        let mut meanings = Vec::new();
        let mut unfiltered = Vec::new();
        for (index, signature) in signatures.iter().enumerate() {
            let Some(literals) = literal::required(signature.regex) else {
                unfiltered.push(index);
                continue;
            };
            for literal in literals {
                patterns.push(literal);
                meanings.push(Meaning::Signature(index));
            }
        }
        for name in DRIVER_NAMES {
            patterns.push(name.to_owned());
            meanings.push(Meaning::NamesDriver);
        }
        patterns.push(FRAME.to_owned());
        meanings.push(Meaning::Frame);
        let automaton =
            AhoCorasick::builder().kind(Some(AhoCorasickKind::DFA)).build(&patterns).ok();
        let regexes = signatures.iter().map(|_| OnceLock::new()).collect();
        Matcher { automaton, signatures, meanings, regexes, unfiltered }
    }

    /// Where the next literal begins, if there is one. Much faster than [`Matcher::look`].
    pub(super) fn next_hit(&self, text: &[u8]) -> Option<usize> {
        self.automaton.as_ref()?.find(text).map(|found| found.start())
    }

    /// Looks for all literals of a line.
    pub(super) fn look(&self, line: &[u8], hits: &mut Hits) {
        hits.clear();
        let Some(automaton) = &self.automaton else {
            return;
        };
        for found in automaton.find_overlapping_iter(line) {
            match self.meanings.get(found.pattern().as_usize()) {
                Some(Meaning::Signature(index)) => hits.signatures.push(*index),
                Some(Meaning::NamesDriver) => hits.names_driver = true,
                Some(Meaning::Frame) => hits.has_frames = true,
                None => {}
            }
        }
        if hits.names_driver {
            hits.signatures.extend_from_slice(&self.unfiltered);
        }
        hits.signatures.sort_unstable();
        hits.signatures.dedup();
    }

    /// Tries the expressions that the literals call for, in the order of the table.
    pub(super) fn matches(&'static self, line: &[u8], hits: &Hits) -> Vec<SignatureMatch> {
        hits.signatures.iter().filter_map(|index| self.try_one(*index, line)).collect()
    }

    fn try_one(&'static self, index: usize, line: &[u8]) -> Option<SignatureMatch> {
        let signature = self.signatures.get(index)?;
        let regex = self.regexes.get(index)?;
        let regex = regex.get_or_init(|| compile(signature.regex)).as_ref()?;
        let found = regex.captures(line)?;
        let captures = regex
            .capture_names()
            .flatten()
            .filter_map(|name| {
                let text = String::from_utf8_lossy(found.name(name)?.as_bytes()).into_owned();
                Some((name, text))
            })
            .collect();
        Some(SignatureMatch { signature, captures })
    }
}

/// Logs are bytes, and the table's classes mean ASCII.
fn compile(regex: &str) -> Option<Regex> {
    RegexBuilder::new(regex).unicode(false).build().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_signature_compiles_and_has_a_certain_literal() {
        assert!(signature::all().count() > 100);
        for signature in signature::all() {
            assert!(compile(signature.regex).is_some(), "{}", signature.id);
            assert!(literal::required(signature.regex).is_some(), "{}", signature.id);
        }
    }
}
