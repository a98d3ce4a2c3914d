//! Kernel module files.

use crate::extract::places::Places;
use crate::model::Facts;
use crate::model::module::ModuleFile;
use crate::observed::{Observed, Origin, Seen};
use crate::parse::modinfo::{self, ModInfo};
use crate::raw::{ItemName, RawItem};

/// Enters a module file that was read.
pub(super) fn enter(item: &RawItem, path: &str, info: &ModInfo, facts: &mut Facts) {
    let origin = item.origin_at(0, &info.faults.join("; "));
    put(path, info, origin, facts);
}

/// Enters the output of `modinfo`.
pub fn apply_modinfo(item: &RawItem, facts: &mut Facts) {
    let Some(text) = item.text() else { return };
    let places = Places::new(item, &text);
    let parsed = modinfo::parse(&text);
    crate::extract::complaints::note(item, &parsed.complaints, facts);
    for info in parsed.value {
        let named = info.value.filename.clone().or_else(|| asked_for(&item.name));
        let Some(path) = named else { continue };
        if name_of(&path, &info.value).starts_with("nvidia") {
            put(&path, &info.value, places.at(info.line), facts);
        }
    }
}

/// The module that the command line asks for, when the output lacks its file's name.
fn asked_for(name: &ItemName) -> Option<String> {
    let ItemName::Command(line) = name else {
        return None;
    };
    let mut words = line.split_ascii_whitespace().skip_while(|word| !word.ends_with("modinfo"));
    words.next()?;
    words.find(|word| word.starts_with("nvidia") || word.contains("/nvidia")).map(str::to_owned)
}

fn name_of(path: &str, info: &ModInfo) -> String {
    if let Some(name) = &info.name {
        return name.clone();
    }
    let file = path.rsplit('/').next().unwrap_or(path);
    file.split('.').next().unwrap_or(file).replace('-', "_")
}

fn put(path: &str, info: &ModInfo, origin: Origin, facts: &mut Facts) {
    facts.mentions_gpu = true;
    let in_folder = path.split_once("/lib/modules/").and_then(|(_, rest)| rest.split('/').next());
    let file = ModuleFile {
        name: name_of(path, info),
        path: path.to_owned(),
        kernel: in_folder.map(str::to_owned),
        version: info.version.clone(),
        flavour: info.flavour(),
        vermagic: info.kernel().map(str::to_owned),
        origin: origin.clone(),
    };
    let Observed::Seen(Seen { value: files, .. }) = &mut facts.module.on_disk else {
        facts.module.on_disk = Observed::seen(vec![file], origin);
        return;
    };
    match files.iter_mut().find(|known| known.path == file.path) {
        Some(known) => *known = file,
        None => files.push(file),
    }
}
