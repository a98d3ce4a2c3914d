//! The driver libraries `libcuda.so` and `libnvidia-ml.so` as ELF files.

use super::elf::{
    ElfFile, MACHINE_AARCH64, MACHINE_PPC64, MACHINE_X86_64, ReadAt, machine_name, text_at,
};
use crate::model::library::LibraryKind;
use crate::version::DriverVersion;

/// What a library file tells of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LibrarySummary {
    /// `DT_SONAME`, such as `libcuda.so.1`.
    pub soname: Option<String>,
    /// Version, from the path's suffix or from the file's strings.
    pub version: Option<DriverVersion>,
    /// Kind; `None` only before anything was read.
    pub kind: Option<LibraryKind>,
    /// Machine, such as `x86_64`; `None` when the header could not be read.
    pub machine: Option<String>,
    /// Word size, 32 or 64.
    pub bits: Option<u8>,
    /// What is wrong with the file, one sentence each.
    pub faults: Vec<String>,
}

/// The kind that a path by itself shows. A toolkit keeps its stubs in a folder `stubs`, the forward
/// compatibility package its libraries in a folder `compat`, WSL its own under `/usr/lib/wsl`.
pub fn kind_of_path(path: &str) -> LibraryKind {
    let folder = |name: &str| path.split('/').any(|part| part == name);
    if folder("stubs") {
        LibraryKind::Stub
    } else if folder("compat") || path.contains("/cuda-compat") {
        LibraryKind::Compat
    } else if path.contains("/wsl/") {
        LibraryKind::Wsl
    } else {
        LibraryKind::Driver
    }
}

/// The version that a library's file name carries: `libcuda.so.580.159.04`.
pub fn version_of_path(path: &str) -> Option<DriverVersion> {
    let (_, suffix) = path.rsplit_once(".so.")?;
    DriverVersion::parse(suffix)
}

/// The name a driver library is looked up by, when a path is one: `libcuda.so.1` or
/// `libnvidia-ml.so.1` for any spelling of their versions.
pub fn soname_of_path(path: &str) -> Option<&'static str> {
    let file = path.rsplit('/').next()?;
    let is = |stem: &str| {
        let rest = file.strip_prefix(stem)?;
        let numbers = rest.bytes().all(|byte| byte == b'.' || byte.is_ascii_digit());
        (rest.is_empty() || rest.starts_with('.') && numbers).then_some(())
    };
    match (is("libcuda.so"), is("libnvidia-ml.so")) {
        (Some(()), _) => Some("libcuda.so.1"),
        (_, Some(())) => Some("libnvidia-ml.so.1"),
        (None, None) => None,
    }
}

/// Reads a library. `path` is its path after following links, which tells kind and version best.
pub fn read(read_at: &ReadAt<'_>, path: &str) -> LibrarySummary {
    let mut summary = LibrarySummary {
        version: version_of_path(path),
        kind: Some(kind_of_path(path)),
        ..LibrarySummary::default()
    };
    let elf = match ElfFile::read(read_at) {
        Ok(elf) => elf,
        Err(fault) => {
            summary.kind = Some(LibraryKind::Broken);
            summary.faults.push(fault.to_string());
            return summary;
        }
    };
    summary.machine = Some(machine_name(elf.machine));
    summary.bits = Some(elf.bits);
    summary.soname = soname(&elf, read_at);
    if let Some(section) = elf.cut_off(read_at) {
        summary.faults.push(format!("truncated: {section} lies beyond its end"));
        summary.kind = Some(LibraryKind::Broken);
    }
    if !runs_cuda(&elf) {
        let machine = machine_name(elf.machine);
        summary.faults.push(format!("a {}-bit library for {machine}", elf.bits));
        summary.kind = Some(LibraryKind::Broken);
    }
    if summary.kind == Some(LibraryKind::Driver) && looks_like_stub(&elf) {
        summary.kind = Some(LibraryKind::Stub);
    }
    if summary.version.is_none() && summary.kind != Some(LibraryKind::Stub) {
        summary.version = version_in_strings(&elf, read_at);
    }
    summary
}

/// The machines that CUDA's driver exists for, all 64-bit by now.
fn runs_cuda(elf: &ElfFile) -> bool {
    elf.bits == 64 && matches!(elf.machine, MACHINE_X86_64 | MACHINE_AARCH64 | MACHINE_PPC64)
}

/// A stub has hundreds of functions of a few instructions each, all answering the same code; the
/// driver's own library has thousands of bytes a function, and a stand-in has few functions.
fn looks_like_stub(elf: &ElfFile) -> bool {
    const STUB_BYTES_PER_FUNCTION: u64 = 64;
    const STUB_FUNCTIONS_AT_LEAST: u64 = 50;
    let symbols = elf
        .section(".dynsym")
        .map_or(0, |section| section.size.checked_div(section.entry_size).unwrap_or(0));
    let code = elf.section(".text").map_or(0, |section| section.size);
    symbols >= STUB_FUNCTIONS_AT_LEAST && code / symbols < STUB_BYTES_PER_FUNCTION
}

fn soname(elf: &ElfFile, read_at: &ReadAt<'_>) -> Option<String> {
    const TAG_SONAME: u64 = 14;
    const TABLE_LIMIT: usize = 1 << 16;
    const STRINGS_LIMIT: usize = 4 << 20;
    let table = elf.content(read_at, ".dynamic", TABLE_LIMIT)?;
    let word = if elf.bits == 64 { 8 } else { 4 };
    let offset = table
        .chunks_exact(2 * word)
        .find(|entry| elf.number(entry, 0, word) == Some(TAG_SONAME))
        .and_then(|entry| elf.number(entry, word, word))?;
    let strings = elf.content(read_at, ".dynstr", STRINGS_LIMIT)?;
    Some(text_at(&strings, usize::try_from(offset).ok()?)).filter(|name| !name.is_empty())
}

/// The highest full version that ends a string in `.rodata`. The driver keeps its own there beside
/// those of releases that it knows of, which are older (measured on libcuda 535.261.03 and
/// 550.163.01 and on libnvidia-ml 550.163.01).
fn version_in_strings(elf: &ElfFile, read_at: &ReadAt<'_>) -> Option<DriverVersion> {
    const PIECE_BYTES: u64 = 1 << 20;
    const OVERLAP_BYTES: u64 = 64;
    const SCAN_LIMIT_BYTES: u64 = 64 << 20;
    let section = elf.section(".rodata")?;
    let size = section.size.min(SCAN_LIMIT_BYTES);
    let mut best: Option<DriverVersion> = None;
    let mut at = 0;
    while at < size {
        let length = (PIECE_BYTES + OVERLAP_BYTES).min(size - at);
        let piece = read_at(section.offset.checked_add(at)?, usize::try_from(length).ok()?)?;
        best = best.max(highest_version(&piece));
        at += PIECE_BYTES;
    }
    best
}

fn highest_version(bytes: &[u8]) -> Option<DriverVersion> {
    const LONGEST: usize = "libcuda.so.580.159.04".len();
    let mut best: Option<DriverVersion> = None;
    for end in memchr::memchr_iter(0, bytes) {
        let before = bytes.get(end.saturating_sub(LONGEST)..end).unwrap_or_default();
        let tail = before.iter().rev().take_while(|byte| byte.is_ascii_digit() || **byte == b'.');
        let start = before.len() - tail.count();
        let text = before.get(start..).and_then(|text| std::str::from_utf8(text).ok());
        let version = text.and_then(|text| DriverVersion::parse(text.trim_start_matches('.')));
        best = best.max(version.filter(|version| version.is_exact() && version.branch() >= 300));
    }
    best
}
