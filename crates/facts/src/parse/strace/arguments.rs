//! The arguments of a traced call.

/// Most arguments that are told apart.
const ARGUMENTS_LIMIT: usize = 8;
/// Longest dump of parameters that is read, in bytes.
const DUMP_LIMIT: usize = 16_384;

/// Splits at commas that stand in no parentheses, brackets or quotes, and takes remarks off.
pub(super) fn split(text: &str) -> Vec<&str> {
    pieces(text).into_iter().map(without_remark).collect()
}

fn pieces(text: &str) -> Vec<&str> {
    let (mut words, mut depth, mut quoted, mut escaped, mut start) =
        (Vec::new(), 0_u32, false, false, 0);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 && words.len() + 1 < ARGUMENTS_LIMIT => {
                words.extend(text.get(start..at).map(str::trim));
                start = at + 1;
            }
            _ => {}
        }
    }
    words.extend(text.get(start..).map(str::trim));
    words
}

/// `8`, `0x8` or `8</dev/nvidiactl>`: the descriptor and what it leads to. `-yy` adds the numbers
/// of a device: `8</dev/nvidiactl<char 195:255>>`.
pub(super) fn descriptor(text: &str) -> Option<(u32, Option<&str>)> {
    let (head, link) = match text.split_once('<') {
        Some((head, link)) => (head, Some(link.split(['<', '>']).next().unwrap_or(link))),
        None => (text, None),
    };
    Some((u32::try_from(number(head)?).ok()?, link))
}

/// A number in decimal, or in hexadecimal after `0x`.
pub(super) fn number(text: &str) -> Option<u64> {
    nvabi::number::parse(text)
}

/// The same with a sign.
pub(super) fn signed(text: &str) -> Option<i64> {
    match text.strip_prefix('-') {
        Some(digits) => i64::try_from(number(digits)?).ok().map(|value| -value),
        None => number(text).map(u64::cast_signed),
    }
}

/// The text of a quoted string, also one in hexadecimal as `-xx` writes it.
pub(super) fn quoted(text: &str) -> Option<String> {
    String::from_utf8(dumped(text)?).ok()
}

/// An argument without the remark that `-X verbose` adds: `0xc020462a /* _IOC(…) */`.
pub(super) fn without_remark(text: &str) -> &str {
    text.split(" /*").next().unwrap_or(text)
}

/// The bytes of parameters that were dumped as a string: `"\x01\x00"` or `"\1\0\0\0F"`.
pub(super) fn dumped(text: &str) -> Option<Vec<u8>> {
    let mut rest = text.strip_prefix('"')?.as_bytes();
    let mut bytes = Vec::new();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        match first {
            _ if bytes.len() >= DUMP_LIMIT => break,
            b'"' => break,
            b'\\' => {
                let (byte, after) = escape(rest)?;
                bytes.push(byte);
                rest = after;
            }
            byte => bytes.push(*byte),
        }
    }
    Some(bytes)
}

/// One escape of C, after its backslash.
fn escape(text: &[u8]) -> Option<(u8, &[u8])> {
    let (first, rest) = text.split_first()?;
    let plain = match first {
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'v' => 0x0b,
        b'f' => 0x0c,
        b'x' => {
            let (digits, rest) = rest.split_at_checked(2)?;
            let digits = std::str::from_utf8(digits).ok()?;
            return Some((u8::from_str_radix(digits, 16).ok()?, rest));
        }
        b'0'..=b'7' => {
            let count = text.iter().take(3).take_while(|byte| (b'0'..=b'7').contains(byte)).count();
            let (digits, rest) = text.split_at_checked(count)?;
            let digits = std::str::from_utf8(digits).ok()?;
            return Some((u8::from_str_radix(digits, 8).ok()?, rest));
        }
        other => *other,
    };
    Some((plain, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_told_apart() {
        let text = r#"8</dev/nvidiactl>, _IOC(_IOC_READ|_IOC_WRITE, 0x46, 0x2a, 0x20), "a, \"b""#;
        let words = split(text);
        assert_eq!(words.len(), 3, "{words:?}");
        assert_eq!(descriptor(words[0]), Some((8, Some("/dev/nvidiactl"))));
        assert_eq!(descriptor("0x9</dev/nvidia0<char 195:0>>"), Some((9, Some("/dev/nvidia0"))));
        assert_eq!(descriptor("AT_FDCWD"), None);
    }

    #[test]
    fn dumps_in_both_spellings() {
        assert_eq!(dumped(r#""\x01\x00F""#).as_deref(), Some(&b"\x01\0F"[..]));
        assert_eq!(dumped(r#""\1\0\377\"x"..."#).as_deref(), Some(&b"\x01\0\xff\"x"[..]));
        assert_eq!(dumped("0x7ffc"), None);
        assert_eq!(dumped(r#""\xZZ""#), None);
        assert_eq!(signed("-1"), Some(-1));
    }
}
