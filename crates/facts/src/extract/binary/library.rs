//! Driver libraries: the files, the loader's cache and what a process has mapped.

use crate::extract::places::Places;
use crate::model::Facts;
use crate::model::library::{LibraryFile, LibraryKind};
use crate::observed::{Observed, Origin};
use crate::parse::elf_library::{LibrarySummary, kind_of_path, soname_of_path, version_of_path};
use crate::parse::ld_cache::{self, CacheAbi, CacheEntry};
use crate::parse::{At, maps};
use crate::raw::RawItem;

const NAMES: [&str; 2] = ["libcuda.so.1", "libnvidia-ml.so.1"];

/// Enters a library file that was read.
pub(super) fn enter(
    item: &RawItem,
    path: &str,
    real_path: &str,
    summary: &LibrarySummary,
    facts: &mut Facts,
) {
    let by_path = soname_of_path(path).unwrap_or("libcuda.so.1");
    let soname = summary.soname.as_deref().filter(|name| NAMES.contains(name)).unwrap_or(by_path);
    let excerpt = summary.faults.join("; ");
    put(
        LibraryFile {
            soname: soname.to_owned(),
            path: path.to_owned(),
            real_path: real_path.to_owned(),
            version: summary.version.clone().or_else(|| version_of_path(real_path)),
            kind: summary.kind.unwrap_or_else(|| kind_of_path(real_path)),
            origin: item.origin_at(0, &excerpt),
        },
        facts,
    );
}

/// Enters a link: what it leads to tells kind and version.
pub(super) fn enter_link(item: &RawItem, path: &str, target: &str, facts: &mut Facts) {
    let real_path = match path.rsplit_once('/') {
        Some((folder, _)) if !target.starts_with('/') => format!("{folder}/{target}"),
        _ => target.to_owned(),
    };
    let origin = item.origin_at(0, target);
    put(by_path(path, &real_path, origin), facts);
}

/// A library as far as its path tells.
fn by_path(path: &str, real_path: &str, origin: Origin) -> LibraryFile {
    LibraryFile {
        soname: soname_of_path(path).unwrap_or("libcuda.so.1").to_owned(),
        path: path.to_owned(),
        real_path: real_path.to_owned(),
        version: version_of_path(real_path),
        kind: kind_of_path(real_path),
        origin,
    }
}

/// Keeps a file, in the place of what was known of the same path.
fn put(file: LibraryFile, facts: &mut Facts) {
    facts.mentions_gpu = true;
    let others = &mut facts.library.others;
    match others.iter_mut().find(|known| known.path == file.path) {
        Some(known) => *known = file,
        None => others.push(file),
    }
}

/// Enters `/proc/PID/maps`: the libraries that are mapped are the ones that count.
pub fn apply_maps(item: &RawItem, facts: &mut Facts) {
    let Some(text) = item.text() else { return };
    let places = Places::new(item, &text);
    let parsed = maps::parse(&text);
    crate::extract::complaints::note(item, &parsed.complaints, facts);
    for At { line, value } in parsed.value.driver_libraries {
        let origin = places.at(line);
        let file = by_path(&value.path, &value.path, origin.clone());
        facts.mentions_gpu = true;
        let place = slot(&file.soname, facts);
        *place = Observed::seen(file, origin);
    }
    for At { line, value } in parsed.value.interposers {
        facts.library.interposers.push((value.path, places.at(line)));
    }
}

fn slot<'a>(soname: &str, facts: &'a mut Facts) -> &'a mut Observed<LibraryFile> {
    if soname == "libcuda.so.1" { &mut facts.library.cuda } else { &mut facts.library.nvml }
}

/// Enters `/etc/ld.so.cache`.
pub(super) fn apply_cache(item: &RawItem, facts: &mut Facts) {
    let Some(bytes) = item.bytes() else { return };
    let parsed = ld_cache::read(bytes);
    crate::extract::complaints::note(item, &parsed.complaints, facts);
    let whole = parsed.complaints.is_empty() && !item.partial;
    enter_cache(item, &parsed.value, whole, facts);
}

/// Enters the output of `ldconfig -p`.
pub fn apply_ldconfig(item: &RawItem, facts: &mut Facts) {
    let Some(text) = item.text() else { return };
    let parsed = ld_cache::parse(&text);
    let whole = !item.partial && text.contains("libs found in cache");
    enter_cache(item, &parsed.value, whole, facts);
}

/// The loader takes the first entry of the cache that fits a 64-bit program. A cache without one
/// shows that a plain program finds none, unless a filter kept it from showing.
fn enter_cache(item: &RawItem, entries: &[CacheEntry], whole: bool, facts: &mut Facts) {
    for name in NAMES {
        let shown = item.filter.as_deref().is_some_and(|pattern| name.contains(pattern));
        let mut fitting =
            entries.iter().filter(|entry| entry.name == name && entry.abi == CacheAbi::Wide);
        let Some(first) = fitting.next() else {
            if whole || shown {
                let excerpt = format!("no {name} in the loader's cache");
                let origin = item.silence().with_excerpt(&excerpt);
                slot(name, facts).or_better(Observed::Absent(origin));
            }
            continue;
        };
        let found = |entry: &CacheEntry| {
            let origin = item.origin_at(entry.line, &format!("{} => {}", entry.name, entry.path));
            by_path(&entry.path, &entry.path, origin)
        };
        let file = found(first);
        facts.mentions_gpu = true;
        let origin = file.origin.clone();
        slot(name, facts).or_better(Observed::seen(file, origin));
        for entry in fitting {
            let file = found(entry);
            if !facts.library.others.iter().any(|known| known.path == file.path) {
                facts.library.others.push(file);
            }
        }
    }
}

/// Completes the libraries that are known by path alone with what the files themselves told. To be
/// called once after the last item.
pub fn conclude(facts: &mut Facts) {
    let library = &mut facts.library;
    let others = &library.others;
    for slot in [&mut library.cuda, &mut library.nvml] {
        let Observed::Seen(seen) = slot else { continue };
        let file = &mut seen.value;
        let same = |known: &&LibraryFile| known.path == file.path || known.real_path == file.path;
        if let Some(known) = others.iter().find(same) {
            if file.real_path == file.path {
                file.real_path.clone_from(&known.real_path);
            }
            file.version = file.version.take().or_else(|| known.version.clone());
            if file.kind == LibraryKind::Driver {
                file.kind = known.kind;
            }
        }
    }
    // A file that is in use is not another one.
    let used: Vec<String> = [&library.cuda, &library.nvml]
        .into_iter()
        .filter_map(|slot| slot.value())
        .flat_map(|file| [file.path.clone(), file.real_path.clone()])
        .collect();
    library.others.retain(|file| !used.contains(&file.real_path) && !used.contains(&file.path));
}
