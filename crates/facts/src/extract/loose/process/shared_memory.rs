//! The size of /dev/shm: rows of df, mounts, an engine's options and what people say of it.

use super::super::Line;
use super::super::pattern::{captures, group, pattern};
use crate::model::Facts;
use crate::observed::Observed;

pattern! {
    /// `shm  65536  0  65536  0% /dev/shm`, with or without units.
    DF_ROW = r"^\s*\S+\s+(?P<size>[\d.]+[KMGT]?)i?\s+[\d.]+[KMGT]?i?\s+(?P<free>[\d.]+[KMGT]?)i?\s+\d+%\s+/dev/shm\s*$"
}
pattern! { MOUNT = r"(?:\bon /dev/shm type tmpfs|^\s*/dev/shm\s|\s/dev/shm tmpfs\s)[^\n]{0,160}\bsize=(?P<size>\d+)(?P<unit>[kKmMgG]?)" }
pattern! { INSPECT = r#""ShmSize":\s*(?P<size>\d+)"# }
pattern! { OPTION = r#"(?i)(?:--shm-size[ =]|\bshm_size:\s*)['"]?(?P<size>\d+(?:\.\d+)?)\s*(?P<unit>[kmgt]?)i?b?['"]?(?:\s|$)"# }
pattern! {
    SAID = r"(?i)/dev/shm\b[^\n\d%]{0,40}?\b(?P<size>\d+(?:\.\d+)?)\s?(?P<unit>[KMGT])i?B?\b|\b(?P<b>\d+(?:\.\d+)?)\s?(?P<bunit>[KMGT])i?B?\b[^\n\d.;,]{0,12}(?:/dev/shm|\bshm\b|of shared memory)|\bSHMEM allocation limit is set to the default of (?P<c>\d+)(?P<cunit>[KMG])B"
}

/// Enters the size that the line tells.
pub(super) fn read(line: &Line<'_>, prose: bool, facts: &mut Facts) {
    if !line.text.to_ascii_lowercase().contains("shm") && !line.has("shared memory") {
        return;
    }
    if let Some(found) = captures(&DF_ROW, line.text) {
        if let Some(size) = blocks(&found["size"]) {
            facts.process.shm_bytes.or_better(Observed::seen(size, line.origin()));
        }
        if let Some(free) = blocks(&found["free"]) {
            facts.process.shm_free_bytes.or_better(Observed::seen(free, line.origin()));
        }
        return;
    }
    let size = captures(&MOUNT, line.text)
        .and_then(|found| bytes(&found["size"], &found["unit"], 1))
        .or_else(|| group(&INSPECT, line.text, "size")?.parse().ok());
    let cured = super::super::statement::condition(line.text).is_some();
    let size = size.or_else(|| {
        let found = captures(&OPTION, line.text).filter(|_| !cured)?;
        bytes(&found["size"], &found["unit"], 1)
    });
    let size = size.or_else(|| if prose && !cured { said(line.text) } else { None });
    if let Some(size) = size {
        facts.process.shm_bytes.or_better(Observed::seen(size, line.origin()));
    }
}

fn said(text: &str) -> Option<u64> {
    let found = captures(&SAID, text)?;
    let pair =
        |number: &str, unit: &str| Some((found.name(number)?.as_str(), found.name(unit)?.as_str()));
    let (number, unit) =
        pair("size", "unit").or_else(|| pair("b", "bunit")).or_else(|| pair("c", "cunit"))?;
    bytes(number, unit, 1)
}

/// A column of df: 1 KiB blocks, or a number with its unit.
fn blocks(word: &str) -> Option<u64> {
    match word.strip_suffix(['K', 'M', 'G', 'T']) {
        Some(number) => bytes(number, &word[number.len()..], 1),
        None => bytes(word, "", 1024),
    }
}

fn bytes(number: &str, unit: &str, without_unit: u64) -> Option<u64> {
    let unit = match unit.to_ascii_lowercase().as_str() {
        "k" => 1 << 10,
        "m" => 1 << 20,
        "g" => 1 << 30,
        "t" => 1 << 40,
        _ => without_unit,
    };
    let (whole, tenths) = number.split_once('.').unwrap_or((number, "0"));
    let tenth: u64 = tenths.get(..1)?.parse().ok()?;
    let whole: u64 = whole.parse().ok()?;
    Some(whole.saturating_mul(unit).saturating_add(unit / 10 * tenth))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::loose::lines_of;

    #[test]
    fn sizes_in_all_their_forms() {
        assert!(
            [&DF_ROW, &MOUNT, &INSPECT, &OPTION, &SAID].iter().all(|pattern| pattern.is_some())
        );
        let small = 64 << 20;
        for (text, size) in [
            ("shm                 65536       0     65536   0% /dev/shm", small),
            ("shm              64M     0   64M   0% /dev/shm", small),
            ("tmpfs            252G   12K  252G   1% /dev/shm", 252 << 30),
            (
                "shm on /dev/shm type tmpfs (rw,nosuid,nodev,noexec,relatime,size=65536k,inode64)",
                small,
            ),
            ("            \"ShmSize\": 67108864,", small),
            ("docker run --shm-size=8g --gpus all img", 8 << 30),
            ("NOTE: The SHMEM allocation limit is set to the default of 64MB.  This may be", small),
            ("/dev/shm is 64 MB in the container", small),
            ("docker default 64 MB shm", small),
        ] {
            assert_eq!(lines_of(text).process.shm_bytes.value(), Some(&size), "{text}");
        }
        assert!(lines_of("it works with --shm-size=8g").process.shm_bytes.value().is_none());
        assert!(
            lines_of("48 KB of shared memory per block").process.shm_bytes.value() != Some(&small)
        );
    }
}
