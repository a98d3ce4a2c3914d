//! Which kernel configuration counts, and what it says.

use std::borrow::Cow;
use std::io::Read;

use flate2::read::MultiGzDecoder;

use super::grep;
use super::reading::{Learn, enter_complaints};
use crate::model::host::ConfigValue;
use crate::model::{Complaint, Facts};
use crate::observed::Observed;
use crate::parse::kernel_config::{self as parse, KernelConfig, SETTINGS_OF_INTEREST};
use crate::parse::{At, Parsed};
use crate::raw::{ItemName, RawItem, RawSet};

/// The most that is unpacked. A configuration is about 300 KiB.
const UNPACKED_LIMIT: u64 = 16 << 20;

/// The two bytes that every gzip member begins with (RFC 1952).
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Reads the configuration of the running kernel: /proc/config.gz, or the file that carries its
/// release. When the release is not known, a single file is taken for it.
pub(super) fn conclude(raw: &RawSet, facts: &mut Facts) {
    let running = facts.host.kernel.value().map(|kernel| kernel.as_str().to_owned());
    let candidates: Vec<(&RawItem, Option<&str>)> = raw.items().filter_map(candidate).collect();
    let own = candidates.iter().filter(|(_, release)| release.is_none());
    let named = candidates.iter().filter(|(_, release)| match (&running, release) {
        (Some(running), Some(release)) => running == release,
        (None, Some(release)) => is_only_release(release, &candidates),
        (_, None) => false,
    });
    for (item, _) in own.chain(named) {
        enter(item, facts);
    }
}

/// True when every other file that carries a release carries this one.
fn is_only_release(release: &str, candidates: &[(&RawItem, Option<&str>)]) -> bool {
    candidates.iter().all(|(_, other)| other.is_none_or(|other| other == release))
}

/// An item with a configuration, and the release in its path; `None` for the running kernel's own.
fn candidate(item: &RawItem) -> Option<(&RawItem, Option<&str>)> {
    let ItemName::File(path) = &item.name else {
        return None;
    };
    item.bytes().filter(|bytes| !bytes.is_empty() || item.filter.is_some())?;
    if path == "/proc/config.gz" {
        return Some((item, None));
    }
    let path = path.strip_prefix("/usr").unwrap_or(path);
    let in_boot = path.strip_prefix("/boot/config-");
    let in_modules = || path.strip_prefix("/lib/modules/")?.strip_suffix("/config");
    let release = in_boot.or_else(in_modules)?;
    (!release.contains('/')).then_some((item, Some(release)))
}

fn enter(item: &RawItem, facts: &mut Facts) {
    let text = match unpacked(item.bytes().unwrap_or_default()) {
        Ok(text) => text,
        Err(error) => {
            let problem = format!("a kernel configuration that cannot be unpacked: {error}");
            facts.complaints.push(Complaint { problem, origin: item.origin() });
            return;
        }
    };
    let parsed: Parsed<KernelConfig> = parse::kernel_config(&text);
    let mut settings = parsed.value.settings;
    for name in SETTINGS_OF_INTEREST {
        let value = match settings.remove(name) {
            Some(At { line, value }) => {
                let excerpt = format!("CONFIG_{name}");
                Observed::seen(value, item.origin_at(line, &excerpt))
            }
            None if missing_means_no(item, name, parsed.value.has_heading) => {
                Observed::seen(ConfigValue::No, item.origin())
            }
            None => continue,
        };
        facts.host.config.entry(name.to_owned()).or_default().learn(value);
    }
    enter_complaints(item, &parsed.complaints, facts);
}

/// A setting that a whole configuration does not mention is off, since its conditions are not met;
/// so is one that a filter would have shown.
fn missing_means_no(item: &RawItem, name: &str, has_heading: bool) -> bool {
    let text = format!("CONFIG_{name}");
    match item.filter {
        Some(_) => grep::silence_counts(item, &text, false, false),
        None => has_heading && !item.partial,
    }
}

