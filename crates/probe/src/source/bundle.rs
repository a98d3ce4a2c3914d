//! Bundles: a case folder as one tar archive, whose first member is its manifest.

use std::collections::BTreeSet;
use std::io::{self, Read, Write};

use facts::raw::{ItemName, RawItem, RawSet, RawState};

use super::case::{self, LISTING, MANIFEST};
use super::tar;

/// The line by which a manifest says that it is a bundle's, and of which form.
const FORM: &str = "bundle = 1";
/// Most bytes of one member, and of all.
const MEMBER_LIMIT_BYTES: u64 = 64 << 20;
const TOTAL_LIMIT_BYTES: u64 = 256 << 20;

/// Writes items as a bundle, which `gpudx read` takes.
pub fn write_bundle(set: &RawSet, out: &mut dyn Write) -> io::Result<()> {
    let mut manifest = format!("{FORM}\nlive = {}\n", set.live);
    let mut members = Vec::new();
    let mut names = BTreeSet::new();
    for (at, item) in set.items().enumerate() {
        describe(item, &mut manifest);
        if let Some(bytes) = item.bytes() {
            let mut name = member_name(item, at, set);
            if !names.insert(name.clone()) {
                name = format!("text/{at}-{}", name.replace('/', "-"));
            }
            members.push((name, content(item, bytes)));
        }
    }
    tar::write_member(out, MANIFEST, manifest.as_bytes())?;
    for (name, bytes) in members {
        tar::write_member(out, &name, &bytes)?;
    }
    tar::write_end(out)
}

/// What files cannot show of an item.
fn describe(item: &RawItem, manifest: &mut String) {
    let state = match &item.state {
        RawState::Bytes(_) => None,
        RawState::Absent => Some("absent".to_owned()),
        RawState::Denied(errno) => Some(format!("denied:{}", errno.0)),
        RawState::TimedOut => Some("timed-out".to_owned()),
    };
    let mut lines = vec![("name", quoted(&item.name.to_string()))];
    lines.extend(state.map(|state| ("state", quoted(&state))));
    lines.extend(item.partial.then(|| ("partial", "true".to_owned())));
    lines.extend(item.filter.as_ref().map(|filter| ("filter", quoted(filter))));
    lines.extend(item.exit_status.map(|status| ("exit_status", status.to_string())));
    lines.extend(item.taken_at.map(|seconds| ("taken_at", seconds.to_string())));
    if lines.len() > 1 {
        manifest.push_str("[[item]]\n");
        manifest.extend(lines.iter().map(|(key, value)| format!("{key} = {value}\n")));
    }
}

/// A basic string of TOML, whose escapes are those of JSON but for one character.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

fn member_name(item: &RawItem, at: usize, set: &RawSet) -> String {
    match &item.name {
        ItemName::File(path) => {
            let is_folder = set.below(path).next().is_some();
            let listing = if is_folder { format!("/{LISTING}") } else { String::new() };
            format!("root{path}{listing}")
        }
        ItemName::Command(_) => format!("cmd/{at}.txt"),
        ItemName::Probe { name, trial } => format!("probe/{name}.{trial}.jsonl"),
        ItemName::Text(label) => format!("text/{}", label.replace('/', "-")),
    }
}

fn content(item: &RawItem, bytes: &[u8]) -> Vec<u8> {
    match &item.name {
        ItemName::Command(line) => [b"$ ", line.as_bytes(), b"\n", bytes].concat(),
        _ => bytes.to_vec(),
    }
}

/// True when an archive begins as a bundle does: with a manifest that says so.
pub(super) fn is_bundle(start: &[u8]) -> bool {
    tar::first_name(start).as_deref() == Some(MANIFEST)
        && start.get(tar::BLOCK_BYTES..).is_some_and(|rest| rest.starts_with(FORM.as_bytes()))
}

/// Reads a bundle. Damage ends the reading; what came before it stays. A manifest that cannot be
/// understood is left out.
pub(super) fn read_bundle(archive: &mut dyn Read) -> RawSet {
    let (mut set, mut manifest, mut left) = (RawSet::new(), String::new(), TOTAL_LIMIT_BYTES);
    // What cannot be read any more is missing, as the set then shows.
    let _ = tar::read_members(archive, |member, content| {
        let mut bytes = Vec::new();
        let limit = MEMBER_LIMIT_BYTES.min(left);
        let read = content.take(limit).read_to_end(&mut bytes).unwrap_or(0) as u64;
        left -= read;
        if member.name == MANIFEST {
            manifest = String::from_utf8_lossy(&bytes).into_owned();
            return left > 0;
        }
        for mut item in case::items_at(&member.name, bytes) {
            item.partial |= read < member.size;
            set.push(item);
        }
        left > 0
    });
    case::with_manifest(&set, &manifest).unwrap_or(set)
}

#[cfg(test)]
mod tests {
    use facts::Errno;

    use super::*;

    fn set() -> RawSet {
        let item =
            |name: &str, bytes: &'static [u8]| RawItem::new(ItemName::parse(name).unwrap(), bytes);
        let mut set = RawSet::from_iter([
            item("/dev", b"nvidiactl\n"),
            item("/dev/nvidiactl", b"char 195:255"),
            item(&format!("/sys/{}/vendor", "long-folder/".repeat(20)), b"0x10de\n"),
            item("/proc/\x07odd \"name\"\x7f", b"\xff\x00"),
            item("$ nvidia-smi -L", b"GPU 0\n"),
            item("probe:plan#1", b"{\"record\":\"note\",\"key\":\"a\",\"value\":\"b\"}\n"),
            item("text:trace.jsonl", b""),
            RawItem::with_state(ItemName::File("/x".to_owned()), RawState::Denied(Errno::EACCES)),
            RawItem::with_state(ItemName::File("/y".to_owned()), RawState::TimedOut),
        ]);
        let mut cut = item("$ dmesg", b"[1] x\n");
        (cut.partial, cut.filter, cut.exit_status) = (true, Some("a\nb".to_owned()), Some(1));
        cut.taken_at = Some(1_700_000_000);
        set.push(cut);
        set.live = true;
        set
    }

    #[test]
    fn what_is_written_is_read_again() {
        let (set, mut archive) = (set(), Vec::new());
        write_bundle(&set, &mut archive).unwrap();
        assert!(is_bundle(&archive) && archive.len() % tar::BLOCK_BYTES == 0);
        let read = read_bundle(&mut archive.as_slice());
        let sorted = |set: &RawSet| {
            let mut items: Vec<RawItem> = set.items().cloned().collect();
            items.sort_by(|one, other| one.name.cmp(&other.name));
            items
        };
        assert_eq!(sorted(&read), sorted(&set));
        assert!(read.live);
    }

    #[test]
    fn a_damaged_bundle_gives_what_is_left() {
        let mut archive = Vec::new();
        write_bundle(&set(), &mut archive).unwrap();
        for length in (0..archive.len()).step_by(100) {
            let read = read_bundle(&mut archive.get(..length).unwrap());
            assert!(read.len() <= set().len());
        }
        assert!(!is_bundle(b"") && !is_bundle(&archive[..300]));
    }
}
