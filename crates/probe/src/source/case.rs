//! A case folder, which is an unpacked bundle:
//!
//! ```text
//! root/proc/modules        a file of the observed machine; a link stands for itself, by its target
//! root/dev/.listing        the names in a folder, one a line
//! cmd/nvidia-smi-q.txt     `$ nvidia-smi -q`, then its output
//! probe/cuinit.1.jsonl     the records of a probe's first trial
//! text/report.txt          loose text
//! manifest.toml            `live = true`; `[[item]]` with `name` and `state`
//! ```

use std::ffi::OsStr;
use std::fs::{File, FileType};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use facts::Errno;
use facts::raw::{ItemName, RawItem, RawSet, RawState};
use serde::Deserialize;

use super::SourceError;
use crate::supervise::records;

/// Most bytes of one file; what is longer is cut and marked as a part.
const FILE_LIMIT_BYTES: u64 = 64 << 20;
/// Most bytes of all files.
const TOTAL_LIMIT_BYTES: u64 = 256 << 20;
/// How deep folders are followed; the deepest path of sysfs that matters has twelve.
const DEPTH_LIMIT: usize = 32;
/// Name of the file that lists a folder.
pub(super) const LISTING: &str = ".listing";
/// Name of the file that tells of items what files cannot show.
pub(super) const MANIFEST: &str = "manifest.toml";

/// Reads a case folder. Items come in order of their paths; files of the machine first, then
/// outputs, probes and texts.
pub fn collect_case(folder: &Path) -> Result<RawSet, SourceError> {
    let mut case = Case { left: TOTAL_LIMIT_BYTES, folder, set: RawSet::new() };
    let parts = ["root", "cmd", "probe", "text", "manifest.toml"];
    if !parts.iter().any(|part| folder.join(part).symlink_metadata().is_ok()) {
        return Err(SourceError::NotACase(folder.to_owned()));
    }
    case.root(&folder.join("root"), "", 0)?;
    case.each("cmd", |name, bytes| command(&name, &bytes))?;
    case.each("probe", |name, bytes| probe(&name, &bytes))?;
    case.each("text", |name, bytes| vec![RawItem::new(ItemName::Text(name), bytes)])?;
    case.manifest()?;
    Ok(case.set)
}

struct Case<'a> {
    left: u64,
    folder: &'a Path,
    set: RawSet,
}

/// `manifest.toml`.
#[derive(Deserialize)]
struct Manifest {
    #[serde(default)]
    live: bool,
    #[serde(default)]
    item: Vec<ManifestItem>,
}

/// The items of a file of a case by its path in there; none for one that does not belong there.
pub(super) fn items_at(path: &str, bytes: Vec<u8>) -> Vec<RawItem> {
    let Some((part, name)) = path.split_once('/') else { return Vec::new() };
    match part {
        "root" => {
            let path =
                name.strip_suffix(LISTING).map_or(name, |folder| folder.trim_end_matches('/'));
            vec![RawItem::new(ItemName::File(format!("/{path}")), bytes)]
        }
        "cmd" => command(name, &bytes),
        "probe" => probe(name, &bytes),
        "text" => vec![RawItem::new(ItemName::Text(name.to_owned()), bytes)],
        _ => Vec::new(),
    }
}

/// Items with what a manifest adds to them; an error says what is wrong with the manifest.
pub(super) fn with_manifest(set: &RawSet, text: &str) -> Result<RawSet, String> {
    let manifest: Manifest = toml::from_str(text).map_err(|error| error.to_string())?;
    let mut changed = RawSet::new();
    changed.live = manifest.live;
    let mut entries: Vec<(ItemName, ManifestItem)> = Vec::new();
    for entry in manifest.item {
        let name = ItemName::parse(&entry.name)
            .ok_or_else(|| format!("no item's name: {}", entry.name))?;
        entries.push((name, entry));
    }
    for mut item in set.items().cloned() {
        if let Some(at) = entries.iter().position(|(name, _)| *name == item.name) {
            let (_, entry) = entries.remove(at);
            entry.apply(&mut item)?;
        }
        changed.push(item);
    }
    for (name, entry) in entries {
        let mut item = RawItem::with_state(name, RawState::Absent);
        if entry.state.is_none() {
            return Err(format!("{} has neither a file nor a state", entry.name));
        }
        entry.apply(&mut item)?;
        changed.push(item);
    }
    Ok(changed)
}

/// What a manifest adds about one item: a state that files cannot show, or particulars of an item
/// whose bytes are in the folder.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ManifestItem {
    name: String,
    state: Option<String>,
    #[serde(default)]
    partial: bool,
    filter: Option<String>,
    exit_status: Option<i32>,
    taken_at: Option<u64>,
}

