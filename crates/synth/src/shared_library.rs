//! Shared libraries that say who they are and do nothing: an ELF with a SONAME, enough for reading
//! and too little for loading.

use crate::elf::{self, HEADER, PROGBITS, STRTAB, X86_64};

/// `SHT_DYNAMIC`.
const DYNAMIC: u32 = 6;
/// `ET_DYN`.
const SHARED: u16 = 3;
/// Bytes of a program header.
const PROGRAM: usize = 56;

/// A library to be written.
#[derive(Debug, Clone)]
pub struct SharedLibrary {
    soname: String,
    needed: Vec<String>,
    text: String,
}

impl SharedLibrary {
    /// A library with this SONAME, such as `libcuda.so.1`.
    pub fn new(soname: &str) -> Self {
        Self { soname: soname.to_owned(), needed: Vec::new(), text: String::new() }
    }

    /// Adds a library that it depends on.
    pub fn needs(mut self, library: &str) -> Self {
        self.needed.push(library.to_owned());
        self
    }

    /// Adds text to its constants, where real drivers have their version.
    pub fn text(mut self, text: &str) -> Self {
        self.text.push_str(text);
        self.text.push('\0');
        self
    }

    /// The file's bytes. All of it is one loaded segment at address 0, so addresses are offsets.
    pub fn build(&self) -> Vec<u8> {
        let mut strings = vec![0];
        let mut entries: Vec<(u64, u64)> = Vec::new();
        for library in &self.needed {
            entries.push((1, elf::add_name(&mut strings, library).into()));
        }
        entries.push((14, elf::add_name(&mut strings, &self.soname).into()));
        let mut file = vec![0; HEADER + 2 * PROGRAM];
        let strings_at = file.len() as u64;
        file.extend(&strings);
        let text_at = file.len() as u64;
        file.extend(self.text.bytes());
        elf::align(&mut file, 8);
        let dynamic_at = file.len() as u64;
        entries.extend([(5, strings_at), (10, strings.len() as u64), (0, 0)]);
        for (tag, value) in entries {
            file.extend(tag.to_le_bytes());
            file.extend(value.to_le_bytes());
        }
        let dynamic_size = file.len() as u64 - dynamic_at;
        let mut names = vec![0];
        let mut headers = vec![0; 64];
        let sections = [
            (".dynstr", STRTAB, strings_at, strings.len() as u64),
            (".rodata", PROGBITS, text_at, self.text.len() as u64),
            (".dynamic", DYNAMIC, dynamic_at, dynamic_size),
        ];
        for (name, kind, offset, size) in sections {
            let name = elf::add_name(&mut names, name);
            elf::section_header(&mut headers, name, (kind, 2), offset, offset, size);
        }
        // `.dynamic` links to `.dynstr`, the first section behind the null one.
        if let Some(link) = headers.get_mut(3 * 64 + 40) {
            *link = 1;
        }
        let name = elf::add_name(&mut names, ".shstrtab");
        let names_at = file.len() as u64;
        file.extend(&names);
        elf::section_header(&mut headers, name, (STRTAB, 0), 0, names_at, names.len() as u64);
        elf::align(&mut file, 8);
        let table = file.len() as u64;
        file.extend(headers);
        let mut start = elf::file_header(SHARED, X86_64, 2, table, 5);
        // PT_LOAD of the whole file, then PT_DYNAMIC.
        start.extend(program_header(1, 0, file.len() as u64));
        start.extend(program_header(2, dynamic_at, dynamic_size));
        file.splice(..start.len(), start);
        file
    }
}

fn program_header(kind: u32, offset: u64, size: u64) -> Vec<u8> {
    const READ: u32 = 4;
    let mut header = [kind.to_le_bytes(), READ.to_le_bytes()].concat();
    for number in [offset, offset, offset, size, size, 8] {
        header.extend(number.to_le_bytes());
    }
    header
}
