//! What a kernel module tells of itself: the `.modinfo` section of a `.ko` (also compressed) and
//! the output of the `modinfo` command.

use super::decompress::decompress;
use super::elf::{ElfFile, reader_of};
use super::{Parsed, numbered};
use crate::model::module::Flavour;
use crate::version::DriverVersion;

/// The fields of one module that matter here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModInfo {
    /// `filename`, which only the command shows.
    pub filename: Option<String>,
    /// `name`, such as `nvidia_uvm`.
    pub name: Option<String>,
    /// `version`.
    pub version: Option<DriverVersion>,
    /// `license`: `NVIDIA` for the proprietary flavour, `Dual MIT/GPL` for the open one.
    pub license: Option<String>,
    /// `vermagic`: the kernel release it was built for, then flags.
    pub vermagic: Option<String>,
    /// `srcversion`.
    pub srcversion: Option<String>,
    /// `signer`; `None` for an unsigned module, or when only the section was read.
    pub signer: Option<String>,
    /// `firmware` entries, the files that it asks for.
    pub firmware: Vec<String>,
    /// What is wrong with the file, one sentence each.
    pub faults: Vec<String>,
}

/// Most `firmware` entries that are kept.
const FIRMWARE_LIMIT: usize = 64;
/// Most modules of one output that are kept.
const MODULES_LIMIT: usize = 256;
/// Largest `.modinfo` that is read; nvidia.ko's has 60 KB of parameter descriptions.
const SECTION_LIMIT: usize = 4 << 20;

impl ModInfo {
    /// The flavour by its licence.
    pub fn flavour(&self) -> Option<Flavour> {
        match self.license.as_deref()? {
            "NVIDIA" => Some(Flavour::Proprietary),
            license if license.contains("GPL") => Some(Flavour::Open),
            _ => None,
        }
    }

    /// The kernel release that `vermagic` begins with.
    pub fn kernel(&self) -> Option<&str> {
        self.vermagic.as_deref()?.split_ascii_whitespace().next()
    }

    /// True when no field was found.
    pub fn is_empty(&self) -> bool {
        *self == ModInfo { faults: self.faults.clone(), ..ModInfo::default() }
    }

    /// Enters one field. The first value of a field counts.
    pub fn set(&mut self, key: &str, value: &str) {
        let slot = match key {
            "filename" => &mut self.filename,
            "name" => &mut self.name,
            "license" => &mut self.license,
            "vermagic" => &mut self.vermagic,
            "srcversion" => &mut self.srcversion,
            "signer" => &mut self.signer,
            "version" => {
                self.version = self.version.take().or_else(|| DriverVersion::parse(value));
                return;
            }
            "firmware" if self.firmware.len() < FIRMWARE_LIMIT => {
                self.firmware.push(value.to_owned());
                return;
            }
            _ => return,
        };
        if !value.is_empty() {
            slot.get_or_insert_with(|| value.to_owned());
        }
    }
}

/// Reads a module file, compressed or not. Faults of the container stand in the result.
pub fn read(bytes: &[u8]) -> ModInfo {
    let mut info = ModInfo::default();
    let content = match decompress(bytes) {
        Ok(content) => content,
        Err(fault) => {
            info.faults.push(fault.to_string());
            return info;
        }
    };
    let read_at = reader_of(&content);
    let elf = match ElfFile::read(&read_at) {
        Ok(elf) => elf,
        Err(fault) => {
            info.faults.push(fault.to_string());
            return info;
        }
    };
    match elf.content(&read_at, ".modinfo", SECTION_LIMIT) {
        Some(section) => read_section(&section, &mut info),
        None => info.faults.push("no readable .modinfo section".to_owned()),
    }
    info
}

/// The section is `key=value` texts, each ended by NUL, with NULs between.
fn read_section(section: &[u8], info: &mut ModInfo) {
    for entry in section.split(|byte| *byte == 0) {
        let entry = String::from_utf8_lossy(entry);
        if let Some((key, value)) = entry.split_once('=') {
            info.set(key, value);
        }
    }
}

/// Reads the output of `modinfo`. With several modules in it, each begins with its `filename`.
pub fn parse(text: &str) -> Parsed<Vec<super::At<ModInfo>>> {
    let mut parsed: Parsed<Vec<super::At<ModInfo>>> = Parsed::default();
    for (number, line) in numbered(text) {
        if let Some(name) = missing_module(line) {
            parsed.complain(number, format!("modinfo finds no module {name}"));
            continue;
        }
        let Some((key, value)) = line.split_once(':') else {
            continue;
        };
        let (key, value) = (key.trim(), value.trim());
        if key == "filename" || parsed.value.is_empty() && is_field(key) {
            parsed.value.push(super::At::new(number, ModInfo::default()));
        }
        if parsed.value.len() > MODULES_LIMIT {
            break;
        }
        if let Some(current) = parsed.value.last_mut() {
            current.value.set(key, value);
        }
    }
    parsed.value.retain(|info| !info.value.is_empty());
    parsed
}

fn is_field(key: &str) -> bool {
    matches!(key, "name" | "version" | "license" | "vermagic" | "srcversion" | "firmware")
}

/// `modinfo: ERROR: Module nvidia not found.`
fn missing_module(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("modinfo: ERROR: Module ")?;
    rest.split_ascii_whitespace().next()
}
