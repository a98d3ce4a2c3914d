//! Writers of small synthetic inputs that share no code with the parsers.

use facts::raw::{ItemName, RawItem};

/// An item that is a command's output.
pub(crate) fn command(line: &str, output: &str) -> RawItem {
    RawItem::new(ItemName::Command(line.to_owned()), output.as_bytes())
}

/// An item that is a file.
pub(crate) fn file(path: &str, bytes: impl AsRef<[u8]>) -> RawItem {
    RawItem::new(ItemName::File(path.to_owned()), bytes.as_ref())
}

/// One section of a synthetic ELF file: name, type, content, entry size.
pub(crate) type SectionSpec<'a> = (&'a str, u32, &'a [u8], u64);

/// A little-endian ELF64 file with these sections behind a null one and a name table at the end.
pub(crate) fn elf64(machine: u16, file_type: u16, sections: &[SectionSpec<'_>]) -> Vec<u8> {
    let mut body = vec![0_u8; 64];
    let mut names = vec![0_u8];
    let mut headers = vec![[0_u8; 64]];
    let name_section: SectionSpec<'_> = (".shstrtab", 3, &[], 0);
    for (name, kind, content, entry_size) in sections.iter().chain([&name_section]) {
        let name_offset = names.len();
        names.extend_from_slice(name.as_bytes());
        names.push(0);
        let offset = body.len();
        let size = if *name == ".shstrtab" { names.len() } else { content.len() };
        if *name == ".shstrtab" {
            body.extend_from_slice(&names);
        } else {
            body.extend_from_slice(content);
        }
        let mut header = [0_u8; 64];
        header[0..4].copy_from_slice(&u32::try_from(name_offset).unwrap().to_le_bytes());
        header[4..8].copy_from_slice(&kind.to_le_bytes());
        header[24..32].copy_from_slice(&u64::try_from(offset).unwrap().to_le_bytes());
        header[32..40].copy_from_slice(&u64::try_from(size).unwrap().to_le_bytes());
        header[56..64].copy_from_slice(&entry_size.to_le_bytes());
        headers.push(header);
    }
    let table = u64::try_from(body.len()).unwrap();
    let count = u16::try_from(headers.len()).unwrap();
    for header in headers {
        body.extend_from_slice(&header);
    }
    body[0..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    body[16..18].copy_from_slice(&file_type.to_le_bytes());
    body[18..20].copy_from_slice(&machine.to_le_bytes());
    body[40..48].copy_from_slice(&table.to_le_bytes());
    body[58..60].copy_from_slice(&64_u16.to_le_bytes());
    body[60..62].copy_from_slice(&count.to_le_bytes());
    body[62..64].copy_from_slice(&(count - 1).to_le_bytes());
    body
}

/// A GSP firmware file with signatures for these families.
pub(crate) fn gsp(version: &str, families: &[&str]) -> Vec<u8> {
    let version = format!("{version}\0");
    let names: Vec<String> = families.iter().map(|f| format!(".fwsignature_{f}")).collect();
    let mut sections: Vec<SectionSpec<'_>> =
        vec![(".fwimage", 1, &[7; 4096], 0), (".fwversion", 1, version.as_bytes(), 0)];
    sections.extend(names.iter().map(|name| (name.as_str(), 1, &[9_u8; 64][..], 0)));
    elf64(243, 1, &sections)
}

/// A shared library with a SONAME, so much code and so many dynamic symbols.
pub(crate) fn library(soname: &str, code: usize, symbols: usize, rodata: &[u8]) -> Vec<u8> {
    let strings = format!("\0{soname}\0");
    let mut dynamic = Vec::new();
    for (tag, value) in [(14_u64, 1_u64), (0, 0)] {
        dynamic.extend_from_slice(&tag.to_le_bytes());
        dynamic.extend_from_slice(&value.to_le_bytes());
    }
    let code = vec![0x90; code];
    let symbols = vec![0; symbols * 24];
    elf64(
        62,
        3,
        &[
            (".dynsym", 11, &symbols, 24),
            (".dynstr", 3, strings.as_bytes(), 0),
            (".text", 1, &code, 0),
            (".rodata", 1, rodata, 0),
            (".dynamic", 6, &dynamic, 16),
        ],
    )
}

/// A kernel module with these `.modinfo` entries.
pub(crate) fn kernel_module(entries: &[&str]) -> Vec<u8> {
    let mut info = entries.join("\0").into_bytes();
    info.push(0);
    elf64(62, 1, &[(".text", 1, &[0x90; 4000], 0), (".modinfo", 1, &info, 0)])
}

/// A loader's cache in the new form: name, path, flags of each entry.
pub(crate) fn loader_cache(entries: &[(&str, &str, u32)]) -> Vec<u8> {
    let mut strings = Vec::new();
    let mut table = Vec::new();
    let base = 48 + 24 * entries.len();
    for (name, path, flags) in entries {
        let mut add = |text: &str| {
            let at = u32::try_from(base + strings.len()).unwrap();
            strings.extend_from_slice(text.as_bytes());
            strings.push(0);
            at
        };
        let (name, path) = (add(name), add(path));
        for word in [*flags, name, path, 0, 0, 0] {
            table.extend_from_slice(&word.to_le_bytes());
        }
    }
    let mut out = b"glibc-ld.so.cache1.1".to_vec();
    out.extend_from_slice(&u32::try_from(entries.len()).unwrap().to_le_bytes());
    out.extend_from_slice(&u32::try_from(strings.len()).unwrap().to_le_bytes());
    out.resize(48, 0);
    out.extend_from_slice(&table);
    out.extend_from_slice(&strings);
    out
}
