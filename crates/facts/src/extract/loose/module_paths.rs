//! Listings of module files: the output of `find /lib/modules -name 'nvidia.ko*'` and of `ls` with
//! such paths.

use super::Line;
use super::pattern::{captures, pattern};
use crate::model::Facts;
use crate::model::module::ModuleFile;
use crate::observed::{Observed, Seen};

pattern! {
    /// A line that is one path, after a list's mark or the columns of `ls -l`.
    PATH = r"^(?:[-d][rwx-]{9}\S*\s.*?\s)?[\s`>*-]*(?P<path>/(?:usr/)?lib/modules/(?P<kernel>[\w.+~-]+)/[\w./+~-]*?(?P<name>nvidia(?:-current|-uvm)?)\.ko(?:\.(?:xz|zst|gz))?)`?\s*$"
}

/// Most files that are kept.
const LIMIT: usize = 64;

pub(super) fn read(line: &Line<'_>, facts: &mut Facts) {
    if !line.has("/modules/") || !line.has(".ko") {
        return;
    }
    let Some(found) = captures(&PATH, line.text) else { return };
    let text = |name: &str| found.name(name).map(|group| group.as_str().to_owned());
    let (Some(path), Some(name)) = (text("path"), text("name")) else { return };
    let file = ModuleFile {
        name: if name == "nvidia-uvm" { "nvidia_uvm" } else { "nvidia" }.to_owned(),
        path,
        kernel: text("kernel"),
        version: None,
        flavour: None,
        vermagic: None,
        origin: line.origin(),
    };
    facts.mentions_gpu = true;
    facts.module.on_disk_in_part |= line.item.partial;
    match &mut facts.module.on_disk {
        Observed::Seen(Seen { value: files, .. }) => {
            let known = files.iter().any(|other| other.path == file.path);
            if !known && files.len() < LIMIT {
                files.push(file);
            }
        }
        other => *other = Observed::seen(vec![file], line.origin()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::loose::lines_of;

    #[test]
    fn paths_of_find_and_ls() {
        assert!(PATH.is_some());
        let facts = lines_of(
            "/lib/modules/3.13.0-88-generic/updates/dkms/nvidia.ko\n\
             -rw-r--r-- 1 root root 9 Jan 1 2026 /usr/lib/modules/6.8.0-31-generic/kernel/nvidia-580/nvidia.ko.zst\n\
             filename:       /lib/modules/6.1.0/updates/dkms/nvidia.ko\n\
             Installing to /lib/modules/6.1.0/updates/dkms/",
        );
        let files = facts.module.on_disk.value().cloned().unwrap_or_default();
        let kernels: Vec<_> = files.iter().filter_map(|file| file.kernel.as_deref()).collect();
        assert_eq!(kernels, ["3.13.0-88-generic", "6.8.0-31-generic"]);
    }
}
