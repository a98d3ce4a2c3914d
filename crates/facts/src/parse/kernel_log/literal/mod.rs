//! Derives from a regular expression a set of literals of which every match holds at least one,
//! so that one automaton over all literals can tell which expressions a line needs.
//!
//! The derivation is conservative: what it does not understand yields no literal, and an
//! expression without one is tried on every line that names the driver.

mod run;

use run::{Info, Repeat, Run};

/// Deepest nesting of groups that is followed.
const DEPTH_LIMIT: u32 = 16;
/// Shortest literal that is worth a place in the automaton.
const USEFUL_LENGTH: usize = 4;

/// The literals, or `None` when no useful ones were found.
pub(super) fn required(regex: &str) -> Option<Vec<String>> {
    let mut parser = Parser { chars: regex.chars().collect(), at: 0, ignores_case: false };
    let info = parser.alternation(0)?;
    // An early end means a closing bracket too many, so that nothing can be said.
    if parser.at < parser.chars.len() {
        return None;
    }
    let set = info.best?;
    let useful = set.iter().all(|literal| literal.len() >= USEFUL_LENGTH);
    let set = if parser.ignores_case {
        set.iter().flat_map(|text| spellings(text)).collect()
    } else {
        set
    };
    useful.then_some(set)
}

/// The first letters of a text in all their cases: a shorter literal is required all the same.
fn spellings(text: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    for ch in text.chars().take(USEFUL_LENGTH) {
        let mut cases = vec![ch.to_ascii_lowercase(), ch.to_ascii_uppercase()];
        cases.dedup();
        out = out
            .iter()
            .flat_map(|head| cases.iter().map(move |case| format!("{head}{case}")))
            .collect();
    }
    out
}

struct Parser {
    chars: Vec<char>,
    at: usize,
    /// A flag `i` was seen. It is taken to hold everywhere, which only asks for more spellings.
    ignores_case: bool,
}

impl Parser {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let ch = self.peek()?;
        self.at += 1;
        Some(ch)
    }

    fn eat(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    fn alternation(&mut self, depth: u32) -> Option<Info> {
        let first = self.concatenation(depth)?;
        if self.peek() != Some('|') {
            return Some(first);
        }
        let mut union = first.best;
        while self.eat('|') {
            let branch = self.concatenation(depth)?;
            union = union.zip(branch.best).map(|(mut all, more)| {
                all.extend(more);
                all
            });
        }
        Some(Info { exact: None, best: union })
    }

    fn concatenation(&mut self, depth: u32) -> Option<Info> {
        let mut run = Run::default();
        while let Some(ch) = self.peek() {
            if matches!(ch, '|' | ')') {
                break;
            }
            let atom = self.atom(depth)?;
            run.add(atom, &self.repeat()?);
        }
        Some(run.finish())
    }

    /// One character, class or group.
    fn atom(&mut self, depth: u32) -> Option<Info> {
        const NOTHING: Info = Info { exact: None, best: None };
        match self.next()? {
            '(' => self.group(depth),
            '[' => {
                self.skip_class()?;
                Some(NOTHING)
            }
            '.' | '^' | '$' => Some(NOTHING),
            '\\' => {
                let ch = self.next()?;
                let literal = !ch.is_ascii_alphanumeric();
                Some(Info { exact: literal.then(|| ch.to_string()), best: None })
            }
            ch => Some(Info { exact: Some(ch.to_string()), best: None }),
        }
    }

    fn group(&mut self, depth: u32) -> Option<Info> {
        if depth >= DEPTH_LIMIT {
            return None;
        }
        if self.eat('?') {
            // `?:`, `?P<name>`, or flags such as `?i`, alone or before a colon.
            let named = matches!(self.peek(), Some('P' | '<'));
            loop {
                match self.next()? {
                    ':' | '>' => break,
                    ')' => {
                        return Some(Info { exact: Some(String::new()), best: None });
                    }
                    'i' if !named => self.ignores_case = true,
                    _ => {}
                }
            }
        }
        let info = self.alternation(depth + 1)?;
        self.eat(')').then_some(info)
    }

    fn skip_class(&mut self) -> Option<()> {
        self.eat('^');
        // A bracket right at the beginning stands for itself.
        self.eat(']');
        loop {
            match self.next()? {
                '\\' => {
                    self.next()?;
                }
                ']' => return Some(()),
                // Nested classes do not occur in the table, and are not followed.
                '[' => return None,
                _ => {}
            }
        }
    }

    fn repeat(&mut self) -> Option<Repeat> {
        let repeat = match self.peek() {
            Some('?' | '*') => Repeat::Optional,
            Some('+') => Repeat::Some,
            Some('{') => {
                let first = self.chars.get(self.at + 1).copied()?;
                while self.peek()? != '}' {
                    self.at += 1;
                }
                let never_none = first.is_ascii_digit() && first != '0';
                if never_none { Repeat::Some } else { Repeat::Optional }
            }
            _ => return Some(Repeat::Once),
        };
        self.at += 1;
        // The mark of a lazy repetition changes nothing here.
        self.eat('?');
        Some(repeat)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literals(regex: &str) -> Vec<String> {
        required(regex).unwrap_or_default()
    }

    #[test]
    fn the_longest_certain_text_is_found() {
        assert_eq!(
            literals("NVRM: GPU (?P<bdf>[0-9a-f:.]+): RmInitAdapter failed!"),
            [": RmInitAdapter failed!"]
        );
        assert_eq!(
            literals(r"request_free_mem_region\(\) err (?P<err>-?\d+)"),
            ["request_free_mem_region() err "]
        );
        assert_eq!(literals(r"\*{10,} GSP Timeout \*{10,}"), [" GSP Timeout *"]);
    }

    #[test]
    fn what_may_be_missing_is_never_required() {
        assert_eq!(literals("(?:nvidia )?loading"), ["loading"]);
        assert_eq!(literals("abcdefgh?xyz1"), ["abcdefg"]);
        assert_eq!(literals("colou{0,3}rful"), ["colo"]);
        assert_eq!(required("[abcdef]+"), None);
        assert_eq!(required("(?:long text|.)"), None);
    }

    #[test]
    fn each_branch_gives_one() {
        assert_eq!(literals("(?:first|second) (?:a|b)"), ["first", "second"]);
    }

    #[test]
    fn without_regard_to_case_all_spellings_of_a_beginning_are_given() {
        let all = literals("(?i)dkms error");
        assert_eq!(all.len(), 16);
        assert!(["dkms", "DKMS", "Dkms"].iter().all(|text| all.iter().any(|known| known == text)));
        assert_eq!(literals("(?P<id>a)bcdef"), ["abcdef"]);
    }

    #[test]
    fn broken_expressions_yield_nothing() {
        for regex in ["(abcd", "abcd)", "[abcd", "abcd\\", "abcd{", "[[:alpha:]]abcd"] {
            assert_eq!(required(regex), None, "{regex}");
        }
    }
}
