//! What PyTorch tells of a GPU's memory when it gets none, and TensorFlow as it starts.

use regex::Captures;

use super::Line;
use super::pattern::{captures, matches, pattern};
use crate::model::Facts;
use crate::model::share::MemoryAccount;
use crate::observed::Seen;
use crate::raw::RawItem;

pattern! {
    /// Up to release 2.1: `(GPU 0; 44.56 GiB total capacity; 27.91 GiB already allocated; 565.31 MiB
    /// free; 27.93 GiB reserved in total by PyTorch)`.
    OLDER = r"(?P<total>[\d.]+) (?P<total_unit>[KMGT]iB) total capacity; [^;]{0,40}; (?P<free>[\d.]+) (?P<free_unit>[KMGT]iB|bytes) free; (?P<own>[\d.]+) (?P<own_unit>[KMGT]iB|bytes) reserved"
}
pattern! {
    /// Since: `GPU 0 has a total capacity of 23.69 GiB of which 1.94 MiB is free. Process 12 has 9.1
    /// GiB memory in use. Including non-PyTorch memory, this process has 14.5 GiB memory in use.`
    NEWER = r"total capacity of (?P<total>[\d.]+) (?P<total_unit>[KMGT]iB) of which (?P<free>[\d.]+) (?P<free_unit>[KMGT]iB|bytes) is free\.[^\n]{0,400}?this process has (?P<own>[\d.]+) (?P<own_unit>[KMGT]iB|bytes) memory in use"
}

pattern! {
    /// TensorFlow as it starts, before it has any: `totalMemory: 7.92GiB freeMemory: 190.31MiB`, and up
    /// to 1.3 in two lines, `Total memory: 7.92GiB`, `Free memory: 190.31MiB`.
    AT_START = r"(?i)\btotal ?memory: (?P<total>[\d.]+)(?P<total_unit>[KMGT]iB)\s+free ?memory: (?P<free>[\d.]+)(?P<free_unit>[KMGT]iB)"
}

pattern! {
    /// How its last line, or the only one, ends up.
    FREE = r"(?i)\bfree ?memory: "
}

/// The lines that TensorFlow writes, of which the second belongs to the first.
pub(super) fn at_start(item: &RawItem, text: &str, facts: &mut Facts) {
    if facts.share.memory_account.is_some()
        || !(text.contains("Memory: ") || text.contains("memory: "))
    {
        return;
    }
    let mut before = "";
    for (number, line) in crate::parse::numbered(text) {
        let line = super::bounded(line);
        if matches(&FREE, line) {
            let both = format!("{before} {line}");
            if let Some(found) = captures(&AT_START, &both) {
                enter(&found, &Line { item, number, text: line }, facts);
                return;
            }
        }
        before = line;
    }
}

pub(super) fn read(line: &Line<'_>, facts: &mut Facts) {
    if facts.share.memory_account.is_some() || !line.has("total capacity") {
        return;
    }
    let found = [&OLDER, &NEWER].into_iter().find_map(|pattern| captures(pattern, line.text));
    if let Some(found) = found {
        enter(&found, line, facts);
    }
}

fn enter(found: &Captures<'_>, line: &Line<'_>, facts: &mut Facts) {
    let mib = |name: &str| {
        let number: f64 = found.name(name)?.as_str().parse().ok()?;
        let factor = match found.name(&format!("{name}_unit"))?.as_str() {
            "bytes" => 1.0 / 1_048_576.0,
            "KiB" => 1.0 / 1024.0,
            "MiB" => 1.0,
            "GiB" => 1024.0,
            _ => 1_048_576.0,
        };
        Some(number * factor)
    };
    if let (Some(total_mib), Some(free_mib)) = (mib("total"), mib("free")) {
        let own_mib = mib("own").unwrap_or(0.0);
        let account = MemoryAccount { total_mib, free_mib, own_mib };
        facts.mentions_gpu = true;
        facts.share.memory_account = Some(Seen::new(account, line.origin()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::loose::lines_of;

    #[test]
    fn both_wordings() {
        assert!([&OLDER, &NEWER, &AT_START, &FREE].iter().all(|pattern| pattern.is_some()));
        let others = |text: &str| {
            let account = lines_of(text).share.memory_account;
            account.map(|seen| seen.value.others_mib().round())
        };
        let older = "CUDA out of memory. Tried to allocate 1.63 GiB (GPU 0; 44.50 GiB total capacity; 27.91 GiB already allocated; 512.00 MiB free; 28.00 GiB reserved in total by PyTorch)";
        assert_eq!(others(older), Some(16384.0));
        let newer = "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 24.00 GiB of which 0 bytes is free. Process 12 has 9.50 GiB memory in use. Including non-PyTorch memory, this process has 14.00 GiB memory in use.";
        assert_eq!(others(newer), Some(10240.0));
        let older = "Total memory: 8.00GiB\nFree memory: 512.00MiB\n";
        let newer = "name: X major: 6\ntotalMemory: 8.00GiB freeMemory: 512.00MiB\n";
        for text in [older, newer] {
            assert_eq!(others(text), Some(7680.0), "{text}");
        }
        assert_eq!(others("44.50 GiB total capacity; free"), None);
    }
}
