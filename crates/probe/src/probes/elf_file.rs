//! Binary files of the driver, told in the few lines that matter instead of their megabytes.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use facts::Errno;
use facts::parse::decompress;
use facts::parse::elf::ElfFile;
use facts::parse::elf_summary::{ElfSummary, to_text};
use facts::parse::modinfo::{self, ModInfo};
use facts::parse::{elf_gsp, elf_library};

use super::reader::{self, Reader};
use crate::child::report::Report;
use crate::sys::errno_of;

/// Largest compressed file that is taken into memory.
const COMPRESSED_LIMIT_BYTES: u64 = 128 << 20;
/// Most bytes that come out of it.
const UNPACKED_LIMIT_BYTES: usize = 192 << 20;
/// Largest `.modinfo` that is read.
const MODINFO_LIMIT_BYTES: usize = 4 << 20;

/// Reads a range of a file.
fn ranged(file: &File) -> impl Fn(u64, usize) -> Option<Vec<u8>> + '_ {
    move |offset, length| {
        // A length out of a damaged header must not become an allocation.
        let size = file.metadata().ok()?.len();
        let end = offset.checked_add(u64::try_from(length).ok()?)?;
        if end > size {
            return None;
        }
        let mut bytes = vec![0; length];
        file.read_exact_at(&mut bytes, offset).ok()?;
        Some(bytes)
    }
}

/// Tells what a binary file says of itself; which kind it is, its path says. A compressed one is
/// left to the probe `module-files`, since unpacking 60 MB takes a second.
pub(super) fn tell(report: &mut Report, reader: &Reader, path: &str) {
    if !is_compressed(&reader.place(path)) {
        tell_unpacked(report, reader, path);
    }
}

/// The same, compressed or not.
pub(super) fn tell_unpacked(report: &mut Report, reader: &Reader, path: &str) {
    let place = reader.place(path);
    let summary = match path.rsplit('/').next() {
        Some(name) if name.contains(".ko") => module(&place),
        Some(name) if name.starts_with("gsp") => firmware(&place),
        _ => library(&place, &reader.real_path(path)),
    };
    match summary {
        Ok(summary) => report.item(path, to_text(&summary).as_bytes(), false),
        Err(errno) => report.failed_item(path, errno),
    }
}

fn library(place: &Path, real_path: &str) -> Result<ElfSummary, Errno> {
    let file = reader::open(place)?;
    let library = elf_library::read(&ranged(&file), real_path);
    let real_path = Some(real_path.to_owned());
    Ok(ElfSummary::Library { library, real_path })
}

/// True for a file that has to be decompressed before it tells anything.
pub(super) fn is_compressed(place: &Path) -> bool {
    let Ok(file) = reader::open(place) else { return false };
    ranged(&file)(0, 6).is_some_and(|start| decompress::detect(&start).is_some())
}

fn firmware(place: &Path) -> Result<ElfSummary, Errno> {
    let file = reader::open(place)?;
    Ok(ElfSummary::Gsp(match unpacked(&file)? {
        Some(bytes) => elf_gsp::read(&facts::parse::elf::reader_of(&bytes)),
        None => elf_gsp::read(&ranged(&file)),
    }))
}

fn module(place: &Path) -> Result<ElfSummary, Errno> {
    let file = reader::open(place)?;
    Ok(ElfSummary::Module(match unpacked(&file)? {
        Some(bytes) => modinfo::read(&bytes),
        None => module_info(&file),
    }))
}

/// Reads the one section that tells, out of a module that may have 100 MB of debug sections.
fn module_info(file: &File) -> ModInfo {
    let read_at = ranged(file);
    let mut info = ModInfo::default();
    let elf = match ElfFile::read(&read_at) {
        Ok(elf) => elf,
        Err(fault) => {
            info.faults.push(fault.to_string());
            return info;
        }
    };
    let section = elf.content(&read_at, ".modinfo", MODINFO_LIMIT_BYTES).unwrap_or_default();
    for entry in section.split(|byte| *byte == 0) {
        if let Some((key, value)) = String::from_utf8_lossy(entry).split_once('=') {
            info.set(key, value);
        }
    }
    info
}

/// The content of a compressed file; `None` for one that is not compressed.
fn unpacked(file: &File) -> Result<Option<Vec<u8>>, Errno> {
    let size = file.metadata().map_err(|error| errno_of(&error))?.len();
    let read_at = ranged(file);
    let compressed = read_at(0, 6).is_some_and(|start| decompress::detect(&start).is_some());
    if !compressed {
        return Ok(None);
    }
    if size > COMPRESSED_LIMIT_BYTES {
        return Err(Errno(libc::EFBIG));
    }
    let bytes = read_at(0, usize::try_from(size).map_err(|_| Errno::ENOMEM)?).ok_or(Errno::EIO)?;
    let unpacked = decompress::decompress_within(&bytes, UNPACKED_LIMIT_BYTES);
    Ok(unpacked.ok().map(std::borrow::Cow::into_owned))
}
