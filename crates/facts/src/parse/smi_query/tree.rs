//! The tree: indentation gives the path, a line `GPU 00000000:00:06.0` or a repeated key the GPU.

use crate::model::pci::PciAddress;
use crate::parse::numbered;

/// One leaf of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The line.
    pub line: u32,
    /// Path below the GPU, such as `Fabric/State`.
    pub path: String,
    /// Value, trimmed.
    pub value: String,
}

/// The entries of one GPU, or those above the first.
#[derive(Debug, Default)]
pub(super) struct Group {
    pub(super) line: u32,
    pub(super) address: Option<PciAddress>,
    pub(super) entries: Vec<Entry>,
}

/// Most entries a GPU and most GPUs that are kept: a whole report has about 250 lines a GPU.
const ENTRIES_LIMIT: usize = 2000;
const GROUPS_LIMIT: usize = 1024;
const LINE_LIMIT: usize = 1024;
const DEPTH_LIMIT: usize = 8;

/// Splits a report into groups.
pub(super) fn groups(text: &str) -> Vec<Group> {
    let mut builder = Builder::default();
    for (number, line) in numbered(text).filter(|(_, line)| line.len() <= LINE_LIMIT) {
        builder.line(number, line);
        if builder.groups.len() >= GROUPS_LIMIT {
            break;
        }
    }
    builder.groups
}

#[derive(Default)]
struct Builder {
    groups: Vec<Group>,
    /// Headings above the present line, with their indentation.
    above: Vec<(usize, String)>,
}

impl Builder {
    fn line(&mut self, number: u32, line: &str) {
        let content = line.trim();
        if content.is_empty() || content.starts_with("====") {
            return;
        }
        if let Some(address) = gpu_heading(content) {
            self.above.clear();
            self.groups.push(Group { line: number, address: Some(address), entries: Vec::new() });
            return;
        }
        let indent = line.len() - line.trim_start().len();
        while self.above.last().is_some_and(|(above, _)| *above >= indent) {
            self.above.pop();
        }
        match content.split_once(" : ").or_else(|| content.strip_suffix(" :").map(|key| (key, "")))
        {
            Some((key, value)) => self.entry(number, key.trim_end(), value.trim()),
            // A heading has no colon. What stands at the margin is none: a prompt, a message.
            None if indent > 0 && self.above.len() < DEPTH_LIMIT => {
                self.above.push((indent, content.to_owned()));
            }
            None => {}
        }
    }

    fn entry(&mut self, line: u32, key: &str, value: &str) {
        let mut path = String::new();
        for (_, heading) in &self.above {
            path.push_str(heading);
            path.push('/');
        }
        path.push_str(key);
        if self.begins_group(&path) {
            self.groups.push(Group { line, ..Group::default() });
        }
        if let Some(group) = self.groups.last_mut()
            && group.entries.len() < ENTRIES_LIMIT
        {
            group.entries.push(Entry { line, path, value: value.to_owned() });
        }
    }

    /// In a part that lacks the headings of GPUs, the first key to come again begins the next GPU.
    fn begins_group(&self, path: &str) -> bool {
        let Some(group) = self.groups.last() else {
            return true;
        };
        let first = group.entries.first().is_some_and(|entry| entry.path == path);
        first && group.address.is_none()
    }
}

fn gpu_heading(content: &str) -> Option<PciAddress> {
    let address = content.strip_prefix("GPU ")?;
    address.contains(':').then(|| PciAddress::parse(address)).flatten()
}
