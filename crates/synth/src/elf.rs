//! ELF files of 64 bits, little-endian, section by section.

/// `SHT_PROGBITS`.
pub const PROGBITS: u32 = 1;
/// `SHT_STRTAB`.
pub const STRTAB: u32 = 3;
/// `SHT_NOTE`.
pub const NOTE: u32 = 7;
/// `EM_X86_64`.
pub const X86_64: u16 = 62;
/// `EM_RISCV`.
pub const RISCV: u16 = 243;
/// `ET_REL`.
pub const RELOCATABLE: u16 = 1;

/// Bytes of the file header.
pub(crate) const HEADER: usize = 64;

/// One section to be written.
#[derive(Debug, Clone)]
pub struct Section {
    /// Name, such as `.modinfo`.
    pub name: String,
    /// `sh_type`.
    pub kind: u32,
    /// `sh_flags`.
    pub flags: u64,
    /// Contents.
    pub data: Vec<u8>,
}

/// A file of sections without program headers, as firmware and kernel modules are.
#[derive(Debug, Clone)]
pub struct Elf {
    /// `e_type`.
    pub kind: u16,
    /// `e_machine`.
    pub machine: u16,
    /// Sections in file order; the names' own section is added at the end.
    pub sections: Vec<Section>,
}

impl Elf {
    /// The file's bytes.
    pub fn build(&self) -> Vec<u8> {
        let mut file = vec![0; HEADER];
        let mut names = vec![0];
        let mut headers = vec![0; HEADER];
        for section in &self.sections {
            let name = add_name(&mut names, &section.name);
            align(&mut file, 8);
            let (offset, size) = (file.len() as u64, section.data.len() as u64);
            file.extend(&section.data);
            section_header(&mut headers, name, (section.kind, section.flags), 0, offset, size);
        }
        let name = add_name(&mut names, ".shstrtab");
        let offset = file.len() as u64;
        file.extend(&names);
        section_header(&mut headers, name, (STRTAB, 0), 0, offset, names.len() as u64);
        align(&mut file, 8);
        let table = file.len() as u64;
        file.extend(headers);
        let count = self.sections.len() + 2;
        let header = file_header(self.kind, self.machine, 0, table, count);
        file.splice(..HEADER, header);
        file
    }
}

/// Appends a name and gives its offset in the table.
pub(crate) fn add_name(names: &mut Vec<u8>, name: &str) -> u32 {
    let offset = names.len();
    names.extend(name.bytes());
    names.push(0);
    u32::try_from(offset).unwrap_or(u32::MAX)
}

/// Pads with zeroes to a multiple of `to`.
pub(crate) fn align(file: &mut Vec<u8>, to: usize) {
    file.resize(file.len().next_multiple_of(to), 0);
}

/// Appends one section header. `address` is 0 in files that are not loaded.
pub(crate) fn section_header(
    headers: &mut Vec<u8>,
    name: u32,
    (kind, flags): (u32, u64),
    address: u64,
    offset: u64,
    size: u64,
) {
    headers.extend(name.to_le_bytes());
    headers.extend(kind.to_le_bytes());
    for number in [flags, address, offset, size] {
        headers.extend(number.to_le_bytes());
    }
    // No link and no info; alignment 1; no entries of fixed size.
    headers.extend([0; 8]);
    headers.extend(1_u64.to_le_bytes());
    headers.extend([0; 8]);
}

/// The 64 bytes at the start. The last section holds the names.
pub(crate) fn file_header(
    kind: u16,
    machine: u16,
    programs: u16,
    table: u64,
    sections: usize,
) -> Vec<u8> {
    let sections = u16::try_from(sections).unwrap_or(u16::MAX);
    let mut header = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    header.extend(kind.to_le_bytes());
    header.extend(machine.to_le_bytes());
    header.extend(1_u32.to_le_bytes());
    // Entry point, program headers' offset (behind this header), section headers' offset.
    header.extend(0_u64.to_le_bytes());
    header.extend(if programs == 0 { 0 } else { HEADER as u64 }.to_le_bytes());
    header.extend(table.to_le_bytes());
    header.extend(0_u32.to_le_bytes());
    // Sizes of this header and of both kinds of entries, with their counts.
    for number in [64, 56, programs, 64, sections, sections.saturating_sub(1)] {
        header.extend(number.to_le_bytes());
    }
    header
}
