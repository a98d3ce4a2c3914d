//! Device nodes.

use std::collections::BTreeMap;

use crate::observed::{Errno, Observed, Origin, Seen};

/// What stands at the path of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeKind {
    /// A character device.
    Char {
        /// Major number.
        major: u32,
        /// Minor number.
        minor: u32,
    },
    /// Something else: a regular file, a folder, a dangling link.
    Other,
}

/// One node as a listing or stat shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Path.
    pub path: String,
    /// Kind and numbers.
    pub kind: NodeKind,
    /// Permission bits, if shown.
    pub mode: Option<u32>,
    /// Owner, by name or number as shown.
    pub owner: Option<String>,
    /// Group, by name or number as shown.
    pub group: Option<String>,
}

/// What an open for reading and writing gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeOpen {
    /// It opened.
    Opened,
    /// It failed.
    Failed(Errno),
    /// It was entered and did not return.
    Hung,
    /// It was left alone, and why.
    NotTried(String),
}

/// The nodes.
#[derive(Debug, Clone, Default)]
pub struct Nodes {
    /// Nodes by path. A path that is `Absent` was looked for.
    pub nodes: BTreeMap<String, Observed<Node>>,
    /// What opening each gave, from this process's surroundings.
    pub opens: BTreeMap<String, (NodeOpen, Origin)>,
    /// Nodes that a person says are not there.
    pub told_missing: Vec<Seen<String>>,
    /// `Seen` when all of /dev was listed, so that a node not in `nodes` is not there.
    pub listed: Observed<()>,
    /// Beginnings of paths below /dev that a pattern such as `/dev/nvidia*` listed whole: a node
    /// that begins so and is not in `nodes` is not there.
    pub listed_beginnings: Vec<(String, Origin)>,
    /// Symbolic links below /dev, such as /dev/char/195:255, with their targets.
    pub links: BTreeMap<String, Observed<String>>,
    /// Effective user id of who looked.
    pub euid: Observed<u32>,
    /// Effective group id of who looked.
    pub egid: Observed<u32>,
    /// Supplementary groups of who looked.
    pub groups: Observed<Vec<u32>>,
}

impl Nodes {
    /// The node at this path; `Absent` when it was looked for, or when what it would be listed in
    /// was listed whole. A listing shows one folder: that of /dev says of `/dev/nvidia-caps/…`
    /// only that it is absent when the folder is.
    pub fn at(&self, path: &str) -> Observed<&Node> {
        match (self.nodes.get(path), self.listed_without(path)) {
            (Some(node), _) => node.as_ref(),
            (None, Some(origin)) => Observed::Absent(origin.clone()),
            (None, None) => Observed::default(),
        }
    }

    /// Where a listing stands that would have shown this path (or the folder it is in) and does
    /// not.
    fn listed_without(&self, path: &str) -> Option<&Origin> {
        let name = path.strip_prefix("/dev/")?;
        let first = name.split('/').next().unwrap_or(name);
        let top = path.get(..path.len() - name.len() + first.len())?;
        if top != path && self.nodes.contains_key(top) {
            return None;
        }
        let whole = self.listed.as_seen().map(|listed| &listed.origin);
        let mut patterns = self.listed_beginnings.iter();
        let pattern = patterns.find(|(beginning, _)| top.starts_with(beginning.as_str()));
        whole.or(pattern.map(|(_, origin)| origin))
    }

    /// The nodes of GPUs, `/dev/nvidiaN`, with their N.
    pub fn gpu_nodes(&self) -> impl Iterator<Item = (u32, &Observed<Node>)> {
        self.nodes.iter().filter_map(|(path, node)| {
            let number = path.strip_prefix("/dev/nvidia")?.parse().ok()?;
            Some((number, node))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_listing_tells_what_is_absent() {
        let origin = Origin::item("$ ls -l /dev/nvidia*");
        let mut nodes = Nodes::default();
        assert!(nodes.at("/dev/nvidia-uvm").is_unknown());
        nodes.listed_beginnings.push(("/dev/nvidia".into(), origin.clone()));
        assert!(nodes.at("/dev/nvidia-uvm").absent().is_some());
        assert!(nodes.at("/dev/nvidia-caps/nvidia-cap1").absent().is_some());
        assert!(nodes.at("/dev/dxg").is_unknown());
        nodes.listed = Observed::seen((), origin);
        assert!(nodes.at("/dev/dxg").absent().is_some());
        nodes.nodes.insert("/dev/nvidia-caps".into(), Observed::default());
        assert!(nodes.at("/dev/nvidia-caps/nvidia-cap1").is_unknown());
    }
}