impl Case<'_> {
    /// Takes the files below `root`, which stand for those of the machine.
    fn root(&mut self, place: &Path, path: &str, depth: usize) -> Result<(), SourceError> {
        if depth > DEPTH_LIMIT {
            return Ok(());
        }
        for (name, kind) in entries(place)? {
            let (place, name) = (place.join(&name), name.to_string_lossy().into_owned());
            let path_here = format!("{path}/{name}");
            if kind.is_dir() {
                self.root(&place, &path_here, depth + 1)?;
            } else if kind.is_symlink() {
                let target = std::fs::read_link(&place);
                let target = target.map_err(|error| SourceError::unreadable(&place, &error))?;
                let bytes = target.as_os_str().as_bytes();
                self.set.push(RawItem::new(ItemName::File(path_here), bytes));
            } else if kind.is_file() {
                let is_listing = name == LISTING;
                let path = if is_listing { path.to_owned() } else { path_here };
                let (bytes, partial) = self.read(&place)?;
                let mut item = RawItem::new(ItemName::File(path), bytes);
                item.partial = partial;
                self.set.push(item);
            }
        }
        Ok(())
    }

    /// Takes the files of one of the other folders.
    fn each(
        &mut self,
        part: &str,
        items: impl Fn(String, Vec<u8>) -> Vec<RawItem>,
    ) -> Result<(), SourceError> {
        let folder = self.folder.join(part);
        for (name, kind) in entries(&folder)? {
            let place = folder.join(&name);
            if kind.is_symlink() {
                return Err(SourceError::Link(place));
            }
            if !kind.is_file() {
                continue;
            }
            let (bytes, partial) = self.read(&place)?;
            for mut item in items(name.to_string_lossy().into_owned(), bytes) {
                item.partial |= partial;
                self.set.push(item);
            }
        }
        Ok(())
    }

    fn read(&mut self, place: &Path) -> Result<(Vec<u8>, bool), SourceError> {
        let limit = FILE_LIMIT_BYTES.min(self.left);
        let mut bytes = Vec::new();
        let read = File::open(place)
            .and_then(|file| file.take(limit.saturating_add(1)).read_to_end(&mut bytes));
        read.map_err(|error| SourceError::unreadable(place, &error))?;
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if length > self.left {
            let folder = self.folder.to_owned();
            return Err(SourceError::TooLarge(folder, TOTAL_LIMIT_BYTES >> 20));
        }
        self.left -= length;
        let partial = length > FILE_LIMIT_BYTES;
        bytes.truncate(usize::try_from(FILE_LIMIT_BYTES).unwrap_or(usize::MAX));
        Ok((bytes, partial))
    }

    fn manifest(&mut self) -> Result<(), SourceError> {
        let place = self.folder.join(MANIFEST);
        if place.symlink_metadata().is_err() {
            return Ok(());
        }
        let (bytes, _) = self.read(&place)?;
        let problem = |problem: String| SourceError::Manifest { path: place.clone(), problem };
        let text = String::from_utf8_lossy(&bytes);
        self.set = with_manifest(&self.set, &text).map_err(problem)?;
        Ok(())
    }
}

impl ManifestItem {
    fn apply(self, item: &mut RawItem) -> Result<(), String> {
        if let Some(state) = &self.state {
            item.state = state_of(state).ok_or_else(|| format!("no state: {state}"))?;
        }
        item.partial |= self.partial;
        item.filter = self.filter.or_else(|| item.filter.take());
        item.exit_status = self.exit_status.or(item.exit_status);
        item.taken_at = self.taken_at.or(item.taken_at);
        Ok(())
    }
}

/// `absent`, `denied:13`, `denied:EACCES` or `timed-out`.
fn state_of(text: &str) -> Option<RawState> {
    match text {
        "absent" => Some(RawState::Absent),
        "timed-out" => Some(RawState::TimedOut),
        _ => {
            let errno = text.strip_prefix("denied:")?;
            let number = errno.parse().ok().map(Errno);
            Some(RawState::Denied(number.or_else(|| Errno::from_name(errno))?))
        }
    }
}

/// The entries of a folder in order; none for a folder that is not there.
fn entries(folder: &Path) -> Result<Vec<(PathBuf, FileType)>, SourceError> {
    let unreadable = |error: &std::io::Error| SourceError::unreadable(folder, error);
    match folder.symlink_metadata() {
        Ok(metadata) if metadata.is_symlink() => return Err(SourceError::Link(folder.to_owned())),
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unreadable(&error)),
    }
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|error| unreadable(&error))? {
        let entry = entry.map_err(|error| unreadable(&error))?;
        let kind = entry.file_type().map_err(|error| unreadable(&error))?;
        found.push((PathBuf::from(entry.file_name()), kind));
    }
    found.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    Ok(found)
}

