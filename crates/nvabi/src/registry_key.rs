//! Registry keys: the words of the module parameter NVreg_RegistryDwords.
//!
//! Table `rm_registry_keys`: `nvrm_registry.h` of NVIDIA/open-gpu-kernel-modules.

use crate::table::Row;
use crate::tables::RM_REGISTRY_KEYS;

/// One key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegistryKey {
    /// The key as it is written in NVreg_RegistryDwords.
    pub key: &'static str,
    /// Its name in the header.
    pub define: &'static str,
    /// Its values and bit fields, such as `DISABLE=0x00000000; ENABLE=0x00000001`. May be empty.
    pub values: &'static str,
}

impl RegistryKey {
    fn of(row: Row) -> RegistryKey {
        RegistryKey {
            key: row.text("key"),
            define: row.text("define"),
            values: row.text("symbolic_values_or_bitfields"),
        }
    }
}

/// The key of that name or that definition, case aside.
pub fn by_name(name: &str) -> Option<RegistryKey> {
    let found = RM_REGISTRY_KEYS.find("key", name);
    found.or_else(|| RM_REGISTRY_KEYS.find("define", name)).map(RegistryKey::of)
}

/// All keys, by name.
pub fn all() -> impl Iterator<Item = RegistryKey> {
    RM_REGISTRY_KEYS.rows().map(RegistryKey::of)
}
