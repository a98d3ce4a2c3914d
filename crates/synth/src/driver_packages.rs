//! The real driver libraries, from Debian's non-free packages, for tests only.
//!
//! Nothing is installed: apt works with lists, cache and package status of its own below
//! `TARGET/driver-packages`, and `dpkg -x` unpacks there too. What was fetched stays for later
//! tests; concurrent tests wait for the one that fetches. Where the packages cannot be had, the
//! answer is [`Skipped`] with the reason, and stays so for some minutes so that a machine without
//! network does not wait again and again.

mod apt;
mod mirror;

use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::artifacts;

/// How long a failure is believed.
const FAILURE_HOLDS: Duration = Duration::from_mins(5);

/// A driver branch and the Debian release that carries it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Branch {
    /// 535, from bookworm.
    B535,
    /// 550, from trixie.
    B550,
    /// 555, from experimental.
    B555,
}

impl Branch {
    /// All branches that can be had.
    pub const ALL: [Self; 3] = [Self::B535, Self::B550, Self::B555];

    /// Debian's name of the release.
    pub fn release(self) -> &'static str {
        match self {
            Self::B535 => "bookworm",
            Self::B550 => "trixie",
            Self::B555 => "experimental",
        }
    }
}

/// Why real packages cannot be used here. A test prints it and passes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// One line for people.
    pub reason: String,
}

impl fmt::Display for Skipped {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "skipped: {}", self.reason)
    }
}

impl std::error::Error for Skipped {}

impl From<io::Error> for Skipped {
    fn from(error: io::Error) -> Self {
        skipped(format!("cannot prepare the packages' folder: {error}"))
    }
}

/// An unpacked driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RealDriver {
    /// Folder with `libcuda.so.1` and `libnvidia-ml.so.1`, for `LD_LIBRARY_PATH`.
    pub folder: PathBuf,
    /// The libraries' version, such as `550.163.01`.
    pub version: String,
}

/// The real libcuda and NVML of a branch, fetched on first use.
pub fn real_driver(branch: Branch) -> Result<RealDriver, Skipped> {
    let root = unpacked(branch, "libraries", &["libcuda1", "libnvidia-ml1"])?;
    let library = find(&root, 8, &|name| name == "libcuda.so.1")
        .ok_or_else(|| skipped("the packages hold no libcuda.so.1"))?;
    let file = std::fs::canonicalize(&library).unwrap_or(library);
    let version = file
        .file_name()
        .and_then(|name| name.to_str()?.strip_prefix("libcuda.so."))
        .unwrap_or_default()
        .to_owned();
    let folder = file.parent().unwrap_or(&root).to_owned();
    Ok(RealDriver { folder, version })
}

/// The real GSP firmware of a branch: the folder with `gsp_ga10x.bin` and `gsp_tu10x.bin`.
pub fn gsp_firmware(branch: Branch) -> Result<PathBuf, Skipped> {
    let root = unpacked(branch, "firmware", &["firmware-nvidia-gsp"])?;
    let file = find(&root, 8, &|name| name == "gsp_ga10x.bin")
        .ok_or_else(|| skipped("the package holds no gsp_ga10x.bin"))?;
    Ok(file.parent().unwrap_or(&root).to_owned())
}

fn skipped(reason: impl fmt::Display) -> Skipped {
    Skipped { reason: reason.to_string() }
}

/// The folder in which these packages of a branch are unpacked.
fn unpacked(branch: Branch, what: &str, packages: &[&str]) -> Result<PathBuf, Skipped> {
    let cache = artifacts::target_folder()?.0.join("driver-packages");
    std::fs::create_dir_all(&cache)?;
    let name = format!("{}-{what}", branch.release());
    let done = cache.join(&name);
    let lock = File::create(cache.join(format!("{name}.lock")))?;
    // Held until the file is dropped at the end of this function.
    lock.lock()?;
    if done.is_dir() {
        return Ok(done);
    }
    let failure = cache.join(format!("{name}.skipped"));
    if let Some(reason) = recent(&failure) {
        return Err(skipped(reason));
    }
    let work = cache.join(format!("{name}.work"));
    let result = apt::fetch(&work, branch, packages)
        .and_then(|root| std::fs::rename(root, &done).map_err(|error| error.to_string()));
    // The work folder is of no use any more, and left-overs do no harm.
    let _ = std::fs::remove_dir_all(&work);
    match result {
        Ok(()) => Ok(done),
        Err(reason) => {
            // When the note cannot be kept, the next test simply tries again.
            let _ = std::fs::write(&failure, &reason);
            Err(skipped(reason))
        }
    }
}

/// The reason noted in this file, unless it is too old.
fn recent(failure: &Path) -> Option<String> {
    let age = std::fs::metadata(failure).ok()?.modified().ok()?.elapsed().ok()?;
    if age > FAILURE_HOLDS {
        return None;
    }
    std::fs::read_to_string(failure).ok()
}

/// A file or link below `folder`, at most `depth` folders down.
fn find(folder: &Path, depth: usize, wanted: &dyn Fn(&str) -> bool) -> Option<PathBuf> {
    let mut entries: Vec<_> = std::fs::read_dir(folder).ok()?.flatten().collect();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    let here = entries.iter().find(|entry| entry.file_name().to_str().is_some_and(wanted));
    if let Some(entry) = here {
        return Some(entry.path());
    }
    let below = depth.checked_sub(1)?;
    entries
        .iter()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .find_map(|entry| find(&entry.path(), below, wanted))
}
