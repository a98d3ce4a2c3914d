//! A small reader and writer of tar archives: ustar, with the long names of GNU and pax.

use std::io::{self, Read, Write};

/// Size of a block.
pub(super) const BLOCK_BYTES: usize = 512;
/// Longest name that a header holds.
const SHORT_NAME_BYTES: usize = 100;
/// Longest name that an extension may give.
const NAME_LIMIT_BYTES: u64 = 4096;

/// A plain file in an archive.
#[derive(Debug)]
pub(super) struct Member {
    /// Its name in the archive.
    pub(super) name: String,
    /// Its length in bytes.
    pub(super) size: u64,
}

/// Whether a block is the header of a member: the magic of ustar and a right checksum.
pub(super) fn is_header(block: &[u8]) -> bool {
    let magic = block.get(257..262) == Some(b"ustar");
    magic && octal(block, 148, 8).is_some_and(|sum| Some(sum) == checksum(block))
}

/// The name of the first member, when this is the beginning of an archive.
pub(super) fn first_name(start: &[u8]) -> Option<String> {
    let block = start.get(..BLOCK_BYTES)?;
    is_header(block).then(|| short_name(block))
}

/// Writes a plain file as a member. A name that is too long for a header stands in a member of its
/// own before it, as GNU has it.
pub(super) fn write_member(out: &mut dyn Write, name: &str, content: &[u8]) -> io::Result<()> {
    if name.len() > SHORT_NAME_BYTES {
        write_block(out, "././@LongLink", b'L', name.as_bytes())?;
    }
    write_block(out, name, b'0', content)
}

/// Writes the end of an archive.
pub(super) fn write_end(out: &mut dyn Write) -> io::Result<()> {
    out.write_all(&[0; 2 * BLOCK_BYTES])
}

fn write_block(out: &mut dyn Write, name: &str, kind: u8, content: &[u8]) -> io::Result<()> {
    let mut block = [0_u8; BLOCK_BYTES];
    let mut put = |at: usize, bytes: &[u8]| {
        for (place, byte) in block.iter_mut().skip(at).zip(bytes) {
            *place = *byte;
        }
    };
    let bytes = name.as_bytes();
    put(0, bytes.get(..SHORT_NAME_BYTES).unwrap_or(bytes));
    put(100, b"0000644\x000000000\x000000000\0");
    put(124, format!("{:011o}\x0000000000000\0", content.len()).as_bytes());
    put(156, &[kind]);
    put(257, b"ustar\x0000");
    let sum = checksum(&block).ok_or(io::ErrorKind::InvalidData)?;
    for (place, byte) in block.iter_mut().skip(148).zip(format!("{sum:06o}\0 ").as_bytes()) {
        *place = *byte;
    }
    out.write_all(&block)?;
    out.write_all(content)?;
    let padding = content.len().next_multiple_of(BLOCK_BYTES) - content.len();
    out.write_all([0; BLOCK_BYTES].get(..padding).unwrap_or_default())
}

/// Reads members one after the other. `each` gets a member and its content, of which it may leave
/// a rest. The reading ends at the end marker, at damage, or when `each` says no.
pub(super) fn read_members(
    mut archive: &mut dyn Read,
    mut each: impl FnMut(&Member, &mut dyn Read) -> bool,
) -> io::Result<()> {
    let mut long_name: Option<String> = None;
    loop {
        let mut block = [0_u8; BLOCK_BYTES];
        if archive.read_exact(&mut block).is_err() || !is_header(&block) {
            return Ok(());
        }
        let size = size(&block).ok_or(io::ErrorKind::InvalidData)?;
        let mut content = (&mut archive).take(size);
        match block.get(156).copied() {
            Some(b'L') => long_name = Some(gnu_name(&mut content)?),
            Some(b'x') => long_name = pax_path(&mut content)?.or(long_name),
            Some(b'0' | 0 | b'7') => {
                let name = long_name.take().unwrap_or_else(|| short_name(&block));
                if !each(&Member { name, size }, &mut content) {
                    return Ok(());
                }
            }
            // Folders, links and devices have nothing to read; extensions for all are passed over.
            _ => long_name = None,
        }
        let rest = content.limit();
        let block_size = BLOCK_BYTES as u64;
        let padding = size.next_multiple_of(block_size) - size;
        io::copy(&mut (&mut archive).take(rest + padding), &mut io::sink())?;
    }
}

