//! Device nodes as `ls -l` shows them, and the form in which gpudx records a node it has looked at.

use super::{At, Parsed, numbered};
use crate::model::node::{Node, NodeKind};
use crate::observed::Errno;

/// One thing that a listing says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listed {
    /// A node, file or folder.
    Node(Node),
    /// A symbolic link and its target.
    Link {
        /// Path of the link.
        path: String,
        /// Where it points.
        target: String,
    },
    /// A name without particulars, from a plain `ls`.
    Name {
        /// Its path.
        path: String,
    },
    /// The path could not be looked at: `ENOENT` says that it is not there. A path that ends in
    /// `*` is a pattern that no name matches.
    Failed {
        /// The path or pattern, as typed.
        path: String,
        /// Why.
        errno: Errno,
    },
}

/// Reads the output of `ls -l`. Names without a folder of their own get `folder` or, below a
/// heading such as `/dev/nvidia-caps:`, that one. The paths of a plain `ls` are understood as well.
///
/// Understood are the forms of GNU and busybox, with inode numbers, SELinux contexts, numeric
/// owners, any style of date or none at all.
pub fn ls_long(text: &str, folder: &str) -> Parsed<Vec<At<Listed>>> {
    let mut parsed = Parsed::<Vec<At<Listed>>>::default();
    let mut folder = folder.trim_end_matches('/').to_owned();
    let mut below_heading = false;
    for (line, content) in numbered(text) {
        let content = content.trim();
        if content.is_empty() || is_total(content) {
            continue;
        }
        if let Some(heading) = content.strip_suffix(':').filter(|path| path.starts_with('/')) {
            heading.trim_end_matches('/').clone_into(&mut folder);
            below_heading = true;
            continue;
        }
        if let Some(listed) = entry(content, &folder).or_else(|| failure(content)) {
            parsed.value.push(At::new(line, listed));
            continue;
        }
        let names = names(content, &folder, below_heading);
        if names.is_empty() {
            parsed.complain(line, "not a line of ls -l");
        }
        parsed.value.extend(names.into_iter().map(|listed| At::new(line, listed)));
    }
    parsed
}

fn is_total(content: &str) -> bool {
    let mut words = content.split_whitespace();
    words.next() == Some("total") && words.next().is_some() && words.next().is_none()
}

/// A line of a plain `ls`, one name or several in columns: whole paths or, below a heading, the
/// names in that folder. Empty for any other line.
fn names(content: &str, folder: &str, below_heading: bool) -> Vec<Listed> {
    let plain = |word: &str| {
        let in_folder = below_heading && !word.contains('/');
        let bytes_plain =
            word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:/".contains(&byte));
        bytes_plain && (in_folder || word.starts_with("/dev/"))
    };
    if !content.split_whitespace().all(plain) {
        return Vec::new();
    }
    let path = |word: &str| {
        if word.starts_with('/') { word.to_owned() } else { format!("{folder}/{word}") }
    };
    content.split_whitespace().map(|word| Listed::Name { path: path(word) }).collect()
}

/// One line with a mode. Names of device nodes hold no blanks, so the name is the last word.
fn entry(content: &str, folder: &str) -> Option<Listed> {
    let (left, target) = match content.split_once(" -> ") {
        Some((left, target)) => (left, Some(target)),
        None => (content, None),
    };
    let mut words = left.split_whitespace().peekable();
    // `ls -i` puts the inode number first.
    if words.peek()?.bytes().all(|byte| byte.is_ascii_digit()) {
        words.next();
    }
    let (kind, mode) = mode_word(words.next()?)?;
    let name = left.split_whitespace().next_back()?;
    let path = if name.starts_with('/') { name.to_owned() } else { format!("{folder}/{name}") };
    if let Some(target) = target {
        return (kind == 'l').then(|| Listed::Link { path, target: target.trim().to_owned() });
    }
    words.next()?.parse::<u64>().ok()?;
    let owner = words.next()?.to_owned();
    let group = words.next()?.to_owned();
    let kind = match kind {
        'c' => numbers(words)?,
        _ => NodeKind::Other,
    };
    let (owner, group) = (Some(owner), Some(group));
    Some(Listed::Node(Node { path, kind, mode: Some(mode), owner, group }))
}

/// The two numbers of a device: `195, 255` or `195,255`, after an SELinux context if there is one.
fn numbers<'a>(words: impl Iterator<Item = &'a str>) -> Option<NodeKind> {
    let mut words = words.skip_while(|word| !word.contains(',') || word.contains(':'));
    let (major, rest) = words.next()?.split_once(',')?;
    let minor = if rest.is_empty() { words.next()? } else { rest };
    Some(NodeKind::Char { major: major.parse().ok()?, minor: minor.parse().ok()? })
}

