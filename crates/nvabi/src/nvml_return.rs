//! nvmlReturn_t, the codes of the management library.
//!
//! Table `nvml_returns`: `nvml.h` as carried by nvidia-ml-py; causes measured with libnvidia-ml
//! 535, 550 and 555 where they say so.

use crate::table::Row;
use crate::tables::NVML_RETURNS;

/// One code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NvmlReturn {
    /// The number.
    pub code: i64,
    /// The name in `nvml.h`, such as `NVML_ERROR_DRIVER_NOT_LOADED`.
    pub name: &'static str,
    /// What causes it.
    pub causes: &'static str,
}

impl NvmlReturn {
    fn of(row: Row) -> NvmlReturn {
        NvmlReturn {
            code: row.number("value").and_then(|code| i64::try_from(code).ok()).unwrap_or(-1),
            name: row.text("name"),
            causes: row.text("cause_notes"),
        }
    }
}

/// The code of that number.
pub fn by_code(code: i64) -> Option<NvmlReturn> {
    NVML_RETURNS.numbered("value", u64::try_from(code).ok()?).next().map(NvmlReturn::of)
}

/// The code of that name, case aside.
pub fn by_name(name: &str) -> Option<NvmlReturn> {
    NVML_RETURNS.find("name", name).map(NvmlReturn::of)
}

/// All codes, by number.
pub fn all() -> impl Iterator<Item = NvmlReturn> {
    NVML_RETURNS.rows().map(NvmlReturn::of)
}
