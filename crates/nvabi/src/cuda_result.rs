//! CUresult, the codes of the CUDA driver API. The runtime's codes are the same numbers where
//! both know them; [`crate::error_text`] has those that only the runtime knows.
//!
//! Table `cuda_results`: names through cudart and libcuda of several releases, causes measured or
//! from public reports.

use crate::table::Row;
use crate::tables::CUDA_RESULTS;

/// One code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CudaResult {
    /// The number.
    pub code: i64,
    /// The name in `cuda.h`, such as `CUDA_ERROR_SYSTEM_NOT_READY`.
    pub name: &'static str,
    /// Since when it is known: `<=535` by driver branch, `>12.9,<=13.5` by CUDA version.
    pub since: &'static str,
    /// What causes it in practice, what concerns initialisation first. May be empty.
    pub causes: &'static str,
}

impl CudaResult {
    fn of(row: Row) -> CudaResult {
        CudaResult {
            code: row.number("value").and_then(|code| i64::try_from(code).ok()).unwrap_or(-1),
            name: row.text("name"),
            since: row.text("known_since"),
            causes: row.text("common_real_world_causes"),
        }
    }
}

/// The code of that number.
pub fn by_code(code: i64) -> Option<CudaResult> {
    CUDA_RESULTS.numbered("value", u64::try_from(code).ok()?).next().map(CudaResult::of)
}

/// The code of that name, case aside.
pub fn by_name(name: &str) -> Option<CudaResult> {
    CUDA_RESULTS.find("name", name).map(CudaResult::of)
}

/// All codes, by number.
pub fn all() -> impl Iterator<Item = CudaResult> {
    CUDA_RESULTS.rows().map(CudaResult::of)
}
