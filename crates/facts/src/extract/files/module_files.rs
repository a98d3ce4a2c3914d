//! Module files on disk, from each kernel's modules.dep.

use super::reading::Learn;
use crate::model::Facts;
use crate::model::module::ModuleFile;
use crate::observed::{Observed, Origin};
use crate::parse::proc_modules::name_of_file;
use crate::raw::{ItemName, RawItem, RawSet};

/// The modules whose files are looked for.
const NAMES: [&str; 4] = ["nvidia", "nvidia_uvm", "nvidia_modeset", "nvidia_drm"];

/// How many files of one kernel's list are kept; a hostile list may name any number.
const FILES_A_KERNEL: usize = 16;

/// Adds the files that the lists of all kernels name. They are `Absent` when the running kernel's
/// list was read whole and no list names one; an absent list proves nothing, since a container has
/// no /lib/modules of its own.
pub(super) fn conclude(raw: &RawSet, facts: &mut Facts) {
    let running = facts.host.kernel.value().map(|kernel| kernel.as_str().to_owned());
    let mut found = Vec::new();
    let mut running_list: Option<Origin> = None;
    for (folder, release, item) in lists(raw) {
        let Some(text) = item.text() else { continue };
        found.extend(files_of(folder, release, item, &text));
        if running.as_deref() == Some(release) && !item.partial && !text.trim().is_empty() {
            running_list = Some(item.silence());
        }
    }
    enter(found, facts);
    if let Some(origin) = running_list {
        facts.module.on_disk.learn(Observed::Absent(origin));
    }
}

/// Every modules.dep: the folder that its paths are relative to, the kernel's release, the item.
fn lists(raw: &RawSet) -> impl Iterator<Item = (&str, &str, &RawItem)> {
    raw.items().filter_map(|item| {
        let ItemName::File(path) = &item.name else {
            return None;
        };
        let folder = path.strip_suffix("/modules.dep")?;
        let (parent, release) = folder.rsplit_once('/')?;
        parent.ends_with("/lib/modules").then_some((folder, release, item))
    })
}

fn files_of(folder: &str, release: &str, item: &RawItem, text: &str) -> Vec<ModuleFile> {
    let file = |(line, content): (u32, &str)| {
        let path = content.split(':').next()?.trim();
        let name = name_of_file(path).filter(|name| NAMES.contains(&name.as_str()))?;
        let path = if path.starts_with('/') { path.to_owned() } else { format!("{folder}/{path}") };
        Some(ModuleFile {
            name,
            path,
            kernel: Some(release.to_owned()),
            version: None,
            flavour: None,
            vermagic: None,
            origin: item.origin_at(line, content),
        })
    };
    crate::parse::numbered(text).filter_map(file).take(FILES_A_KERNEL).collect()
}

/// Adds files that are not known yet: what an ELF file tells of itself is more than its name.
fn enter(found: Vec<ModuleFile>, facts: &mut Facts) {
    let Some(origin) = found.first().map(|file| file.origin.clone()) else {
        return;
    };
    facts.module.on_disk.learn(Observed::seen(Vec::new(), origin));
    if let Observed::Seen(seen) = &mut facts.module.on_disk {
        for file in found {
            if !seen.value.iter().any(|known| known.path == file.path) {
                seen.value.push(file);
            }
        }
    }
}