/// An output: its first line is the command line as it was typed.
fn command(file_name: &str, bytes: &[u8]) -> Vec<RawItem> {
    let (first, rest) = match bytes.iter().position(|byte| *byte == b'\n') {
        Some(end) => {
            (bytes.get(..end).unwrap_or_default(), bytes.get(end + 1..).unwrap_or_default())
        }
        None => (bytes, &[][..]),
    };
    let first = String::from_utf8_lossy(first);
    vec![match first.trim_end().strip_prefix("$ ") {
        Some(line) => RawItem::new(ItemName::Command(line.to_owned()), rest),
        // Without its command an output is loose text.
        None => RawItem::new(ItemName::Text(file_name.to_owned()), bytes),
    }]
}

/// The records of a probe, from `NAME.TRIAL.jsonl` or `NAME.jsonl`.
fn probe(file_name: &str, bytes: &[u8]) -> Vec<RawItem> {
    let stem = Path::new(file_name).file_stem().unwrap_or(OsStr::new("")).to_string_lossy();
    let numbered =
        stem.rsplit_once('.').and_then(|(name, trial)| Some((name, trial.parse().ok()?)));
    let (name, trial) = numbered.unwrap_or((&stem, 1));
    records::unpack(bytes, None).into_items(name, trial, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let place = folder.path().join(path);
            std::fs::create_dir_all(place.parent().unwrap()).unwrap();
            std::fs::write(place, content).unwrap();
        }
        folder
    }

    #[test]
    fn every_kind_of_file_becomes_its_item() {
        let case = folder(&[
            ("root/proc/modules", "nvidia 1 0 - Live 0x0\n"),
            ("root/dev/.listing", "null\n"),
            ("cmd/smi.txt", "$ nvidia-smi -L\nGPU 0\n"),
            ("probe/cuinit.2.jsonl", "{\"record\":\"note\",\"key\":\"a\",\"value\":\"b\"}\n"),
            ("text/report.txt", "hello"),
            ("case.toml", "ignored = true"),
            (
                "manifest.toml",
                "live = true\n[[item]]\nname = \"/proc/devices\"\nstate = \"denied:EACCES\"\n\
                 [[item]]\nname = \"$ nvidia-smi -L\"\npartial = true\nfilter = \"GPU\"\n",
            ),
        ]);
        let link = case.path().join("root/sys/driver");
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink("../../bus/nvidia", link).unwrap();
        let set = collect_case(case.path()).unwrap();
        let names: Vec<String> = set.items().map(|item| item.name.to_string()).collect();
        let expected = [
            "/dev",
            "/proc/modules",
            "/sys/driver",
            "$ nvidia-smi -L",
            "probe:cuinit#2",
            "text:report.txt",
            "/proc/devices",
        ];
        assert_eq!(names, expected);
        assert!(set.live);
        let items: Vec<&RawItem> = set.items().collect();
        assert_eq!(items[2].bytes(), Some(&b"../../bus/nvidia"[..]));
        assert_eq!(items[3].bytes(), Some(&b"GPU 0\n"[..]));
        assert_eq!((items[3].partial, items[3].filter.as_deref()), (true, Some("GPU")));
        assert_eq!(items[6].state, RawState::Denied(Errno::EACCES));
    }

    #[test]
    fn what_is_no_case_is_refused() {
        let error = |case: &tempfile::TempDir| collect_case(case.path()).unwrap_err().to_string();
        assert!(error(&folder(&[("report.txt", "")])).contains("no case folder"));
        let broken = folder(&[("manifest.toml", "live = 3")]);
        assert!(error(&broken).contains("manifest.toml"));
        let nameless = folder(&[("manifest.toml", "[[item]]\nname = \"x\"\nstate = \"absent\"")]);
        assert!(error(&nameless).contains("no item's name"));
        let stateless = folder(&[("manifest.toml", "[[item]]\nname = \"/x\"")]);
        assert!(error(&stateless).contains("neither a file nor a state"));
    }

    #[test]
    fn links_out_of_the_folder_are_refused() {
        let case = folder(&[("cmd/a.txt", "$ a\n")]);
        std::os::unix::fs::symlink("/etc/passwd", case.path().join("cmd/b.txt")).unwrap();
        assert!(matches!(collect_case(case.path()), Err(SourceError::Link(_))));
        let case = folder(&[("manifest.toml", "")]);
        std::os::unix::fs::symlink("/etc", case.path().join("text")).unwrap();
        assert!(matches!(collect_case(case.path()), Err(SourceError::Link(_))));
    }
}