/// Reads `crw-rw-rw-` with its possible `.`, `+` or `@`: the type letter and the permission bits.
/// Set-user-id and its like are read past, since no device node carries them.
fn mode_word(word: &str) -> Option<(char, u32)> {
    let word = word.trim_end_matches(['.', '+', '@']);
    let mut letters = word.chars();
    let kind = letters.next().filter(|kind| "bcdlps-".contains(*kind))?;
    let mut mode = 0;
    for expected in "rwxrwxrwx".chars() {
        let set = match letters.next()? {
            '-' => false,
            'S' | 'T' if expected == 'x' => false,
            's' | 't' if expected == 'x' => true,
            letter if letter == expected => true,
            _ => return None,
        };
        mode = mode << 1 | u32::from(set);
    }
    letters.next().is_none().then_some((kind, mode))
}

/// Reads what `ls` and shells say of a path that they could not show.
fn failure(content: &str) -> Option<Listed> {
    if let Some((_, pattern)) = content.split_once("no matches found: ") {
        return Some(Listed::Failed { path: pattern.to_owned(), errno: Errno::ENOENT });
    }
    let (head, reason) = content.rsplit_once(": ")?;
    let errno = match reason {
        "No such file or directory" => Errno::ENOENT,
        "Permission denied" => Errno::EACCES,
        "Operation not permitted" => Errno::EPERM,
        _ => return None,
    };
    let start = head.find('/')?;
    let path = head.get(start..)?.trim_end_matches(['\'', '"', '’', '`']);
    Some(Listed::Failed { path: path.to_owned(), errno })
}

/// Writes the line under which gpudx records a node: `char 195:255 mode 0666 owner 0:0`.
///
/// The words are the node's kind (`char` with its numbers, or the word `other`), its permission
/// bits in octal, and the numbers of owner and group.
pub fn live_line(kind: NodeKind, mode: u32, uid: u32, gid: u32) -> String {
    let kind = match kind {
        NodeKind::Char { major, minor } => format!("char {major}:{minor}"),
        NodeKind::Other => "other".to_owned(),
    };
    format!("{kind} mode {mode:04o} owner {uid}:{gid}\n")
}

/// Reads the form that [`live_line`] writes, or a line of `ls -l`, as the node at `path`.
pub fn node_at(path: &str, text: &str) -> Option<Node> {
    let line = text.lines().find(|line| !line.trim().is_empty())?;
    if let Some(node) = live_node(path, line) {
        return Some(node);
    }
    match entry(line.trim(), "")? {
        Listed::Node(node) => Some(Node { path: path.to_owned(), ..node }),
        Listed::Link { .. } | Listed::Name { .. } | Listed::Failed { .. } => None,
    }
}

