//! The versions that take part: the loaded module's, the libraries', the module's on disk.

use facts::model::library::{LibraryFile, LibraryKind};
use facts::version::{DriverVersion, KernelRelease};
use facts::{Facts, Origin, Seen};

use crate::machine;
use crate::readings;

/// The loaded module's version against one library's.
pub(super) enum Side {
    /// The same release, to the last part.
    Equal(String, Origin),
    /// Another release: library, module, where the library's version was seen.
    Differs(String, String, Origin),
    /// One of them is not known, or not to the last part.
    Unknown,
}

/// Both libraries against the module.
pub(super) struct Sides {
    pub(super) cuda: Side,
    pub(super) nvml: Side,
}

impl Sides {
    pub(super) fn of(facts: &Facts) -> Sides {
        let module = readings::driver_version(facts);
        let cuda = facts.library.cuda.as_seen().filter(|seen| comparable(&seen.value));
        let cuda = cuda.and_then(|seen| Some((seen.value.version.clone()?, seen.origin.clone())));
        Sides {
            cuda: side(module.as_ref(), cuda),
            nvml: side(module.as_ref(), nvml_library(facts)),
        }
    }
}

/// A stub has no version, and a forward-compatibility library differs on purpose.
fn comparable(file: &LibraryFile) -> bool {
    file.kind == LibraryKind::Driver
}

/// libnvidia-ml's version: the file's, or what a tool reported.
fn nvml_library(facts: &Facts) -> Option<(DriverVersion, Origin)> {
    let file = facts.library.nvml.as_seen().filter(|seen| comparable(&seen.value));
    file.and_then(|seen| Some((seen.value.version.clone()?, seen.origin.clone()))).or_else(|| {
        let reported = facts.library.reported.as_seen()?;
        Some((reported.value.clone(), reported.origin.clone()))
    })
}

fn side(module: Option<&Seen<DriverVersion>>, library: Option<(DriverVersion, Origin)>) -> Side {
    let (Some(module), Some((library, origin))) = (module, library) else {
        return Side::Unknown;
    };
    if !module.value.same_release(&library) {
        Side::Differs(library.to_string(), module.value.to_string(), origin)
    } else if module.value.is_exact() == library.is_exact() {
        Side::Equal(library.to_string(), origin)
    } else {
        // Tools cut the third part, and what is cut may differ.
        Side::Unknown
    }
}

/// Which of the two is the odd one: the module on disk tells.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Odd {
    /// The loaded module: the one on disk is another and fits the libraries.
    LoadedModule,
    /// The libraries: the loaded module is the one on disk.
    Libraries,
    /// Not known.
    Unknown,
}

/// The odd one, and the version of the module on disk where it is known.
pub(super) fn odd(facts: &Facts) -> (Odd, Option<Seen<DriverVersion>>) {
    let (Some(disk), Some(loaded)) = (on_disk(facts), readings::driver_version(facts)) else {
        return (Odd::Unknown, None);
    };
    if loaded.value == disk.value {
        return (Odd::Libraries, Some(disk));
    }
    // A package replaces module and libraries at once, so a module that was replaced on disk
    // speaks for libraries that nobody looked at.
    let cuda = facts.library.cuda.value().and_then(|file| file.version.clone());
    let library = nvml_library(facts).map(|(version, _)| version).or(cuda);
    let third = library.is_some_and(|library| !library.same_release(&disk.value));
    (if third { Odd::Unknown } else { Odd::LoadedModule }, Some(disk))
}

/// The version of the module that the running kernel would load. A container's is not the host's.
fn on_disk(facts: &Facts) -> Option<Seen<DriverVersion>> {
    if machine::in_container(facts) {
        return None;
    }
    let release = facts.host.kernel.value().map(KernelRelease::as_str);
    let files = facts.module.on_disk.value()?;
    let fits = |kernel: Option<&str>| match (kernel, release) {
        (Some(kernel), Some(release)) => kernel == release,
        _ => true,
    };
    files
        .iter()
        .filter(|file| file.name == "nvidia" && fits(file.kernel.as_deref()))
        .find_map(|file| Some(Seen::new(file.version.clone()?, file.origin.clone())))
}
