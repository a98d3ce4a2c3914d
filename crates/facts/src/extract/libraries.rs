//! A driver library by its path: what is known of that file elsewhere, or what the path tells.

use crate::model::Facts;
use crate::model::library::LibraryFile;
use crate::observed::Origin;
use crate::parse::elf_library;

/// The library at this path: as it was described before, or else as far as the path tells.
pub(crate) fn by_path(path: &str, soname: &str, origin: &Origin, facts: &Facts) -> LibraryFile {
    let known = facts
        .library
        .cuda
        .value()
        .into_iter()
        .chain(facts.library.nvml.value())
        .chain(&facts.library.others)
        .find(|file| file.real_path == path || file.path == path);
    known.cloned().unwrap_or_else(|| LibraryFile {
        soname: soname.to_owned(),
        path: path.to_owned(),
        real_path: path.to_owned(),
        version: elf_library::version_of_path(path),
        kind: elf_library::kind_of_path(path),
        origin: origin.clone(),
    })
}
