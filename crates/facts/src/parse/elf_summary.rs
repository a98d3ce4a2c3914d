//! The compact text form in which probes and case folders hand over what a binary file tells of
//! itself, so that no bundle carries a driver's binaries.
//!
//! ```text
//! gpudx-elf 1
//! kind gsp
//! version 580.159.04
//! family gb20x
//! complete yes
//! ```
//!
//! One key and one value a line; a key may repeat; unknown keys are kept as complaints.

use std::fmt::Write as _;

use super::elf_gsp::GspSummary;
use super::elf_library::LibrarySummary;
use super::modinfo::ModInfo;
use super::{Parsed, numbered};
use crate::model::library::LibraryKind;
use crate::version::DriverVersion;

/// The first line of the form; the number is its version.
pub const FIRST_LINE: &str = "gpudx-elf 1";

/// Most lines that are read.
const LINES_LIMIT: usize = 1024;

/// What a binary file tells of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ElfSummary {
    /// GSP firmware.
    Gsp(GspSummary),
    /// A driver library, with its path after following links if that was seen.
    Library {
        /// What the file tells.
        library: LibrarySummary,
        /// Path after following links.
        real_path: Option<String>,
    },
    /// A kernel module.
    Module(ModInfo),
}

/// Whether bytes are of this form.
pub fn is_summary(bytes: &[u8]) -> bool {
    bytes
        .strip_prefix(FIRST_LINE.as_bytes())
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(b"\n") || rest.starts_with(b"\r\n"))
}

/// Writes the form.
pub fn to_text(summary: &ElfSummary) -> String {
    let mut out = Writer { text: format!("{FIRST_LINE}\n") };
    match summary {
        ElfSummary::Gsp(gsp) => write_gsp(gsp, &mut out),
        ElfSummary::Library { library, real_path } => {
            write_library(library, real_path.as_deref(), &mut out);
        }
        ElfSummary::Module(module) => write_module(module, &mut out),
    }
    out.text
}

struct Writer {
    text: String,
}

impl Writer {
    fn line(&mut self, key: &str, value: &str) {
        // A name or a string out of a binary file may hold anything; a line break would forge keys.
        let value: String =
            value.chars().map(|ch| if ch.is_control() { '\u{fffd}' } else { ch }).collect();
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "{key} {value}");
    }

    fn optional(&mut self, key: &str, value: Option<impl ToString>) {
        if let Some(value) = value {
            self.line(key, &value.to_string());
        }
    }

    fn each(&mut self, key: &str, values: &[String]) {
        for value in values {
            self.line(key, value);
        }
    }
}

fn write_gsp(gsp: &GspSummary, out: &mut Writer) {
    out.line("kind", "gsp");
    out.optional("version", gsp.version.as_ref());
    out.each("family", &gsp.families);
    out.each("confidential-family", &gsp.confidential);
    out.line("complete", if gsp.complete { "yes" } else { "no" });
    out.each("fault", &gsp.faults);
}

fn write_library(library: &LibrarySummary, real_path: Option<&str>, out: &mut Writer) {
    out.line("kind", "library");
    out.optional("soname", library.soname.as_ref());
    out.optional("real-path", real_path);
    out.optional("version", library.version.as_ref());
    out.optional("library-kind", library.kind.map(kind_name));
    out.optional("machine", library.machine.as_ref());
    out.optional("bits", library.bits);
    out.each("fault", &library.faults);
}

fn write_module(module: &ModInfo, out: &mut Writer) {
    out.line("kind", "module");
    out.optional("name", module.name.as_ref());
    out.optional("filename", module.filename.as_ref());
    out.optional("version", module.version.as_ref());
    out.optional("license", module.license.as_ref());
    out.optional("vermagic", module.vermagic.as_ref());
    out.optional("srcversion", module.srcversion.as_ref());
    out.optional("signer", module.signer.as_ref());
    out.each("firmware", &module.firmware);
    out.each("fault", &module.faults);
}

const KINDS: [(LibraryKind, &str); 5] = [
    (LibraryKind::Driver, "driver"),
    (LibraryKind::Stub, "stub"),
    (LibraryKind::Compat, "compat"),
    (LibraryKind::Wsl, "wsl"),
    (LibraryKind::Broken, "broken"),
];

fn kind_name(kind: LibraryKind) -> &'static str {
    KINDS.iter().find(|(known, _)| *known == kind).map_or("driver", |(_, name)| name)
}

/// Reads the form. `None` when the text is not of it or names no known kind of file.
pub fn parse(text: &str) -> Parsed<Option<ElfSummary>> {
    let mut parsed = Parsed::default();
    if !is_summary(text.as_bytes()) {
        parsed.complain(0, "not a summary of a binary file");
        return parsed;
    }
    for (number, line) in numbered(text).skip(1).take(LINES_LIMIT) {
        let (key, value) = line.split_once(' ').unwrap_or((line, ""));
        let known = match (&mut parsed.value, key) {
            (None, "kind") => {
                parsed.value = empty_of_kind(value);
                parsed.value.is_some()
            }
            (Some(ElfSummary::Gsp(gsp)), _) => set_gsp(gsp, key, value),
            (Some(ElfSummary::Library { library, real_path }), _) => {
                set_library(library, real_path, key, value)
            }
            (Some(ElfSummary::Module(module)), _) => set_module(module, key, value),
            (None, _) => false,
        };
        if !known && !line.is_empty() {
            parsed.complain(number, "unknown line in a summary of a binary file");
        }
    }
    parsed
}

fn empty_of_kind(kind: &str) -> Option<ElfSummary> {
    match kind {
        "gsp" => Some(ElfSummary::Gsp(GspSummary::default())),
        "library" => {
            Some(ElfSummary::Library { library: LibrarySummary::default(), real_path: None })
        }
        "module" => Some(ElfSummary::Module(ModInfo::default())),
        _ => None,
    }
}

fn set_gsp(gsp: &mut GspSummary, key: &str, value: &str) -> bool {
    match key {
        "version" => gsp.version = DriverVersion::parse(value),
        "family" => return gsp.add_section_name(&format!("fwsignature_{value}")),
        "confidential-family" => return gsp.add_section_name(&format!("fwsignature_cc_{value}")),
        "complete" => gsp.complete = value == "yes",
        "fault" => gsp.faults.push(value.to_owned()),
        _ => return false,
    }
    true
}

fn set_library(
    library: &mut LibrarySummary,
    real_path: &mut Option<String>,
    key: &str,
    value: &str,
) -> bool {
    match key {
        "soname" => library.soname = Some(value.to_owned()),
        "real-path" => *real_path = Some(value.to_owned()),
        "version" => library.version = DriverVersion::parse(value),
        "library-kind" => {
            library.kind = KINDS.iter().find(|(_, name)| *name == value).map(|(kind, _)| *kind);
        }
        "machine" => library.machine = Some(value.to_owned()),
        "bits" => library.bits = value.parse().ok(),
        "fault" => library.faults.push(value.to_owned()),
        _ => return false,
    }
    true
}

fn set_module(module: &mut ModInfo, key: &str, value: &str) -> bool {
    match key {
        "fault" => module.faults.push(value.to_owned()),
        "name" | "filename" | "version" | "license" | "vermagic" | "srcversion" | "signer"
        | "firmware" => module.set(key, value),
        _ => return false,
    }
    true
}