/// Digits in base 8, or, with the upper bit set, a number in base 256 (GNU, for 8 GiB and more).
fn size(block: &[u8]) -> Option<u64> {
    let field = block.get(124..136)?;
    if field.first()? & 0x80 == 0 {
        return octal(block, 124, 12);
    }
    let (_, low) = field.split_last_chunk::<8>()?;
    Some(u64::from_be_bytes(*low)).filter(|size| *size < 1 << 60)
}

fn octal(block: &[u8], at: usize, length: usize) -> Option<u64> {
    let field = block.get(at..at + length)?;
    let text = std::str::from_utf8(field).ok()?;
    u64::from_str_radix(text.trim_matches(['\0', ' ']), 8).ok()
}

/// The sum of all bytes, with those of the checksum itself taken as spaces.
fn checksum(block: &[u8]) -> Option<u64> {
    let before = block.get(..148)?.iter();
    let after = block.get(156..BLOCK_BYTES)?.iter();
    Some(before.chain(after).map(|byte| u64::from(*byte)).sum::<u64>() + 8 * u64::from(b' '))
}

fn short_name(block: &[u8]) -> String {
    let field = |at: usize, length: usize| {
        let bytes = block.get(at..at + length).unwrap_or_default();
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(length);
        String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned()
    };
    let (name, prefix) = (field(0, 100), field(345, 155));
    // GNU's own form keeps times where ustar has the prefix; its magic ends in two spaces.
    let has_prefix = block.get(262) == Some(&0) && !prefix.is_empty();
    if has_prefix { format!("{prefix}/{name}") } else { name }
}

fn gnu_name(content: &mut impl Read) -> io::Result<String> {
    let mut bytes = Vec::new();
    content.take(NAME_LIMIT_BYTES).read_to_end(&mut bytes)?;
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    bytes.truncate(end);
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The `path` record of a pax header: lines of `LENGTH KEY=VALUE`.
fn pax_path(content: &mut impl Read) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    content.take(NAME_LIMIT_BYTES).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let path = text.lines().find_map(|line| line.split_once(' ')?.1.strip_prefix("path="));
    Ok(path.map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A member as `tar` writes it.
    fn member(name: &str, kind: u8, content: &[u8]) -> Vec<u8> {
        let mut block = vec![0_u8; BLOCK_BYTES];
        block[..name.len()].copy_from_slice(name.as_bytes());
        block[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
        block[156] = kind;
        block[257..263].copy_from_slice(b"ustar\0");
        let sum = checksum(&block).unwrap();
        block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        block.extend_from_slice(content);
        block.resize(block.len().next_multiple_of(BLOCK_BYTES), 0);
        block
    }

    fn read(archive: &[u8]) -> Vec<(String, String)> {
        let mut found = Vec::new();
        let mut archive = archive;
        read_members(&mut archive, |member, content| {
            let mut text = String::new();
            content.take(5).read_to_string(&mut text).unwrap();
            found.push((member.name.clone(), text));
            true
        })
        .unwrap();
        found
    }

    #[test]
    fn members_are_read_with_long_names_and_unread_rests() {
        let long = "d/".repeat(100) + "file";
        let mut archive = member("a", b'0', b"first content");
        archive.extend(member("d", b'5', b""));
        archive.extend(member("././@LongLink", b'L', long.as_bytes()));
        archive.extend(member("cut", b'0', b"second"));
        archive.extend(member("x", b'x', b"18 path=pax/name\n"));
        archive.extend(member("short", b'0', b"3"));
        archive.extend([0; 2 * BLOCK_BYTES]);
        let expected = [("a", "first"), (long.as_str(), "secon"), ("pax/name", "3")];
        let found = read(&archive);
        assert!(found.iter().map(|(a, b)| (a.as_str(), b.as_str())).eq(expected));
    }

    #[test]
    fn damage_ends_the_reading() {
        let mut archive = member("a", b'0', b"1");
        archive.extend(member("b", b'0', b"2"));
        archive[BLOCK_BYTES * 2 + 3] ^= 1;
        assert_eq!(read(&archive).len(), 1);
        assert_eq!(read(&archive[..700]).len(), 1);
        assert_eq!(read(b"").len(), 0);
    }
}
