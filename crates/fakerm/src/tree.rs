//! The pretended nodes, files and folders, by path: what an entry is and how it is found.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use crate::{inventory, real};

/// What stands at a pretended path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    /// A character device.
    Device {
        /// Major number.
        major: u32,
        /// Minor number.
        minor: u32,
        /// Whether these are the driver's own numbers, so that opening reaches it.
        right: bool,
        /// Permission bits.
        mode: u32,
    },
    /// A text file.
    Text(String),
    /// A file of the real system with lines added after its line number `.1`.
    Added(&'static core::ffi::CStr, usize, String),
    /// A symbolic link.
    Link(String),
    /// A folder.
    Folder,
    /// Nothing, even if the real system has something here.
    Nothing,
}

/// All entries. Folders above an entry are entries too when the real system lacks them.
pub(crate) fn tree() -> &'static BTreeMap<String, Entry> {
    static TREE: OnceLock<BTreeMap<String, Entry>> = OnceLock::new();
    TREE.get_or_init(inventory::build)
}

/// The entry at an absolute path, links on the way followed; `None` leaves the path to the kernel.
pub(crate) fn find(path: &str) -> Option<&'static Entry> {
    if !["/dev/", "/proc/", "/sys/"].iter().any(|root| path.starts_with(root)) {
        return None;
    }
    tree().get(&resolve_parents(path))
}

/// As [`find`], with a link at the end of the path followed too. Gives the final path as well.
pub(crate) fn find_followed(path: &str) -> Option<(String, &'static Entry)> {
    let mut path = resolve_parents(path);
    for _ in 0..8 {
        match find(&path)? {
            Entry::Link(target) => path = resolve_parents(&join(&path, target)),
            entry => return Some((path, entry)),
        }
    }
    None
}

/// The names in a folder that come from here: shown beside the real ones, if there are any.
pub(crate) fn names_in(folder: &str) -> Vec<(String, &'static Entry)> {
    let folder = resolve_parents(folder);
    let prefix = format!("{}/", folder.trim_end_matches('/'));
    tree()
        .range(prefix.clone()..)
        .take_while(|(path, _)| path.starts_with(&prefix))
        .filter_map(|(path, entry)| {
            let name = path.strip_prefix(&prefix)?;
            (!name.contains('/')).then(|| (name.to_owned(), entry))
        })
        .collect()
}

/// The bytes that reading a text entry gives.
pub(crate) fn contents(entry: &Entry) -> Option<String> {
    match entry {
        Entry::Text(text) => Some(text.clone()),
        Entry::Added(path, after, lines) => {
            let text = real::read_text(path);
            let split = text.split_inclusive('\n').take(*after).map(str::len).sum();
            let (head, rest) = text.split_at_checked(split).unwrap_or(("", &text));
            Some(format!("{head}{lines}{rest}"))
        }
        _ => None,
    }
}

/// The path with `.`, `..` and doubled slashes worked out and links in its folders followed.
fn resolve_parents(path: &str) -> String {
    let mut done = String::new();
    let mut parts = path.split('/').filter(|part| !part.is_empty() && *part != ".").peekable();
    while let Some(part) = parts.next() {
        if part == ".." {
            done.truncate(done.rfind('/').unwrap_or(0));
            continue;
        }
        done = format!("{done}/{part}");
        if parts.peek().is_some()
            && let Some(Entry::Link(target)) = tree().get(&done)
        {
            // Links here lead to folders without links in them, so one step is enough.
            done = join(&done, target);
        }
    }
    done
}

/// Where a link at `path` leads.
fn join(path: &str, target: &str) -> String {
    if target.starts_with('/') {
        return target.to_owned();
    }
    let mut folder: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    folder.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                folder.pop();
            }
            part => folder.push(part),
        }
    }
    format!("/{}", folder.join("/"))
}
