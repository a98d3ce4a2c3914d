//! Causes in the driver's user-space libraries, and the questions that they share.

use facts::model::library::{LibraryFile, LibraryKind};
use facts::model::process::Lever;
use facts::{Facts, Origin};

pub(super) mod bundled_driver;
pub(super) mod compat_shadows;
pub(super) mod compat_unsupported;
pub(super) mod interposer;
pub(super) mod missing;
pub(super) mod stub;
pub(super) mod wsl_linux_driver;

/// The libcuda that is mapped, or would be.
fn mapped(facts: &Facts) -> Option<&LibraryFile> {
    facts.library.cuda.value()
}

/// Either path of the file, as found or after following links, holds this text.
fn path_holds(file: &LibraryFile, text: &str) -> bool {
    file.path.contains(text) || file.real_path.contains(text)
}

/// What an experiment with the driver's own libcuda came to, and where: whether it works.
fn with_own_library(facts: &Facts) -> Option<(bool, &Origin)> {
    let (attempt, origin) = facts.process.tried(|lever| lever == Lever::DriverLibrary)?;
    attempt.controlled.then_some((attempt.helped, origin))
}

/// The folder of a path.
fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// The driver's own libcuda somewhere else on this machine: of the module's version where that is
/// known, else any.
fn right_one(facts: &Facts) -> Option<&LibraryFile> {
    let own = |file: &&LibraryFile| {
        file.soname == "libcuda.so.1" && matches!(file.kind, LibraryKind::Driver | LibraryKind::Wsl)
    };
    let module = facts.module.version();
    let fits = |file: &&LibraryFile| match (&module, &file.version) {
        (Some(module), Some(version)) => version.same_release(&module.value),
        _ => false,
    };
    let others = facts.library.others.iter();
    others.clone().filter(own).find(fits).or_else(|| others.clone().find(own))
}

/// A search path without the folders that hold this text, and its value as a shell assignment.
fn search_path_without(facts: &Facts, text: &str) -> Option<String> {
    let seen = facts.process.env.get("LD_LIBRARY_PATH")?;
    if !seen.value.contains(text) {
        return None;
    }
    let kept: Vec<&str> =
        seen.value.split(':').filter(|part| !part.contains(text) && !part.is_empty()).collect();
    if kept.is_empty() {
        return Some("unset LD_LIBRARY_PATH".to_owned());
    }
    Some(format!("export LD_LIBRARY_PATH={}", kept.join(":")))
}

#[cfg(test)]
mod tests {
    use facts::{Facts, Origin, Seen};

    use super::search_path_without;

    #[test]
    fn folders_are_taken_out_of_the_search_path() {
        let mut facts = Facts::default();
        let mut without = |value: &str| {
            let seen = Seen::new(value.to_owned(), Origin::item("/proc/self/environ"));
            facts.process.env.insert("LD_LIBRARY_PATH".to_owned(), seen);
            search_path_without(&facts, "/stubs")
        };
        assert_eq!(without("/a:/usr/local/cuda/lib64"), None);
        let all_but_stubs = without("/a:/usr/local/cuda/lib64/stubs::/b");
        assert_eq!(all_but_stubs.as_deref(), Some("export LD_LIBRARY_PATH=/a:/b"));
        assert_eq!(without("/x/stubs").as_deref(), Some("unset LD_LIBRARY_PATH"));
    }
}
