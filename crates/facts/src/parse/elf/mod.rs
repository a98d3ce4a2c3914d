//! ELF headers and section tables, by a few small reads.
//!
//! The firmware of the GSP has 75 MB and a driver library 30 MB; what is asked of them stands in a
//! few hundred bytes. So nothing here takes a whole file: the caller hands a closure that reads a
//! range, and this module stays free of input and output.

mod header;

use std::fmt;

use header::{Fields, Header};

/// Reads `length` bytes at `offset`. `None` when the file does not reach that far or the read
/// failed; a shorter answer counts as that too.
pub type ReadAt<'a> = dyn Fn(u64, usize) -> Option<Vec<u8>> + 'a;

/// A reader over bytes in memory.
pub fn reader_of(bytes: &[u8]) -> impl Fn(u64, usize) -> Option<Vec<u8>> + '_ {
    move |offset, length| {
        let start = usize::try_from(offset).ok()?;
        bytes.get(start..start.checked_add(length)?).map(<[u8]>::to_vec)
    }
}

/// Machine number of RISC-V, which the GSP is.
pub const MACHINE_RISCV: u16 = 243;
/// Machine number of x86-64.
pub const MACHINE_X86_64: u16 = 62;
/// Machine number of 32-bit x86.
pub const MACHINE_386: u16 = 3;
/// Machine number of 64-bit Arm.
pub const MACHINE_AARCH64: u16 = 183;
/// Machine number of 64-bit POWER.
pub const MACHINE_PPC64: u16 = 21;

/// The name of a machine number, as the terminal shows it.
pub fn machine_name(machine: u16) -> String {
    match machine {
        MACHINE_RISCV => "riscv64".to_owned(),
        MACHINE_X86_64 => "x86_64".to_owned(),
        MACHINE_386 => "i386".to_owned(),
        MACHINE_AARCH64 => "aarch64".to_owned(),
        MACHINE_PPC64 => "ppc64".to_owned(),
        other => format!("machine {other}"),
    }
}

/// Most bytes of section names that are read.
const NAMES_LIMIT: u64 = 1 << 20;

/// Why a file cannot be read as ELF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ElfFault {
    /// It is empty or too short for a header.
    Short,
    /// It does not begin with the ELF magic.
    NotElf,
    /// Its class, byte order or table sizes make no sense.
    Malformed,
    /// The section table lies beyond the end: the file was cut off.
    TableCutOff,
    /// The section names lie beyond the end or are too large.
    NamesCutOff,
}

impl fmt::Display for ElfFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ElfFault::Short => "too short for an ELF header",
            ElfFault::NotElf => "not an ELF file",
            ElfFault::Malformed => "a malformed ELF header",
            ElfFault::TableCutOff => "truncated: the section table lies beyond its end",
            ElfFault::NamesCutOff => "truncated: the section names lie beyond its end",
        })
    }
}

/// One section.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Section {
    /// Name, with its leading dot.
    pub name: String,
    /// `sh_type`; 8 is NOBITS, which takes no room in the file.
    pub kind: u32,
    /// Offset in the file.
    pub offset: u64,
    /// Size in bytes.
    pub size: u64,
    /// Size of one entry, for tables.
    pub entry_size: u64,
}

/// What the header and the section table tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ElfFile {
    /// 32 or 64.
    pub bits: u8,
    /// True for little-endian.
    pub little_endian: bool,
    /// `e_type`: 1 relocatable, 3 shared object.
    pub file_type: u16,
    /// `e_machine`.
    pub machine: u16,
    /// All sections, in order.
    pub sections: Vec<Section>,
}

impl ElfFile {
    /// Reads the header, the section table and the section names: three reads.
    pub fn read(read_at: &ReadAt<'_>) -> Result<ElfFile, ElfFault> {
        let header = Header::read(read_at)?;
        let table = header.read_table(read_at)?;
        let mut sections = Vec::with_capacity(header.count);
        let mut name_offsets = Vec::with_capacity(header.count);
        for raw in table.chunks_exact(header.entry_size) {
            let (name_offset, section) = header.fields.section(raw).ok_or(ElfFault::Malformed)?;
            name_offsets.push(name_offset);
            sections.push(section);
        }
        let names = match sections.get(header.names_index) {
            Some(section) if section.size <= NAMES_LIMIT => {
                let size = usize::try_from(section.size).map_err(|_| ElfFault::NamesCutOff)?;
                exact(read_at, section.offset, size).ok_or(ElfFault::NamesCutOff)?
            }
            Some(_) => return Err(ElfFault::NamesCutOff),
            None => Vec::new(),
        };
        for (section, offset) in sections.iter_mut().zip(name_offsets) {
            section.name = text_at(&names, offset);
        }
        let Header { fields, file_type, machine, .. } = header;
        let bits = if fields.wide { 64 } else { 32 };
        let little_endian = fields.little;
        Ok(ElfFile { bits, little_endian, file_type, machine, sections })
    }

    /// The section of that name.
    pub fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name)
    }

    /// The content of a section, if it is no longer than `limit` and lies within the file.
    pub fn content(&self, read_at: &ReadAt<'_>, name: &str, limit: usize) -> Option<Vec<u8>> {
        let section = self.section(name)?;
        let size = usize::try_from(section.size).ok().filter(|size| *size <= limit)?;
        exact(read_at, section.offset, size)
    }

    /// The names of the sections whose last byte the file does not reach.
    pub fn cut_off(&self, read_at: &ReadAt<'_>) -> Option<&str> {
        const NOBITS: u32 = 8;
        let ends = |section: &Section| section.offset.saturating_add(section.size);
        let last = self
            .sections
            .iter()
            .filter(|section| section.kind != NOBITS && section.size > 0)
            .max_by_key(|section| ends(section))?;
        let whole = exact(read_at, ends(last) - 1, 1).is_some();
        (!whole).then_some(last.name.as_str())
    }

    /// A number of `width` bytes in the file's byte order.
    pub fn number(&self, bytes: &[u8], offset: usize, width: usize) -> Option<u64> {
        Fields { wide: self.bits == 64, little: self.little_endian }.number(bytes, offset, width)
    }
}

/// A read that gives exactly what was asked for.
fn exact(read_at: &ReadAt<'_>, offset: u64, length: usize) -> Option<Vec<u8>> {
    read_at(offset, length).filter(|bytes| bytes.len() == length)
}

/// The NUL-terminated text at an offset of a string table.
pub(super) fn text_at(table: &[u8], offset: usize) -> String {
    let rest = table.get(offset..).unwrap_or_default();
    let end = memchr::memchr(0, rest).unwrap_or(rest.len()).min(256);
    String::from_utf8_lossy(rest.get(..end).unwrap_or_default()).into_owned()
}
