//! Bytes that a user handed over become plain lines of text: UTF-16 is decoded, terminal escapes
//! are dropped, carriage returns that redraw a line are resolved. Line numbers stay as they were.

use std::borrow::Cow;

/// Decodes and cleans a text. What is not UTF-8 is replaced, never refused.
pub fn plain_text(bytes: &[u8]) -> String {
    let decoded = decode(bytes);
    let mut out = String::with_capacity(decoded.len());
    for line in decoded.split('\n') {
        push_clean_line(line, &mut out);
        out.push('\n');
    }
    // `split` yields one piece more than there are line ends.
    out.pop();
    out
}

/// Decodes UTF-16 with a byte order mark, or without one when every second byte of the beginning
/// is zero; anything else is taken as UTF-8.
fn decode(bytes: &[u8]) -> Cow<'_, str> {
    match bytes {
        [0xff, 0xfe, rest @ ..] => Cow::Owned(utf16(rest, u16::from_le_bytes)),
        [0xfe, 0xff, rest @ ..] => Cow::Owned(utf16(rest, u16::from_be_bytes)),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest),
        _ => match zero_half(bytes) {
            Some(Half::High) => Cow::Owned(utf16(bytes, u16::from_le_bytes)),
            Some(Half::Low) => Cow::Owned(utf16(bytes, u16::from_be_bytes)),
            None => String::from_utf8_lossy(bytes),
        },
    }
}

enum Half {
    High,
    Low,
}

/// Text of this field is ASCII almost throughout, so UTF-16 shows as zeros in one half.
fn zero_half(bytes: &[u8]) -> Option<Half> {
    let sample = &bytes[..bytes.len().min(512) & !1];
    if sample.len() < 16 {
        return None;
    }
    let pairs = sample.len() / 2;
    let zeros =
        |offset: usize| sample.iter().skip(offset).step_by(2).filter(|byte| **byte == 0).count();
    match (zeros(0), zeros(1)) {
        (low, high) if high * 10 >= pairs * 9 && low * 10 < pairs => Some(Half::High),
        (low, high) if low * 10 >= pairs * 9 && high * 10 < pairs => Some(Half::Low),
        _ => None,
    }
}

fn utf16(bytes: &[u8], join: fn([u8; 2]) -> u16) -> String {
    let units = bytes.chunks_exact(2).map(|pair| join([pair[0], pair[1]]));
    char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

/// Drops escape sequences and control characters; after a lone carriage return only what follows
/// it stays, as a terminal would show it.
fn push_clean_line(line: &str, out: &mut String) {
    let line = line.trim_end_matches('\r');
    let line = line.rsplit('\r').next().unwrap_or(line);
    if !line.contains(|ch: char| ch.is_control() && ch != '\t') {
        out.push_str(line);
        return;
    }
    let mut chars = line.chars().peekable();
    while let Some(ch) = chars.next() {
        match ch {
            '\x1b' => skip_escape(&mut chars),
            '\t' => out.push(ch),
            _ if ch.is_control() => {}
            _ => out.push(ch),
        }
    }
}

fn skip_escape(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match chars.next() {
        // CSI: parameters, then one byte from @ to ~.
        Some('[') => {
            for ch in chars.by_ref() {
                if ('@'..='~').contains(&ch) {
                    break;
                }
            }
        }
        // OSC (window titles): up to BEL or the string terminator.
        Some(']') => {
            while let Some(ch) = chars.next() {
                if ch == '\x07' {
                    break;
                }
                if ch == '\x1b' {
                    chars.next_if_eq(&'\\');
                    break;
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_titles_and_carriage_returns_go_and_lines_stay() {
        let text = b"\x1b]0;root@pve: ~\x07root@pve:~# \x1b[01;31mnvidia-smi\x1b[0m\r\nprogress 1\rprogress 2\nend";
        assert_eq!(plain_text(text), "root@pve:~# nvidia-smi\nprogress 2\nend");
    }

    #[test]
    fn utf16_in_both_orders_with_and_without_mark() {
        let text = "NVRM: Xid (PCI:0000:01:00): 79\nsecond";
        let le: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let be: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert_eq!(plain_text(&le), text);
        assert_eq!(plain_text(&be), text);
        assert_eq!(plain_text(&[&[0xff, 0xfe], &le[..]].concat()), text);
        assert_eq!(plain_text(&[&[0xfe, 0xff], &be[..]].concat()), text);
    }

    #[test]
    fn anything_is_taken() {
        assert_eq!(plain_text(b""), "");
        assert_eq!(plain_text(b"\n"), "\n");
        assert_eq!(plain_text(b"\x1b["), "");
        assert!(plain_text(&[0x80, b'a', 0xff]).contains('a'));
    }
}
