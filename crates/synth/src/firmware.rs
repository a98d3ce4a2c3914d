//! GSP firmware files, as `gsp_ga10x.bin` is built: an ELF whose signature sections name the chips.

use crate::elf::{Elf, NOTE, PROGBITS, RELOCATABLE, RISCV, STRTAB, Section};

/// `SHF_WRITE | SHF_ALLOC`, the flags of `.fwimage`.
const WRITE_ALLOC: u64 = 3;

/// A firmware file to be written.
#[derive(Debug, Clone)]
pub struct GspFirmware {
    version: String,
    families: Vec<String>,
    image_bytes: usize,
    build_id: bool,
}

impl GspFirmware {
    /// A file of this driver version without signatures, with a small image.
    pub fn new(version: &str) -> Self {
        let image_bytes = 4096;
        Self { version: version.to_owned(), families: Vec::new(), image_bytes, build_id: false }
    }

    /// What 570 and later ship as `gsp_ga10x.bin`, Blackwell included.
    pub fn blackwell(version: &str) -> Self {
        let families = ["gb20x", "cc_gb10x", "gb10x", "cc_gh100", "gh100", "ad10x", "ga10x"];
        Self::new(version).families(&families).build_id()
    }

    /// What 535 to 555 ship as `gsp_ga10x.bin`: up to Hopper.
    pub fn hopper(version: &str) -> Self {
        Self::new(version).families(&["cc_gh100", "gh100", "ad10x", "ga10x"])
    }

    /// What all branches ship as `gsp_tu10x.bin`.
    pub fn turing(version: &str) -> Self {
        Self::new(version).families(&["ga100", "tu11x", "tu10x"])
    }

    /// Adds a `.fwsignature_*` section for each family.
    pub fn families(mut self, families: &[&str]) -> Self {
        self.families.extend(families.iter().map(|family| (*family).to_owned()));
        self
    }

    /// Sets the size of `.fwimage`; real ones have 24 to 64 MB.
    pub fn image_bytes(mut self, bytes: usize) -> Self {
        self.image_bytes = bytes;
        self
    }

    /// Adds the build id that files have since 570.
    pub fn build_id(mut self) -> Self {
        self.build_id = true;
        self
    }

    /// The file's bytes.
    pub fn build(&self) -> Vec<u8> {
        let section =
            |name: &str, kind, flags, data| Section { name: name.to_owned(), kind, flags, data };
        let mut sections =
            vec![section(".fwimage", PROGBITS, WRITE_ALLOC, vec![0x5a; self.image_bytes])];
        if self.build_id {
            let mut note = Vec::new();
            for number in [4_u32, 20, 3] {
                note.extend(number.to_le_bytes());
            }
            note.extend(b"GNU\0");
            note.extend([0xb1; 20]);
            sections.push(section(".note.gnu.build-id", NOTE, 2, note));
        }
        let version = [self.version.as_bytes(), b"\0"].concat();
        sections.push(section(".fwversion", PROGBITS, 0, version));
        for family in &self.families {
            let name = format!(".fwsignature_{family}");
            sections.push(section(&name, PROGBITS, 0, vec![0xa5; 4096]));
        }
        sections.push(section(".symtab", 2, 0, vec![0; 24]));
        sections.push(section(".strtab", STRTAB, 0, vec![0]));
        Elf { kind: RELOCATABLE, machine: RISCV, sections }.build()
    }

    /// The first `keep` bytes of the file, as an interrupted copy leaves it.
    pub fn truncated(&self, keep: usize) -> Vec<u8> {
        let mut file = self.build();
        file.truncate(keep);
        file
    }
}
