//! Kernel modules (`.ko`): an ELF with `.modinfo`. Compressing them is left to the tests.

use crate::elf::{Elf, NOTE, PROGBITS, RELOCATABLE, Section, X86_64};

/// A module to be written.
#[derive(Debug, Clone, Default)]
pub struct KernelModule {
    fields: Vec<(String, String)>,
}

impl KernelModule {
    /// A module without any information.
    pub fn new() -> Self {
        Self::default()
    }

    /// `nvidia.ko` of this version for this kernel. The open flavour has the licence
    /// `Dual MIT/GPL`, the proprietary one `NVIDIA`.
    pub fn nvidia(version: &str, open: bool, kernel: &str) -> Self {
        let license = if open { "Dual MIT/GPL" } else { "NVIDIA" };
        Self::new()
            .field("version", version)
            .field("supported", "external")
            .field("license", license)
            .field("firmware", &format!("nvidia/{version}/gsp_tu10x.bin"))
            .field("firmware", &format!("nvidia/{version}/gsp_ga10x.bin"))
            .field("srcversion", "0123456789ABCDEF0123456")
            .field("depends", "")
            .field("name", "nvidia")
            .field("vermagic", &format!("{kernel} SMP preempt mod_unload modversions "))
    }

    /// Adds one `name=value` field.
    pub fn field(mut self, name: &str, value: &str) -> Self {
        self.fields.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The file's bytes, not compressed.
    pub fn build(&self) -> Vec<u8> {
        let modinfo: String =
            self.fields.iter().map(|(name, value)| name.clone() + "=" + value + "\0").collect();
        let section = |name: &str, kind, flags, data: &[u8]| Section {
            name: name.to_owned(),
            kind,
            flags,
            data: data.to_vec(),
        };
        let sections = vec![
            section(".text", PROGBITS, 6, &[0xc3; 16]),
            section(".note.Linux", NOTE, 2, &[0; 24]),
            section(".modinfo", PROGBITS, 2, modinfo.as_bytes()),
        ];
        Elf { kind: RELOCATABLE, machine: X86_64, sections }.build()
    }
}
