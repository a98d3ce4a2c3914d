//! Enumerations of NVML that diagnosis meets: topology levels, peer-to-peer status, fabric state,
//! recovery action.
//!
//! Table `nvml_enums`: `nvml.h` as carried by nvidia-ml-py.

use crate::table::Row;
use crate::tables::NVML_ENUMS;

/// One value of an enumeration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NvmlEnumValue {
    /// The enumeration, such as `nvmlGpuFabricState`.
    pub enumeration: &'static str,
    /// The number.
    pub value: u32,
    /// The value's name.
    pub name: &'static str,
    /// What it means.
    pub meaning: &'static str,
}

impl NvmlEnumValue {
    fn of(row: Row) -> NvmlEnumValue {
        NvmlEnumValue {
            enumeration: row.text("enum"),
            value: row.number_u32("value").unwrap_or(u32::MAX),
            name: row.text("name"),
            meaning: row.text("meaning"),
        }
    }
}

/// The value of that number in an enumeration, case aside.
pub fn by_value(enumeration: &str, value: u32) -> Option<NvmlEnumValue> {
    all().find(|row| row.enumeration.eq_ignore_ascii_case(enumeration) && row.value == value)
}

/// All values, by enumeration and number.
pub fn all() -> impl Iterator<Item = NvmlEnumValue> {
    NVML_ENUMS.rows().map(NvmlEnumValue::of)
}
