//! The loader's cache: `/etc/ld.so.cache` in its binary forms and `ldconfig -p` as text.

use super::elf::text_at;
use super::{Parsed, numbered};

/// One library of the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheEntry {
    /// The name it is looked up by.
    pub name: String,
    /// Path.
    pub path: String,
    /// For which kind of program.
    pub abi: CacheAbi,
    /// The line in the text form; 0 in the binary form.
    pub line: u32,
}

/// For which programs the loader uses an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheAbi {
    /// 64-bit programs of the machine (x86-64, AArch64, 64-bit POWER, …).
    Wide,
    /// 32-bit programs.
    Narrow,
}

/// Most entries that are read; a full desktop has a few thousand.
const ENTRIES_LIMIT: usize = 1 << 16;
const OLD_MAGIC: &[u8] = b"ld.so-1.7.0";
const NEW_MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
const NEW_HEADER_BYTES: usize = 48;
const NEW_ENTRY_BYTES: usize = 24;
const OLD_ENTRY_BYTES: usize = 12;

/// Reads the binary cache: the new form, the old form, or the new one behind the old one, as
/// glibc's `dl-cache.h` defines them. Little-endian only, which all machines with CUDA are.
pub fn read(bytes: &[u8]) -> Parsed<Vec<CacheEntry>> {
    let mut parsed = Parsed::default();
    match find_table(bytes) {
        Some(Table::New(base)) => read_new(bytes.get(base..).unwrap_or_default(), &mut parsed),
        Some(Table::Old(count)) => read_old(bytes, count, &mut parsed),
        None => parsed.complain(0, "not a loader cache"),
    }
    parsed
}

enum Table {
    /// Offset of the new form's header.
    New(usize),
    /// Number of the old form's entries.
    Old(usize),
}

fn find_table(bytes: &[u8]) -> Option<Table> {
    if bytes.starts_with(NEW_MAGIC) {
        return Some(Table::New(0));
    }
    if !bytes.starts_with(OLD_MAGIC) {
        return None;
    }
    let count = word(bytes, 12)?;
    let end = 16_usize.checked_add(count.checked_mul(OLD_ENTRY_BYTES)?)?;
    // The new form's header is aligned as a 64-bit number is.
    let aligned = end.checked_add(7)? / 8 * 8;
    let has_new = bytes.get(aligned..)?.starts_with(NEW_MAGIC);
    Some(if has_new { Table::New(aligned) } else { Table::Old(count) })
}

fn read_new(cache: &[u8], parsed: &mut Parsed<Vec<CacheEntry>>) {
    let count = word(cache, NEW_MAGIC.len()).unwrap_or(0).min(ENTRIES_LIMIT);
    for index in 0..count {
        let at = NEW_HEADER_BYTES + index * NEW_ENTRY_BYTES;
        if !push_entry(cache, at, 0, parsed) {
            parsed.complain(0, "the loader cache is cut off");
            return;
        }
    }
}

fn read_old(cache: &[u8], count: usize, parsed: &mut Parsed<Vec<CacheEntry>>) {
    let strings = 16 + count.saturating_mul(OLD_ENTRY_BYTES);
    for index in 0..count.min(ENTRIES_LIMIT) {
        let at = 16 + index * OLD_ENTRY_BYTES;
        if !push_entry(cache, at, strings, parsed) {
            parsed.complain(0, "the loader cache is cut off");
            return;
        }
    }
}

/// Both forms begin an entry with flags, the name's offset and the path's offset.
fn push_entry(
    cache: &[u8],
    at: usize,
    strings: usize,
    parsed: &mut Parsed<Vec<CacheEntry>>,
) -> bool {
    let fields = (word(cache, at), word(cache, at + 4), word(cache, at + 8));
    let (Some(flags), Some(name), Some(path)) = fields else {
        return false;
    };
    let text = |offset: usize| text_at(cache, offset.saturating_add(strings));
    let (name, path) = (text(name), text(path));
    if name.is_empty() || path.is_empty() {
        return false;
    }
    parsed.value.push(CacheEntry { name, path, abi: abi_of_flags(flags), line: 0 });
    true
}

/// The upper byte of the flags names the machine; only bare libc6 (0), and the 32-bit ABIs of
/// x32, Arm and MIPS, are narrow (glibc, `ldconfig.h`).
fn abi_of_flags(flags: usize) -> CacheAbi {
    const FLAG_X86_64: usize = 0x03;
    const FLAG_S390X: usize = 0x04;
    const FLAG_PPC64: usize = 0x05;
    const FLAG_AARCH64: usize = 0x0a;
    const FLAG_RISCV64: usize = 0x10;
    match flags >> 8 & 0xff {
        FLAG_X86_64 | FLAG_S390X | FLAG_PPC64 | FLAG_AARCH64 | FLAG_RISCV64 => CacheAbi::Wide,
        _ => CacheAbi::Narrow,
    }
}

fn word(bytes: &[u8], at: usize) -> Option<usize> {
    let field: [u8; 4] = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
    usize::try_from(u32::from_le_bytes(field)).ok()
}

/// Reads `ldconfig -p`: `libcuda.so.1 (libc6,x86-64) => /lib/x86_64-linux-gnu/libcuda.so.1`.
pub fn parse(text: &str) -> Parsed<Vec<CacheEntry>> {
    let mut parsed: Parsed<Vec<CacheEntry>> = Parsed::default();
    for (line, content) in numbered(text) {
        let Some(entry) = text_entry(content, line) else {
            let head =
                content.contains("libs found in cache") || content.starts_with("Cache generated");
            if !head && !content.trim().is_empty() {
                parsed.complain(line, "no line of ldconfig -p");
            }
            continue;
        };
        if parsed.value.len() < ENTRIES_LIMIT {
            parsed.value.push(entry);
        }
    }
    parsed
}

fn text_entry(content: &str, line: u32) -> Option<CacheEntry> {
    let (left, path) = content.split_once(" => ")?;
    let (name, flags) = left.trim().split_once(" (")?;
    let wide = ["x86-64", "AArch64", "64bit"].iter().any(|word| flags.contains(word));
    let abi = if wide { CacheAbi::Wide } else { CacheAbi::Narrow };
    Some(CacheEntry { name: name.to_owned(), path: path.trim().to_owned(), abi, line })
}
