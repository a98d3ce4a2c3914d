//! NV_STATUS, the resource manager's own codes. They stand in the status field of a request's
//! parameters, while the ioctl itself returns 0.
//!
//! Table `nv_status`: `nvstatuscodes.h` of NVIDIA/open-gpu-kernel-modules.

use crate::table::Row;
use crate::tables::NV_STATUS;

/// One status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NvStatus {
    /// The number.
    pub code: u32,
    /// The name, such as `NV_ERR_GPU_IS_LOST`.
    pub name: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// What it points to when cuInit meets it. May be empty.
    pub hint: &'static str,
    /// Since when it is known, by driver branch.
    pub since: &'static str,
}

impl NvStatus {
    fn of(row: Row) -> NvStatus {
        NvStatus {
            code: row.number_u32("value").unwrap_or(u32::MAX),
            name: row.text("name"),
            meaning: row.text("meaning"),
            hint: row.text("hint_in_cuda_init_context"),
            since: row.text("since"),
        }
    }
}

/// The status of that number.
pub fn by_code(code: u32) -> Option<NvStatus> {
    NV_STATUS.numbered("value", code.into()).next().map(NvStatus::of)
}

/// The status of that name, case aside.
pub fn by_name(name: &str) -> Option<NvStatus> {
    NV_STATUS.find("name", name).map(NvStatus::of)
}

/// All statuses, by number.
pub fn all() -> impl Iterator<Item = NvStatus> {
    NV_STATUS.rows().map(NvStatus::of)
}
