//! What PyTorch tells of a GPU's memory when it gets none.

use super::Line;
use super::pattern::{captures, pattern};
use crate::model::Facts;
use crate::model::share::MemoryAccount;
use crate::observed::Seen;

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

pub(super) fn read(line: &Line<'_>, facts: &mut Facts) {
    if facts.share.memory_account.is_some() || !line.has("total capacity") {
        return;
    }
    let found = [&OLDER, &NEWER].into_iter().find_map(|pattern| captures(pattern, line.text));
    let Some(found) = found else { return };
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
    if let (Some(total_mib), Some(free_mib), Some(own_mib)) =
        (mib("total"), mib("free"), mib("own"))
    {
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
        assert!(OLDER.is_some() && NEWER.is_some());
        let others = |text: &str| {
            let account = lines_of(text).share.memory_account;
            account.map(|seen| seen.value.others_mib().round())
        };
        let older = "CUDA out of memory. Tried to allocate 1.63 GiB (GPU 0; 44.50 GiB total capacity; 27.91 GiB already allocated; 512.00 MiB free; 28.00 GiB reserved in total by PyTorch)";
        assert_eq!(others(older), Some(16384.0));
        let newer = "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 24.00 GiB of which 0 bytes is free. Process 12 has 9.50 GiB memory in use. Including non-PyTorch memory, this process has 14.00 GiB memory in use.";
        assert_eq!(others(newer), Some(10240.0));
        assert_eq!(others("44.50 GiB total capacity; free"), None);
    }
}
