//! The lines of one GPU: name and bus address, memory and compute mode, MIG mode.

use crate::model::health::GpuHealth;
use crate::model::nvml::NvmlGpu;
use crate::model::pci::PciAddress;

/// The first line: index, name and persistence mode; bus address and display; ECC errors.
pub(super) fn first_line(cells: &[&str]) -> Option<NvmlGpu> {
    let [left, middle, right @ ..] = cells else {
        return None;
    };
    // The last column counts uncorrectable memory errors; `0`, `Off` and `N/A` are the usual ones.
    let errors = right.first().and_then(|cell| cell.parse().ok());
    let health = GpuHealth { uncorrectable_volatile: errors, ..GpuHealth::default() };
    let (index, rest) = left.split_once(char::is_whitespace)?;
    let index = index.parse().ok()?;
    let (name, persistence) = split_persistence(rest.trim());
    let (address, _) = middle.split_once(char::is_whitespace).unwrap_or((middle, ""));
    let address = PciAddress::parse(address.trim_end_matches("ERR!"));
    // A GPU that does not answer shows `ERR!` or `N/A` where its address should be.
    let plausible = address.is_some() || middle.contains("ERR!") || middle.contains("N/A");
    plausible.then(|| NvmlGpu {
        index: Some(index),
        name: name.filter(|name| !matches!(*name, "ERR!" | "N/A")).map(str::to_owned),
        persistence,
        address,
        health,
        ..NvmlGpu::default()
    })
}

/// The name and the mode behind it: `GeForce GTX 108...  Off`.
fn split_persistence(text: &str) -> (Option<&str>, Option<bool>) {
    let (name, last) = text.rsplit_once(char::is_whitespace).unwrap_or(("", text));
    let persistence = match last {
        "On" => Some(true),
        "Off" => Some(false),
        "ERR!" | "N/A" => None,
        // No mode at all, as in a table of WDDM devices with its own words.
        _ => return (Some(text).filter(|text| !text.is_empty()), None),
    };
    (Some(name.trim()).filter(|name| !name.is_empty()), persistence)
}

/// The lines below it: memory usage in the second cell; compute mode, then MIG mode, in the third.
pub(super) fn next_line(cells: &[&str], gpu: &mut NvmlGpu) {
    let [left, middle, right, ..] = cells else {
        return;
    };
    condition(left, right, gpu);
    if gpu.memory_mib.is_none() && middle.contains('/') {
        gpu.memory_mib = memory(middle);
    }
    if gpu.compute_mode.is_none() {
        gpu.compute_mode = compute_mode(right).map(str::to_owned);
        if gpu.compute_mode.is_some() {
            return;
        }
    }
    if gpu.mig.is_none() {
        gpu.mig = match right.trim_end_matches('*') {
            "Enabled" => Some(true),
            "Disabled" => Some(false),
            _ => None,
        };
    }
}

/// Performance state and utilization of the second line: `N/A   32C    P8   12W / 72W`, `97%`.
fn condition(left: &str, right: &str, gpu: &mut NvmlGpu) {
    let state = |word: &str| word.strip_prefix('P')?.parse().ok().filter(|state| *state <= 15);
    let health = &mut gpu.health;
    if health.performance_state.is_none() {
        health.performance_state = left.split_whitespace().find_map(state);
    }
    if health.utilization_percent.is_none() {
        let percent = right.split_whitespace().next().and_then(|word| word.strip_suffix('%'));
        health.utilization_percent = percent.and_then(|percent| percent.parse().ok());
    }
}

/// `345MiB / 11176MiB`.
fn memory(cell: &str) -> Option<(u64, u64)> {
    let (used, total) = cell.split_once('/')?;
    let mib = |text: &str| text.trim().strip_suffix("MiB")?.trim().parse().ok();
    Some((mib(used)?, mib(total)?))
}

/// The words that the last column uses, and NVML's own for the same.
fn compute_mode(cell: &str) -> Option<&'static str> {
    const MODES: [(&str, &str); 5] = [
        ("Default", "Default"),
        ("E. Process", "Exclusive_Process"),
        ("E. Thread", "Exclusive_Thread"),
        ("Prohibited", "Prohibited"),
        ("Exclusive_Process", "Exclusive_Process"),
    ];
    MODES.iter().find(|(shown, _)| cell.ends_with(shown)).map(|(_, mode)| *mode)
}
