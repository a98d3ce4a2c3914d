//! Regular expressions over text, with classes that mean ASCII.

use std::iter::Peekable;
use std::str::Chars;

use regex::Regex;

/// Compiles an expression in which `\w` and `\d` mean ASCII letters and digits, and `\b` their
/// bounds, as in all that programs print. With those of Unicode, hundreds of ranges each, compiling
/// takes longer than reading a whole report. `\s` keeps the blanks that web pages put in.
pub(crate) fn compile(expression: &str) -> Option<Regex> {
    Regex::new(&in_ascii(expression)).ok()
}

fn in_ascii(expression: &str) -> String {
    let mut out = String::with_capacity(expression.len() * 2);
    let mut chars = expression.chars().peekable();
    let mut in_class = false;
    while let Some(ch) = chars.next() {
        match (ch, in_class) {
            ('\\', _) => escape(chars.next(), in_class, &mut out),
            ('[', false) => {
                in_class = true;
                out.push(ch);
                open_class(&mut chars, &mut out);
            }
            (']', true) => {
                in_class = false;
                out.push(ch);
            }
            _ => out.push(ch),
        }
    }
    out
}

fn escape(ch: Option<char>, in_class: bool, out: &mut String) {
    match (ch, in_class) {
        (Some('d'), true) => out.push_str("0-9"),
        (Some('d'), false) => out.push_str("[0-9]"),
        (Some('w'), true) => out.push_str("[:word:]"),
        (Some('w'), false) => out.push_str("[[:word:]]"),
        (Some('b'), false) => out.push_str(r"(?-u:\b)"),
        (other, _) => {
            out.push('\\');
            out.extend(other);
        }
    }
}

/// A bracket or a caret right at the beginning does not end the class.
fn open_class(chars: &mut Peekable<Chars<'_>>, out: &mut String) {
    out.extend(chars.next_if_eq(&'^'));
    out.extend(chars.next_if_eq(&']'));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_mean_ascii_and_the_rest_stays() {
        assert_eq!(in_ascii(r"\d+\.\d [\d.\-]\\d"), r"[0-9]+\.[0-9] [0-9.\-]\\d");
        assert_eq!(in_ascii(r"[^]\w][\[\w]\s\S"), r"[^][:word:]][\[[:word:]]\s\S");
        let word = compile(r"^\b[\w.\-]{1,40}@\w+\b$").unwrap();
        assert!(word.is_match("root@gpu_01") && !word.is_match("röt@x"));
        assert!(compile(r"a\s1").unwrap().is_match("a\u{a0}1"));
        assert!(compile("(").is_none());
    }
}
