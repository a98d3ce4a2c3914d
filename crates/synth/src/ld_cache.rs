//! `/etc/ld.so.cache`, which tells where the loader finds each library.

/// Flags of an entry: an ELF library of libc 6 for x86-64.
const LIBC6_X86_64: u32 = 0x0303;
/// Bytes of the header of the new format.
const HEADER: usize = 48;
/// Bytes of one of its entries.
const ENTRY: usize = 24;

/// A cache to be written.
#[derive(Debug, Clone, Default)]
pub struct LdCache {
    entries: Vec<(String, String)>,
    legacy: bool,
}

impl LdCache {
    /// An empty cache of the format that glibc has written alone since 2.32.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a library by its name and its path. Entries are kept in the order given.
    pub fn entry(mut self, name: &str, path: &str) -> Self {
        self.entries.push((name.to_owned(), path.to_owned()));
        self
    }

    /// Puts the older format before it, as ldconfig did up to 2.31.
    pub fn with_legacy_part(mut self) -> Self {
        self.legacy = true;
        self
    }

    /// The file's bytes.
    pub fn build(&self) -> Vec<u8> {
        let mut strings = Vec::new();
        let base = HEADER + self.entries.len() * ENTRY;
        let mut entries = Vec::new();
        let mut offsets = Vec::new();
        for (name, path) in &self.entries {
            let key = add(&mut strings, base, name);
            let value = add(&mut strings, base, path);
            offsets.push((key, value));
            for number in [LIBC6_X86_64, key, value, 0] {
                entries.extend(number.to_le_bytes());
            }
            entries.extend(0_u64.to_le_bytes());
        }
        let mut file = if self.legacy { legacy_part(&offsets) } else { Vec::new() };
        file.extend(b"glibc-ld.so.cache1.1");
        file.extend(count(self.entries.len()));
        file.extend(count(strings.len()));
        // Flags: 2 is little-endian. Then padding, no extensions, unused words.
        file.extend([2, 0, 0, 0]);
        file.extend([0; 16]);
        file.extend(entries);
        file.extend(strings);
        file
    }
}

/// The older header and entries. Its offsets are from the start of the new part's strings in
/// memory; readers of the new part do not look at them.
fn legacy_part(offsets: &[(u32, u32)]) -> Vec<u8> {
    let mut part = b"ld.so-1.7.0\0".to_vec();
    part.extend(count(offsets.len()));
    for (key, value) in offsets {
        for number in [LIBC6_X86_64, *key, *value] {
            part.extend(number.to_le_bytes());
        }
    }
    part.resize(part.len().next_multiple_of(8), 0);
    part
}

/// Appends text with its NUL and gives its offset from the start of the new format's header.
fn add(strings: &mut Vec<u8>, base: usize, text: &str) -> u32 {
    let offset = base + strings.len();
    strings.extend(text.bytes());
    strings.push(0);
    u32::try_from(offset).unwrap_or(u32::MAX)
}

fn count(number: usize) -> [u8; 4] {
    u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes()
}
