//! Device nodes.

use std::collections::BTreeMap;

use crate::observed::{Errno, Observed, Origin};

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
    /// `Seen` when all of /dev was listed, so that a node not in `nodes` is not there.
    pub listed: Observed<()>,
    /// Effective user id of who looked.
    pub euid: Observed<u32>,
}

impl Nodes {
    /// The node at this path; `Absent` when it was looked for, or when all of /dev was listed.
    pub fn at(&self, path: &str) -> Observed<&Node> {
        match (self.nodes.get(path), &self.listed) {
            (Some(node), _) => node.as_ref(),
            (None, Observed::Seen(listed)) => Observed::Absent(listed.origin.clone()),
            (None, _) => Observed::default(),
        }
    }

    /// The nodes of GPUs, `/dev/nvidiaN`, with their N.
    pub fn gpu_nodes(&self) -> impl Iterator<Item = (u32, &Observed<Node>)> {
        self.nodes.iter().filter_map(|(path, node)| {
            let number = path.strip_prefix("/dev/nvidia")?.parse().ok()?;
            Some((number, node))
        })
    }
}
