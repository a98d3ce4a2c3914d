//! The request of an ioctl in strace's spellings.

use super::arguments::{number as plain, split};

/// Names that strace has for small numbers, whatever node they are for; UVM's requests have the same
/// numbers (include/uapi/linux/fs.h).
const NAMES: [(&str, u32); 2] = [("FIBMAP", 1), ("FIGETBSZ", 2)];

/// The number of a request: `0xc020462a`, `_IOC(_IOC_READ|_IOC_WRITE, 0x46, 0x2a, 0x20)`,
/// `_IOWR('F', 0x2a, 32)`. `None` for a name.
pub(super) fn number(text: &str) -> Option<u32> {
    if let Some(number) = plain(text) {
        // The kernel takes 32 bits, and a 64-bit register may carry a sign.
        return u32::try_from(number & u64::from(u32::MAX)).ok();
    }
    if let Some((_, number)) = NAMES.iter().find(|(name, _)| *name == text) {
        return Some(*number);
    }
    let (macro_name, rest) = text.split_once('(')?;
    let words = split(rest.strip_suffix(')')?);
    let (direction, words) = match macro_name {
        "_IOC" => (directions(words.first()?)?, words.get(1..)?),
        "_IO" => (0, words.as_slice()),
        "_IOW" => (1, words.as_slice()),
        "_IOR" => (2, words.as_slice()),
        "_IOWR" => (3, words.as_slice()),
        _ => return None,
    };
    let kind = letter(words.first()?)?;
    let number = field(words.get(1)?, 8)?;
    let size = words.get(2).map_or(Some(0), |size| field(size, 14))?;
    Some(direction << 30 | size << 16 | kind << 8 | number)
}

/// `_IOC_NONE`, `_IOC_READ|_IOC_WRITE`, or a number.
fn directions(text: &str) -> Option<u32> {
    let one = |word: &str| match word.trim() {
        "_IOC_NONE" => Some(0),
        "_IOC_WRITE" => Some(1),
        "_IOC_READ" => Some(2),
        word => field(word, 2),
    };
    text.split('|').try_fold(0, |all, word| Some(all | one(word)?))
}

/// `0x46` or `'F'`.
fn letter(text: &str) -> Option<u32> {
    match text.strip_prefix('\'').and_then(|text| text.strip_suffix('\'')) {
        Some(letter) => letter.bytes().next().filter(|_| letter.len() == 1).map(u32::from),
        None => field(text, 8),
    }
}

/// A number that fits into so many bits.
fn field(text: &str, bits: u32) -> Option<u32> {
    plain(text).and_then(|value| u32::try_from(value).ok()).filter(|value| value >> bits == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_gives_the_same_number() {
        for text in [
            "0xc020462a",
            "0xffffffffc020462a",
            "3223340586",
            "_IOC(_IOC_READ|_IOC_WRITE, 0x46, 0x2a, 0x20)",
            "_IOC(0x3, 0x46, 0x2a, 0x20)",
            "_IOWR('F', 42, 32)",
            "_IOWR(0x46, 0x2a, 0x20)",
        ] {
            assert_eq!(number(text), Some(0xc020_462a), "{text}");
        }
        assert_eq!(number("_IOC(_IOC_NONE, 0, 0x1, 0x3000)"), Some(0x3000_0001));
        assert_eq!(number("_IOC(_IOC_NONE, 0, 0x25, 0)"), Some(0x25));
        assert_eq!(number("FIGETBSZ"), Some(2));
        for name in
            ["TCGETS", "_IOC(x, 0, 0, 0)", "_IOC(_IOC_READ, 0x146, 0, 0)", "_IOWR('F')", "_IO("]
        {
            assert_eq!(number(name), None, "{name}");
        }
    }
}