fn live_node(path: &str, line: &str) -> Option<Node> {
    let mut words = line.split_whitespace();
    let kind = match words.next()? {
        "char" => {
            let (major, minor) = words.next()?.split_once(':')?;
            NodeKind::Char { major: major.parse().ok()?, minor: minor.parse().ok()? }
        }
        "other" => NodeKind::Other,
        _ => return None,
    };
    (words.next()? == "mode").then_some(())?;
    let mode = u32::from_str_radix(words.next()?, 8).ok()?;
    (words.next()? == "owner").then_some(())?;
    let (owner, group) = words.next()?.split_once(':')?;
    let (owner, group) = (Some(owner.to_owned()), Some(group.to_owned()));
    Some(Node { path: path.to_owned(), kind, mode: Some(mode), owner, group })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(text: &str) -> Listed {
        let parsed = ls_long(text, "/dev");
        assert_eq!(parsed.complaints, [], "{text}");
        assert_eq!(parsed.value.len(), 1, "{text}");
        parsed.value.into_iter().next().unwrap().value
    }

    #[test]
    fn one_node_in_every_style() {
        for text in [
            "crw-rw-rw- 1 root root 195,   0 /dev/nvidia0",
            "crw-rw-rw- 1 root root 195, 0 Nov  3 10:22 /dev/nvidia0",
            "crw-rw-rw-. 1 root root 195, 0 Nov  3  2024 nvidia0",
            "crw-rw-rw-+ 1 root root 195, 0 2025-11-03 10:22:01.000000000 +0100 /dev/nvidia0",
            "crw-rw-rw-    1 root     root      195,   0 Nov  3 10:22 /dev/nvidia0",
            "1043 crw-rw-rw-. 1 root root system_u:object_r:xserver_misc_device_t:s0 195, 0 \
             Nov  3 10:22 /dev/nvidia0",
            "crw-rw-rw-. 1 root root unconfined_u:object_r:device_t:s0:c1,c2 195,0 3. Nov 10:22 \
             /dev/nvidia0",
        ] {
            let Listed::Node(node) = only(text) else { panic!("{text}") };
            assert_eq!(node.path, "/dev/nvidia0");
            assert_eq!(node.kind, NodeKind::Char { major: 195, minor: 0 }, "{text}");
            assert_eq!(node.mode, Some(0o666));
            assert_eq!(node.owner.as_deref(), Some("root"));
        }
    }

    #[test]
    fn headings_links_files_and_failures() {
        let parsed = ls_long(
            "ls: cannot access '/dev/nvidia-uvm': No such file or directory\n\
             ls: cannot access /dev/nvidia1: No such file or directory\n\
             ls: /dev/nvidia2: Permission denied\n\
             -rw-r--r-- 1 root root 0 Nov 3 10:22 /dev/nvidia3\n\
             lrwxrwxrwx 1 root root 9 Nov 3 10:22 /dev/char/195:255 -> ../nvidiactl\n\n\
             /dev/nvidia-caps:\ntotal 0\n\
             drwxr-xr-x  2 root root     80 Nov  3 10:22 .\n\
             cr-------- 1 root root 234, 1 Nov 3 10:22 nvidia-cap1\n",
            "/dev",
        );
        assert_eq!(parsed.complaints, []);
        let values: Vec<_> = parsed.value.into_iter().map(|at| at.value).collect();
        let failed = |path: &str, errno| Listed::Failed { path: path.into(), errno };
        assert_eq!(values[0], failed("/dev/nvidia-uvm", Errno::ENOENT));
        assert_eq!(values[1], failed("/dev/nvidia1", Errno::ENOENT));
        assert_eq!(values[2], failed("/dev/nvidia2", Errno::EACCES));
        let Listed::Node(file) = &values[3] else { panic!() };
        assert_eq!(file.kind, NodeKind::Other);
        assert_eq!(
            values[4],
            Listed::Link { path: "/dev/char/195:255".into(), target: "../nvidiactl".into() }
        );
        let Listed::Node(cap) = &values[6] else { panic!() };
        assert_eq!(cap.path, "/dev/nvidia-caps/nvidia-cap1");
        assert_eq!((cap.kind, cap.mode), (NodeKind::Char { major: 234, minor: 1 }, Some(0o400)));
    }

    #[test]
    fn a_plain_ls_gives_names() {
        let parsed = ls_long(
            "/dev/nvidia0  /dev/nvidiactl\n\n/dev/nvidia-caps:\nnvidia-cap1  nvidia-cap2\n\
             hello world!\n",
            "/dev",
        );
        assert_eq!(parsed.complaints.len(), 1);
        let paths: Vec<_> = parsed
            .value
            .iter()
            .map(|at| match &at.value {
                Listed::Name { path } => path.as_str(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(
            paths,
            [
                "/dev/nvidia0",
                "/dev/nvidiactl",
                "/dev/nvidia-caps/nvidia-cap1",
                "/dev/nvidia-caps/nvidia-cap2"
            ]
        );
    }

    #[test]
    fn patterns_without_a_match() {
        for text in [
            "ls: cannot access '/dev/nvidia*': No such file or directory",
            "zsh: no matches found: /dev/nvidia*",
        ] {
            assert_eq!(
                only(text),
                Listed::Failed { path: "/dev/nvidia*".into(), errno: Errno::ENOENT }
            );
        }
    }

    #[test]
    fn the_recorded_form_round_trips() {
        let kind = NodeKind::Char { major: 507, minor: 0 };
        let node = node_at("/dev/nvidia-uvm", &live_line(kind, 0o660, 0, 44)).unwrap();
        assert_eq!((node.kind, node.mode), (kind, Some(0o660)));
        assert_eq!((node.owner.as_deref(), node.group.as_deref()), (Some("0"), Some("44")));
        let other = node_at("/dev/nvidia0", &live_line(NodeKind::Other, 0o644, 1, 1)).unwrap();
        assert_eq!(other.kind, NodeKind::Other);
        let pasted = node_at("/dev/nvidia0", "crw-rw-rw- 1 root root 195, 0 nvidia0\n").unwrap();
        assert_eq!(pasted.path, "/dev/nvidia0");
        assert_eq!(node_at("/dev/nvidia0", "hello\n"), None);
    }

    #[test]
    fn special_bits_do_not_disturb_the_mode() {
        assert_eq!(mode_word("drwxrwxrwt"), Some(('d', 0o777)));
        assert_eq!(mode_word("-rwsr-xr-T"), Some(('-', 0o754)));
        assert_eq!(mode_word("crw-rw-rw"), None);
        assert_eq!(mode_word("cool-words"), None);
    }
}