/// The text, unpacked when it is gzipped; a pasted `zcat` is plain.
fn unpacked(bytes: &[u8]) -> std::io::Result<Cow<'_, str>> {
    if !bytes.starts_with(&GZIP_MAGIC) {
        return Ok(String::from_utf8_lossy(bytes));
    }
    let mut out = Vec::new();
    let read = MultiGzDecoder::new(bytes).take(UNPACKED_LIMIT + 1).read_to_end(&mut out)?;
    if u64::try_from(read).is_ok_and(|read| read > UNPACKED_LIMIT) {
        return Err(std::io::Error::other("more than 16 MiB"));
    }
    Ok(Cow::Owned(String::from_utf8_lossy(&out).into_owned()))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const WHOLE: &str = "# Automatically generated file; DO NOT EDIT.\nCONFIG_HMM_MIRROR=y\n\
                         # CONFIG_DEVICE_PRIVATE is not set\n";

    fn gzipped(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn facts_of(items: Vec<RawItem>, running: Option<&str>) -> Facts {
        let mut facts = Facts::default();
        if let Some(running) = running {
            let release = crate::version::KernelRelease::parse(running).unwrap();
            facts.host.kernel = Observed::seen(release, crate::Origin::item("$ uname -r"));
        }
        conclude(&items.into_iter().collect(), &mut facts);
        facts
    }

    fn file(path: &str, bytes: impl AsRef<[u8]>) -> RawItem {
        RawItem::new(ItemName::File(path.to_owned()), bytes.as_ref())
    }

    #[test]
    fn a_gzipped_configuration_is_unpacked_and_silence_means_no() {
        let facts = facts_of(vec![file("/proc/config.gz", gzipped(WHOLE.as_bytes()))], None);
        assert_eq!(facts.host.config("HMM_MIRROR").value(), Some(&ConfigValue::Yes));
        assert_eq!(facts.host.config("DEVICE_PRIVATE").value(), Some(&ConfigValue::No));
        assert_eq!(facts.host.config("PCI_P2PDMA").value(), Some(&ConfigValue::No));
        assert!(facts.complaints.is_empty());
    }

    #[test]
    fn an_excerpt_proves_nothing_of_the_rest() {
        let facts = facts_of(vec![file("/proc/config.gz", "CONFIG_HMM_MIRROR=y\n")], None);
        assert!(facts.host.config("HMM_MIRROR").is_seen());
        assert!(facts.host.config("DEVICE_PRIVATE").is_unknown());
        let mut filtered = file("/boot/config-6.8.12-9-pve", "CONFIG_HMM_MIRROR=y\n");
        filtered.partial = true;
        filtered.filter = Some("HMM|DEVICE_PRIVATE".into());
        let facts = facts_of(vec![filtered], None);
        assert_eq!(facts.host.config("DEVICE_PRIVATE").value(), Some(&ConfigValue::No));
        assert!(facts.host.config("PCI_P2PDMA").is_unknown());
    }

    #[test]
    fn only_the_running_kernels_configuration_counts() {
        let items = || {
            vec![
                file("/boot/config-6.8.12-9-pve", WHOLE),
                file("/usr/lib/modules/6.14.8-2-pve/config", "CONFIG_DEVICE_PRIVATE=y\n"),
            ]
        };
        let facts = facts_of(items(), Some("6.14.8-2-pve"));
        assert!(facts.host.config("HMM_MIRROR").is_unknown());
        assert_eq!(facts.host.config("DEVICE_PRIVATE").value(), Some(&ConfigValue::Yes));
        assert!(facts_of(items(), None).host.config.is_empty(), "two kernels, none known to run");
    }

    #[test]
    fn broken_and_huge_archives_are_complaints() {
        let mut broken = gzipped(WHOLE.as_bytes());
        broken.truncate(30);
        let huge = gzipped(&vec![b'#'; (16 << 20) + 2]);
        for bytes in [broken, huge] {
            let facts = facts_of(vec![file("/proc/config.gz", bytes)], None);
            assert!(facts.host.config.is_empty());
            assert_eq!(facts.complaints.len(), 1);
        }
    }
}
