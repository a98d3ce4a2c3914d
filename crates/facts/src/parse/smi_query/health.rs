//! The entries of `nvidia-smi -q` that tell of a GPU's condition.

use crate::model::health::GpuHealth;

/// Enters one entry. Sums of memory errors grow by each of their parts.
pub(super) fn fill(path: &str, value: &str, health: &mut GpuHealth) {
    let number = || value.split_whitespace().next()?.parse::<u64>().ok();
    let below = |heading: &str, key: &str| {
        path.strip_suffix(key).is_some_and(|rest| rest.trim_end_matches('/').ends_with(heading))
    };
    if path.ends_with("Remapping Failure Occurred") {
        health.remap_failed = yes(value);
    } else if below("Remapped Rows", "Pending") || path.ends_with("Pending Page Blacklist") {
        health.remap_pending = yes(value).or(health.remap_pending);
    } else if below("Remapped Rows", "Uncorrectable Error") {
        health.remapped_uncorrectable = number();
    } else if path.ends_with("Reset Required") {
        health.reset_required = yes(value);
    } else if path.ends_with("Performance State") {
        health.performance_state = state(value);
    } else if below("Utilization", "GPU") || below("Utilization", "Gpu") {
        health.utilization_percent = number().and_then(|percent| u8::try_from(percent).ok());
    } else if path.contains("Uncorrectable") || path.ends_with("Double Bit/Total") {
        errors(path, number(), health);
    } else {
        link(path, value, number(), health);
    }
}

/// `ECC Errors/Volatile/DRAM Uncorrectable`, and the sum of branches before 418.
fn errors(path: &str, count: Option<u64>, health: &mut GpuHealth) {
    let sum = if path.contains("Volatile") {
        &mut health.uncorrectable_volatile
    } else if path.contains("Aggregate") {
        &mut health.uncorrectable_aggregate
    } else {
        return;
    };
    if let Some(count) = count {
        *sum = Some(sum.unwrap_or(0).saturating_add(count));
    }
}

fn link(path: &str, value: &str, number: Option<u64>, health: &mut GpuHealth) {
    let small = || number.and_then(|number| u8::try_from(number).ok());
    let lanes = || value.trim_end_matches('x').trim().parse().ok();
    let link = &mut health.link;
    if path.ends_with("PCIe Generation/Current") {
        link.generation = small();
    } else if path.ends_with("PCIe Generation/Max") {
        link.generation_max = small();
    } else if path.ends_with("Link Width/Current") {
        link.width = lanes();
    } else if path.ends_with("Link Width/Max") {
        link.width_max = lanes();
    } else if path.ends_with("Replays Since Reset") || path.ends_with("Replays since reset") {
        link.replays = number;
    }
}

fn yes(value: &str) -> Option<bool> {
    match value {
        "Yes" => Some(true),
        "No" => Some(false),
        _ => None,
    }
}

/// `P8`.
fn state(value: &str) -> Option<u8> {
    value.strip_prefix('P')?.parse().ok().filter(|state| *state <= 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_by_their_paths() {
        let mut health = GpuHealth::default();
        for (path, value) in [
            ("Remapped Rows/Pending", "Yes"),
            ("Remapped Rows/Remapping Failure Occurred", "No"),
            ("Remapped Rows/Uncorrectable Error", "2"),
            ("ECC Errors/Volatile/SRAM Uncorrectable Parity", "1"),
            ("ECC Errors/Volatile/DRAM Uncorrectable", "3"),
            ("ECC Errors/Aggregate/DRAM Uncorrectable", "9"),
            ("PCI/GPU Link Info/PCIe Generation/Current", "1"),
            ("PCI/GPU Link Info/PCIe Generation/Max", "4"),
            ("PCI/GPU Link Info/Link Width/Current", "4x"),
            ("PCI/GPU Link Info/Link Width/Max", "16x"),
            ("Performance State", "P0"),
            ("Utilization/GPU", "97 %"),
            ("MIG Mode/Pending", "Disabled"),
        ] {
            fill(path, value, &mut health);
        }
        assert_eq!(health.remap_pending, Some(true));
        assert_eq!(health.remap_failed, Some(false));
        assert_eq!(health.remapped_uncorrectable, Some(2));
        assert_eq!(health.uncorrectable_volatile, Some(4));
        assert_eq!(health.uncorrectable_aggregate, Some(9));
        assert_eq!((health.link.generation, health.link.generation_max), (Some(1), Some(4)));
        assert_eq!((health.link.width, health.link.width_max), (Some(4), Some(16)));
        assert_eq!(health.performance_state, Some(0));
        assert_eq!(health.utilization_percent, Some(97));
    }
}
