//! Requests to /dev/nvidia-uvm: plain numbers with no encoding; each has its NV_STATUS at its own
//! place in the parameters.
//!
//! Table `uvm_ioctls`: `uvm_ioctl.h` of the 535 to 595 tags of NVIDIA/open-gpu-kernel-modules.

use crate::number;
use crate::table::Row;
use crate::tables::UVM_IOCTLS;

/// One request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UvmRequest {
    /// The number.
    pub request: u32,
    /// The name, such as `UVM_REGISTER_GPU`.
    pub name: &'static str,
    /// The parameter structure. May be empty.
    pub parameters: &'static str,
    /// Whether UVM_INITIALIZE must have succeeded on the same descriptor before.
    pub needs_initialize: bool,
    /// Whether the 595 module answers it at all.
    pub routed: bool,
    /// The branches that know it, such as `535-595`.
    pub branches: &'static str,
    sizes: &'static str,
    status_offsets: &'static str,
}

impl UvmRequest {
    fn of(row: Row) -> UvmRequest {
        UvmRequest {
            request: row.number_u32("request_dec").unwrap_or(u32::MAX),
            name: row.text("name"),
            parameters: row.text("params_struct"),
            needs_initialize: row.text("needs_UVM_INITIALIZE_first") == "yes",
            routed: row.text("routed_in_595") == "yes",
            branches: row.text("branches"),
            sizes: row.text("size_by_branch"),
            status_offsets: row.text("rmStatus_offset_by_branch"),
        }
    }

    /// The size of the parameters in a driver branch, in bytes. Branches that were not measured
    /// have a value only when the measured ones on either side agree.
    pub fn size_in(&self, branch: u32) -> Option<u32> {
        number::value_for_branch(self.sizes, branch)
    }

    /// Where in the parameters the NV_STATUS stands in a driver branch, in bytes.
    pub fn status_offset(&self, branch: u32) -> Option<u32> {
        number::value_for_branch(self.status_offsets, branch)
    }
}

/// The request of that number.
pub fn by_request(request: u32) -> Option<UvmRequest> {
    UVM_IOCTLS.numbered("request_dec", request.into()).next().map(UvmRequest::of)
}

/// The request of that name, case aside.
pub fn by_name(name: &str) -> Option<UvmRequest> {
    UVM_IOCTLS.find("name", name).map(UvmRequest::of)
}

/// All requests, by number.
pub fn all() -> impl Iterator<Item = UvmRequest> {
    UVM_IOCTLS.rows().map(UvmRequest::of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_offsets_follow_the_branch() {
        let register = by_request(0x25).unwrap();
        assert_eq!(register.name, "UVM_REGISTER_GPU");
        assert!(register.needs_initialize);
        assert_eq!((register.size_in(590), register.status_offset(590)), (Some(40), Some(36)));
        let free = by_name("uvm_free").unwrap();
        assert_eq!((free.status_offset(580), free.status_offset(595)), (Some(16), Some(8)));
        assert_eq!(free.status_offset(590), None, "it changed between 580 and 595");
        let initialize = by_request(0x3000_0001).unwrap();
        assert!(!initialize.needs_initialize);
        assert_eq!(initialize.status_offset(570), Some(8));
    }
}
