//! The file header and how numbers stand in the file.

use super::{ElfFault, ReadAt, Section, exact};

/// Most sections that are read; the largest kernel module has about a hundred.
const SECTIONS_LIMIT: usize = 4096;
/// The longest of the two file headers.
const HEADER_BYTES: usize = 64;

/// The part of the file header that leads to the section table.
pub(super) struct Header {
    pub(super) fields: Fields,
    pub(super) file_type: u16,
    pub(super) machine: u16,
    table_offset: u64,
    pub(super) entry_size: usize,
    pub(super) count: usize,
    pub(super) names_index: usize,
}

impl Header {
    pub(super) fn read(read_at: &ReadAt<'_>) -> Result<Header, ElfFault> {
        // A 32-bit header has 52 bytes, but no 32-bit file of interest is shorter than 64.
        let bytes = exact(read_at, 0, HEADER_BYTES).ok_or(ElfFault::Short)?;
        if !bytes.starts_with(b"\x7fELF") {
            return Err(ElfFault::NotElf);
        }
        Header::parse(&bytes).ok_or(ElfFault::Malformed)
    }

    fn parse(bytes: &[u8]) -> Option<Header> {
        let wide = match bytes.get(4)? {
            1 => false,
            2 => true,
            _ => return None,
        };
        let little = match bytes.get(5)? {
            1 => true,
            2 => false,
            _ => return None,
        };
        let fields = Fields { wide, little };
        let small = |offset| fields.number(bytes, offset, 2).and_then(|n| u16::try_from(n).ok());
        let (table, entry, count, names) = if wide { (40, 58, 60, 62) } else { (32, 46, 48, 50) };
        let header = Header {
            fields,
            file_type: small(16)?,
            machine: small(18)?,
            table_offset: fields.number(bytes, table, if wide { 8 } else { 4 })?,
            entry_size: small(entry)?.into(),
            count: small(count)?.into(),
            names_index: small(names)?.into(),
        };
        let entry_fits = header.count == 0 || header.entry_size == if wide { 64 } else { 40 };
        (entry_fits && header.count <= SECTIONS_LIMIT).then_some(header)
    }

    pub(super) fn read_table(&self, read_at: &ReadAt<'_>) -> Result<Vec<u8>, ElfFault> {
        if self.count == 0 {
            return Ok(Vec::new());
        }
        exact(read_at, self.table_offset, self.count * self.entry_size).ok_or(ElfFault::TableCutOff)
    }
}

/// Word size and byte order: how numbers stand in the file.
#[derive(Clone, Copy)]
pub(super) struct Fields {
    pub(super) wide: bool,
    pub(super) little: bool,
}

impl Fields {
    pub(super) fn number(self, bytes: &[u8], offset: usize, width: usize) -> Option<u64> {
        let field = bytes.get(offset..offset.checked_add(width)?)?;
        let shift_in = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
        Some(if self.little {
            field.iter().rev().fold(0, shift_in)
        } else {
            field.iter().fold(0, shift_in)
        })
    }

    /// The offset of a section's name and the rest of its header.
    pub(super) fn section(self, raw: &[u8]) -> Option<(usize, Section)> {
        let word = if self.wide { 8 } else { 4 };
        let (offset, size, entry) = if self.wide { (24, 32, 56) } else { (16, 20, 36) };
        let name = usize::try_from(self.number(raw, 0, 4)?).ok()?;
        let section = Section {
            name: String::new(),
            kind: u32::try_from(self.number(raw, 4, 4)?).ok()?,
            offset: self.number(raw, offset, word)?,
            size: self.number(raw, size, word)?,
            entry_size: self.number(raw, entry, word)?,
        };
        Some((name, section))
    }
}
