//! The rows of the one table of what is collected, read by the child of their group.

use std::collections::BTreeSet;

use facts::wanted::{Group, Kind, Redaction, Safety, Scope, Wanted};

use super::reader::Reader;
use super::{elf_file, kernel_log, process};
use crate::child::report::Report;

/// NVIDIA's vendor id, as sysfs writes it.
const VENDOR: &str = "0x10de";
/// Most paths of one row: a large machine has a few thousand PCI devices and 2048 IMEX channels.
const PATHS_LIMIT: usize = 2048;

/// Reads all rows of a group, in order.
pub(super) fn read(report: &mut Report, reader: &Reader, group: Group) {
    let text = |path: &str| reader.text(path).map(|text| text.trim().to_owned());
    let names = Names {
        release: text("/proc/sys/kernel/osrelease"),
        driver: text("/sys/module/nvidia/version"),
    };
    let mut seen = BTreeSet::new();
    for row in group.rows() {
        let Some(pattern) = names.fill(row.pattern) else { continue };
        for path in reader.matches(&pattern).into_iter().take(PATHS_LIMIT) {
            if in_scope(row, reader, &path) && seen.insert(path.clone()) {
                read_path(report, reader, row, &path);
            }
        }
    }
}

/// What the words in braces stand for.
struct Names {
    release: Option<String>,
    driver: Option<String>,
}

impl Names {
    /// The pattern with its words filled in; `None` when one is not known.
    fn fill(&self, pattern: &str) -> Option<String> {
        let mut filled = pattern.to_owned();
        for (word, name) in [("{release}", &self.release), ("{driver}", &self.driver)] {
            if filled.contains(word) {
                let name = name.as_deref().filter(|name| is_one_component(name))?;
                filled = filled.replace(word, name);
            }
        }
        Some(filled)
    }
}

/// Keeps a strange name from leading elsewhere.
fn is_one_component(name: &str) -> bool {
    !name.is_empty() && name != ".." && !name.contains(['/', '*'])
}

fn in_scope(row: &Wanted, reader: &Reader, path: &str) -> bool {
    let device = || path.split('/').take(6).collect::<Vec<_>>().join("/");
    let is = |attribute: &str, value: &str| {
        let text = reader.text(&format!("{}/{attribute}", device()));
        text.is_some_and(|text| text.trim() == value)
    };
    match row.scope {
        Scope::All => true,
        Scope::NvidiaDevices if !is("vendor", VENDOR) => false,
        // Reading the configuration space would wake a suspended device, which is a change.
        Scope::NvidiaDevices => {
            row.safety == Safety::Safe || !is("power/runtime_status", "suspended")
        }
    }
}

fn read_path(report: &mut Report, reader: &Reader, row: &Wanted, path: &str) {
    let limit = usize::try_from(row.limit_bytes).unwrap_or(usize::MAX);
    match (row.kind, row.safety) {
        (Kind::File, Safety::CanHang) => reader.risky_file(report, path, limit),
        // Redacted where it is read: nobody needs the values of other variables.
        (Kind::File, Safety::Safe) if row.redaction == Redaction::Variables => {
            process::environment(report, reader, path);
        }
        // What takes only the lock of power management can still wait for a suspend.
        (Kind::File, Safety::Safe) if row.group == Group::ProcDriver => {
            reader.risky_file(report, path, limit);
        }
        (Kind::File, Safety::Safe) => reader.file(report, path, limit),
        (Kind::Log, _) => kernel_log::read(report, reader, path, limit),
        (Kind::Dir, _) => {
            reader.listing(report, path);
        }
        (Kind::Link, _) => reader.link(report, path),
        (Kind::Elf, _) => elf_file::tell(report, reader, path),
        (Kind::Node, _) => reader.node(report, path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_in_braces_are_filled_in_or_the_row_is_left_out() {
        let names = Names { release: Some("6.8.12-9-pve".into()), driver: None };
        let filled = names.fill("/boot/config-{release}");
        assert_eq!(filled.as_deref(), Some("/boot/config-6.8.12-9-pve"));
        assert_eq!(names.fill("/lib/firmware/nvidia/{driver}"), None);
        let names = Names { release: Some("../../etc".into()), driver: None };
        assert_eq!(names.fill("/boot/config-{release}"), None);
    }
}
