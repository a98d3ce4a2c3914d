//! Reading files of a machine into a report: bounded, without following links out of the root, and
//! never opening anything but plain files.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{File, Metadata, OpenOptions};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use facts::Errno;
use facts::model::node::NodeKind;
use facts::parse::ls_long::live_line;

use crate::child::report::Report;
use crate::sys::errno_of;

/// Longest file that is read for deciding what else to read.
const TEXT_LIMIT_BYTES: usize = 1 << 20;
/// Most names that are taken from one folder.
const NAMES_LIMIT: usize = 20_000;
/// Most paths that one pattern gives.
const MATCHES_LIMIT: usize = 4096;
/// Most links that are followed on one path, as the kernel has it (`MAXSYMLINKS`).
const LINKS_LIMIT: usize = 40;

/// Reads below a root, which is the running machine's or a copy's.
pub(super) struct Reader {
    root: PathBuf,
}

impl Reader {
    /// A reader below this root.
    pub(super) fn new(root: &Path) -> Reader {
        Reader { root: root.to_owned() }
    }

    /// True when the running machine itself is read.
    pub(super) fn is_live(&self) -> bool {
        self.root == Path::new("/")
    }

    /// Where a path of the observed machine lies here, with all links followed inside the root.
    pub(super) fn place(&self, path: &str) -> PathBuf {
        if self.is_live() { PathBuf::from(path) } else { self.inside(path, true) }
    }

    /// The same without following the last component.
    fn place_itself(&self, path: &str) -> PathBuf {
        if self.is_live() { PathBuf::from(path) } else { self.inside(path, false) }
    }

    /// Follows links one by one, so that an absolute one starts again at the root and `..` does not
    /// leave it. Of a loop the last link is given back, whose reading then fails.
    fn inside(&self, path: &str, follow_last: bool) -> PathBuf {
        let components = |path: &Path| -> VecDeque<OsString> {
            let parts = path.components().filter_map(|component| match component {
                Component::Normal(name) => Some(name.to_owned()),
                Component::ParentDir => Some("..".into()),
                Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
            });
            parts.collect()
        };
        let mut left = components(Path::new(path));
        let mut place = self.root.clone();
        let mut links = 0;
        while let Some(name) = left.pop_front() {
            if name == ".." {
                if place != self.root {
                    place.pop();
                }
                continue;
            }
            let next = place.join(&name);
            let follow = (follow_last || !left.is_empty()) && links < LINKS_LIMIT;
            match std::fs::read_link(&next) {
                Ok(target) if follow => {
                    links += 1;
                    if target.is_absolute() {
                        place.clone_from(&self.root);
                    }
                    let mut more = components(&target);
                    more.append(&mut left);
                    left = more;
                }
                _ => place = next,
            }
        }
        place
    }

    /// A path after following links, as the observed machine names it.
    pub(super) fn real_path(&self, path: &str) -> String {
        let place = self.place(path);
        let real =
            if self.is_live() { std::fs::canonicalize(&place).unwrap_or(place) } else { place };
        let below = real.strip_prefix(&self.root).map(Path::to_string_lossy);
        below.map_or_else(|_| path.to_owned(), |below| format!("/{below}"))
    }

