//! Text from outside, made safe for a terminal.
//!
//! A kernel log, a process name or a pasted report may hold escape sequences that move the
//! cursor, retitle the window or reverse the direction of writing. None of them may reach the
//! reader's terminal.

use std::borrow::Cow;
use std::iter::Peekable;
use std::str::CharIndices;

/// Drops escape sequences, control characters and marks that reorder text; a line break or a tab
/// becomes a space. The result is one line.
pub fn clean(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_hostile) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.char_indices().peekable();
    let mut unterminated = false;
    while let Some((at, ch)) = chars.next() {
        match ch {
            '\u{1b}' => skip_sequence(text, at, &mut chars, &mut unterminated),
            '\n' | '\t' => out.push(' '),
            _ if is_hostile(ch) => {}
            _ => out.push(ch),
        }
    }
    Cow::Owned(out)
}

/// Control characters, and the marks of Unicode that reorder or hide text.
fn is_hostile(ch: char) -> bool {
    ch.is_control()
        || matches!(ch, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        || ch == '\u{feff}'
}

/// Skips what follows an ESC: a control sequence up to its final byte, a string such as a window
/// title up to its terminator, or one character. `unterminated` remembers that no terminator is
/// left, so that a text of many openings is not searched to its end once for each.
fn skip_sequence(
    text: &str,
    escape_at: usize,
    chars: &mut Peekable<CharIndices<'_>>,
    unterminated: &mut bool,
) {
    let Some((_, kind)) = chars.next() else { return };
    match kind {
        '[' => {
            while chars.next_if(|(_, ch)| ('\u{20}'..='\u{3f}').contains(ch)).is_some() {}
            chars.next_if(|(_, ch)| ('\u{40}'..='\u{7e}').contains(ch));
        }
        ']' | 'P' | 'X' | '^' | '_' if !*unterminated => {
            let rest = text.get(escape_at + 2..).unwrap_or_default();
            match string_end(rest) {
                Some(length) => {
                    let end = escape_at + 2 + length;
                    while chars.next_if(|(at, _)| *at < end).is_some() {}
                }
                None => *unterminated = true,
            }
        }
        _ => {}
    }
}

/// The length of a control string with its terminator, BEL or ESC and a backslash.
fn string_end(rest: &str) -> Option<usize> {
    let bell = rest.find('\u{7}').map(|at| at + 1);
    let terminator = rest.find("\u{1b}\\").map(|at| at + 2);
    match (bell, terminator) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sequences_go_and_the_words_stay() {
        let cases = [
            ("plain · text", "plain · text"),
            ("\x1b[31mred\x1b[0m", "red"),
            ("\x1b]0;a title\x07word", "word"),
            ("\x1b]8;;http://x\x1b\\link", "link"),
            ("a\nb\tc\rd", "a b cd"),
            ("\x1b]0;no end", "0;no end"),
            ("\u{202e}gpj.exe", "gpj.exe"),
            ("\x1b(Bword", "Bword"),
            ("\x1b", ""),
        ];
        for (from, to) in cases {
            assert_eq!(clean(from), to, "{from:?}");
        }
    }

    proptest! {
        #[test]
        fn nothing_hostile_is_left(text in any::<String>()) {
            prop_assert!(!clean(&text).chars().any(is_hostile));
        }

        #[test]
        fn escapes_in_any_order_are_harmless(text in "[\u{1b}\u{7}\\[\\]m0;a\\\\]{0,40}") {
            prop_assert!(!clean(&text).chars().any(is_hostile));
        }
    }
}
