//! The Python environments that this process could start, found without starting one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::reader::Reader;

/// Most folders of packages that are looked into.
const SITES_LIMIT: usize = 24;
/// Prefixes in which images of this field keep their Python.
const USUAL_PREFIXES: [&str; 7] = [
    "/usr",
    "/usr/local",
    "/opt/conda",
    "/opt/venv",
    "/opt/miniconda3",
    "/root/miniconda3",
    "/workspace/venv",
];

/// Folders that hold packages, the likeliest first.
pub(super) fn site_folders(reader: &Reader) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let mut sites = Vec::new();
    let mut add = |folder: String| {
        let known = reader.metadata(&folder).map(|metadata| {
            use std::os::unix::fs::MetadataExt;
            (metadata.dev(), metadata.ino())
        });
        if known.is_some_and(|known| seen.insert(known)) && sites.len() < SITES_LIMIT {
            sites.push(folder);
        }
    };
    for folder in variable(reader, "PYTHONPATH").split(':').filter(|path| path.starts_with('/')) {
        add(folder.to_owned());
    }
    for prefix in prefixes(reader) {
        for pattern in ["lib/python3*", "lib64/python3*"] {
            for library in reader.matches(&format!("{prefix}/{pattern}")) {
                add(format!("{library}/site-packages"));
                add(format!("{library}/dist-packages"));
            }
        }
    }
    sites
}

/// The value of a variable; empty where another machine's files are read.
fn variable(reader: &Reader, name: &str) -> String {
    let value = std::env::var_os(name).filter(|_| reader.is_live());
    value.map(|value| value.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Prefixes of installations: of active environments, of every `python3` on PATH, the usual ones,
/// and the user's own.
fn prefixes(reader: &Reader) -> Vec<String> {
    let mut prefixes = Vec::new();
    for name in ["VIRTUAL_ENV", "CONDA_PREFIX"] {
        prefixes.extend(Some(variable(reader, name)).filter(|path| path.starts_with('/')));
    }
    for folder in variable(reader, "PATH").split(':').filter(|path| path.starts_with('/')) {
        prefixes.extend(prefix_of(reader, folder));
    }
    let home = variable(reader, "HOME");
    if home.starts_with('/') {
        prefixes.push(format!("{home}/.local"));
    }
    prefixes.extend(USUAL_PREFIXES.iter().map(|prefix| (*prefix).to_owned()));
    prefixes
}

/// The prefixes that a folder on PATH leads to, when it holds a Python: its parent, and where the
/// interpreter is a link out of it, that of the interpreter. The shims of pyenv are scripts; the
/// versions lie beside them.
fn prefix_of(reader: &Reader, folder: &str) -> Vec<String> {
    let interpreter = format!("{folder}/python3");
    if reader.metadata(&interpreter).is_none() {
        return Vec::new();
    }
    if let Some(base) = folder.strip_suffix("/shims") {
        return reader.matches(&format!("{base}/versions/*"));
    }
    let parent = |path: &Path| path.parent().map(|path| path.to_string_lossy().into_owned());
    let real: Option<PathBuf> = std::fs::canonicalize(&interpreter).ok();
    let real = real.as_deref().and_then(Path::parent).and_then(parent);
    parent(Path::new(folder)).into_iter().chain(real).collect()
}
