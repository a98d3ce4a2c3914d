//! Compute capabilities that a CUDA toolkit can compile for.
//!
//! Table `cuda_arch_support`: measured with the nvrtc libraries of PyPI.

use crate::number;
use crate::tables::CUDA_ARCH_SUPPORT;

/// The capabilities that the compiler of CUDA `major`.`minor` knows, in order. A minor version
/// that was not measured has those of the nearest older one of its major version.
pub fn compiled_for(major: u32, minor: u32) -> Option<Vec<(u32, u32)>> {
    let row = CUDA_ARCH_SUPPORT.rows().rev().find(|row| {
        number::major_minor(row.text("cuda_version"))
            .is_some_and(|version| version.0 == major && version.1 <= minor)
    })?;
    row.text("compute_capabilities").split(',').map(number::major_minor).collect()
}

/// The first and the last of the measured toolkits, as (major, minor), that compile for a compute
/// capability.
pub fn toolkits_for(capability: (u32, u32)) -> Option<((u32, u32), (u32, u32))> {
    let measured = CUDA_ARCH_SUPPORT.rows().filter_map(|row| {
        let version = number::major_minor(row.text("cuda_version"))?;
        let mut listed = row.text("compute_capabilities").split(',');
        listed.any(|one| number::major_minor(one) == Some(capability)).then_some(version)
    });
    let versions: Vec<(u32, u32)> = measured.collect();
    Some((*versions.iter().min()?, *versions.iter().max()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn toolkits_come_and_go_for_a_capability() {
        assert_eq!(toolkits_for((12, 0)).unwrap().0, (12, 8));
        assert!(toolkits_for((7, 0)).unwrap().1 < (13, 0));
        assert_eq!(toolkits_for((99, 0)), None);
    }

    #[test]
    fn measured_versions_and_those_between() {
        assert!(!compiled_for(12, 6).unwrap().contains(&(12, 0)));
        assert!(compiled_for(12, 8).unwrap().contains(&(12, 0)));
        assert_eq!(compiled_for(12, 7), compiled_for(12, 6));
        assert_eq!(compiled_for(13, 3), compiled_for(13, 2));
        assert!(!compiled_for(13, 0).unwrap().contains(&(7, 0)));
        assert_eq!((compiled_for(11, 7), compiled_for(14, 0)), (None, None));
    }
}
