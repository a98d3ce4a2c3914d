//! Calls between the kernel module and the GSP firmware: functions that the module calls, events
//! that the firmware sends. Xid 119 names a function by number.
//!
//! Table `gsp_rpc_functions`: `rpc_global_enums.h` of NVIDIA/open-gpu-kernel-modules. Some numbers
//! changed their name between branches.

use crate::number;
use crate::table::Row;
use crate::tables::GSP_RPC_FUNCTIONS;

/// One function or event, as one set of branches numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GspRpc {
    /// The number.
    pub number: u32,
    /// The name, such as `GSP_RM_CONTROL`.
    pub name: &'static str,
    /// The branches in which the number has this name, separated by commas.
    pub branches: &'static str,
}

impl GspRpc {
    fn of(row: Row) -> GspRpc {
        GspRpc {
            number: row.number_u32("number").unwrap_or(u32::MAX),
            name: row.text("name"),
            branches: row.text("branches_seen"),
        }
    }
}

fn named(kind: &'static str, wanted: u32) -> impl Iterator<Item = GspRpc> {
    let rows = GSP_RPC_FUNCTIONS.rows().filter(move |row| row.text("kind") == kind);
    rows.map(GspRpc::of).filter(move |rpc| rpc.number == wanted)
}

fn newest(rpcs: impl Iterator<Item = GspRpc>) -> Option<GspRpc> {
    rpcs.max_by_key(|rpc| number::newest_branch(rpc.branches))
}

fn in_branch(kind: &'static str, wanted: u32, branch: u32) -> Option<GspRpc> {
    named(kind, wanted).find(|rpc| number::list_has_branch(rpc.branches, branch))
}

/// The function of that number, by the newest branch that has it.
pub fn function(number: u32) -> Option<GspRpc> {
    newest(named("function", number))
}

/// The function of that number in a branch whose sources were read.
pub fn function_in(number: u32, branch: u32) -> Option<GspRpc> {
    in_branch("function", number, branch)
}

/// The event of that number, by the newest branch that has it.
pub fn event(number: u32) -> Option<GspRpc> {
    newest(named("event", number))
}

/// The event of that number in a branch whose sources were read.
pub fn event_in(number: u32, branch: u32) -> Option<GspRpc> {
    in_branch("event", number, branch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_xid_119() {
        assert_eq!(function(76).map(|rpc| rpc.name), Some("GSP_RM_CONTROL"));
        assert_eq!(function(103).map(|rpc| rpc.name), Some("GSP_RM_ALLOC"));
        assert_eq!(event(4097).map(|rpc| rpc.name), Some("GSP_INIT_DONE"));
        assert_eq!((function(4097), event(76)), (None, None));
    }

    #[test]
    fn a_renamed_number_goes_by_the_newest_branch() {
        assert_eq!(function(200).map(|rpc| rpc.name), Some("INVALIDATE_TLB"));
        assert_eq!(function_in(200, 525).map(|rpc| rpc.name), Some("NUM_FUNCTIONS"));
        assert_eq!(event(4124).map(|rpc| rpc.name), Some("GSP_LOCKDOWN_NOTICE"));
        assert_eq!(event_in(4124, 535).map(|rpc| rpc.name), Some("NVLINK_FAULT_UP"));
    }
}