    /// The text of a short file, for deciding what else to read; nothing is reported.
    pub(super) fn text(&self, path: &str) -> Option<String> {
        let (bytes, _) = read(&self.place(path), TEXT_LIMIT_BYTES).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// What stands at a path, after following links.
    pub(super) fn metadata(&self, path: &str) -> Option<Metadata> {
        std::fs::metadata(self.place(path)).ok()
    }

    /// Reports a file, up to the limit, or why it cannot be read.
    pub(super) fn file(&self, report: &mut Report, path: &str, limit: usize) {
        match read(&self.place(path), limit) {
            Ok((bytes, partial)) => report.item(path, &bytes, partial),
            Err(errno) => report.failed_item(path, errno),
        }
    }

    /// Reports a file whose reading can hang: announced before, timed, and so known by name when it
    /// does not come back.
    pub(super) fn risky_file(&self, report: &mut Report, path: &str, limit: usize) {
        let place = self.place(path);
        let read = || read(&place, limit);
        match report.system_call("read", Some(path), read) {
            Ok((bytes, partial)) => report.item(path, &bytes, partial),
            Err(errno) => report.failed_item(path, errno),
        }
    }

    /// Reports a symbolic link: its target is the item's content.
    pub(super) fn link(&self, report: &mut Report, path: &str) {
        match std::fs::read_link(self.place_itself(path)) {
            Ok(target) => report.item(path, target.as_os_str().as_bytes(), false),
            Err(error) => match errno_of(&error) {
                // It is there and is no link: nothing to tell.
                Errno::EINVAL => {}
                errno => report.failed_item(path, errno),
            },
        }
    }

    /// Reports the names in a folder, one a line in order, and gives them back.
    pub(super) fn listing(&self, report: &mut Report, path: &str) -> Vec<String> {
        match names(&self.place(path)) {
            Ok(names) => {
                let mut text = names.join("\n");
                if !names.is_empty() {
                    text.push('\n');
                }
                report.item(path, text.as_bytes(), names.len() == NAMES_LIMIT);
                names
            }
            Err(errno) => {
                report.failed_item(path, errno);
                Vec::new()
            }
        }
    }

    /// The names in a folder; nothing is reported.
    pub(super) fn names(&self, path: &str) -> Vec<String> {
        names(&self.place(path)).unwrap_or_default()
    }

    /// Reports a device node by its numbers, mode and owner. A link is followed, as an open does.
    pub(super) fn node(&self, report: &mut Report, path: &str) {
        let metadata = match std::fs::metadata(self.place(path)) {
            Ok(metadata) => metadata,
            Err(error) => {
                report.failed_item(path, errno_of(&error));
                return;
            }
        };
        let kind = if metadata.file_type().is_char_device() {
            let number = metadata.rdev();
            NodeKind::Char { major: libc::major(number), minor: libc::minor(number) }
        } else {
            NodeKind::Other
        };
        let mode = metadata.mode() & 0o7777;
        let line = live_line(kind, mode, metadata.uid(), metadata.gid());
        report.item(path, line.as_bytes(), false);
    }

    /// The paths that fit a pattern in which `*` stands for any part of one component.
    pub(super) fn matches(&self, pattern: &str) -> Vec<String> {
        let mut found = vec![String::new()];
        for component in pattern.split('/').filter(|component| !component.is_empty()) {
            let step = |folder: &String| -> Vec<String> {
                if !component.contains('*') {
                    return vec![format!("{folder}/{component}")];
                }
                let parent = if folder.is_empty() { "/" } else { folder };
                let names = self.names(parent).into_iter();
                let names = names.filter(|name| fits(component, name));
                names.map(|name| format!("{folder}/{name}")).collect()
            };
            found = found.iter().flat_map(step).take(MATCHES_LIMIT).collect();
        }
        if pattern.contains('*') {
            found.retain(|path| std::fs::symlink_metadata(self.place_itself(path)).is_ok());
        }
        found
    }
}

/// Whether a name fits a component with `*`, in which each `*` stands for anything.
fn fits(component: &str, name: &str) -> bool {
    let mut parts = component.split('*');
    let Some(mut rest) = name.strip_prefix(parts.next().unwrap_or("")) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let last = parts.pop().unwrap_or("");
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = rest.get(at + part.len()..).unwrap_or(""),
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Opens a plain file. Anything else is refused before it is opened: opening a device or a FIFO can
/// do something, or wait.
pub(super) fn open(path: &Path) -> Result<File, Errno> {
    let metadata = std::fs::metadata(path).map_err(|error| errno_of(&error))?;
    if metadata.is_dir() {
        return Err(Errno(libc::EISDIR));
    }
    if !metadata.is_file() {
        return Err(Errno::EINVAL);
    }
    let mut options = OpenOptions::new();
    let options = options.read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    options.open(path).map_err(|error| errno_of(&error))
}

/// Reads a file up to the limit; true when there is more.
fn read(path: &Path, limit: usize) -> Result<(Vec<u8>, bool), Errno> {
    let file = open(path)?;
    let mut bytes = Vec::new();
    let one_more = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    file.take(one_more).read_to_end(&mut bytes).map_err(|error| errno_of(&error))?;
    let partial = bytes.len() > limit;
    bytes.truncate(limit);
    Ok((bytes, partial))
}

fn names(path: &Path) -> Result<Vec<String>, Errno> {
    let entries = std::fs::read_dir(path).map_err(|error| errno_of(&error))?;
    let mut names: Vec<String> = entries
        .flatten()
        .take(NAMES_LIMIT)
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort_unstable();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_within_one_component() {
        assert!(fits("nvidia*", "nvidia-uvm") && fits("*.conf", "a.conf") && fits("*", "x"));
        assert!(fits("lib*.so.*", "libcuda.so.1") && fits("a*b*c", "a-b-b-c"));
        assert!(!fits("nvidia*", "dri") && !fits("*.conf", "a.conf.bak") && !fits("a*a", "a"));
    }

    #[test]
    fn links_stay_inside_the_root() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        std::fs::create_dir_all(at("etc")).unwrap();
        std::fs::create_dir_all(at("usr/lib")).unwrap();
        std::fs::write(at("usr/lib/os-release"), "ID=x\n").unwrap();
        std::os::unix::fs::symlink("/usr/lib/os-release", at("etc/absolute")).unwrap();
        std::os::unix::fs::symlink("../../../usr/lib/os-release", at("etc/climbing")).unwrap();
        std::os::unix::fs::symlink("loop", at("etc/loop")).unwrap();
        let reader = Reader::new(root.path());
        assert_eq!(reader.text("/etc/absolute").as_deref(), Some("ID=x\n"));
        assert_eq!(reader.text("/etc/climbing").as_deref(), Some("ID=x\n"));
        assert_eq!(reader.text("/../../etc/absolute").as_deref(), Some("ID=x\n"));
        assert_eq!(reader.text("/etc/loop"), None);
        assert_eq!(reader.matches("/etc/a*"), ["/etc/absolute"]);
    }

    #[test]
    fn nothing_but_plain_files_is_opened() {
        assert_eq!(open(Path::new("/dev/null")).err(), Some(Errno::EINVAL));
        assert_eq!(open(Path::new("/")).err(), Some(Errno(libc::EISDIR)));
        assert_eq!(open(Path::new("/no-such-file")).err(), Some(Errno::ENOENT));
    }
}
