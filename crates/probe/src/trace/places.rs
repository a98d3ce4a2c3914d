//! Where the driver writes its statuses, remembered: the tables of structures are long, and a
//! program makes few kinds of calls many times.

use std::collections::BTreeMap;

use facts::parse::strace::driver_call::{self, Speaks};

use super::tasks::Ioctl;

/// Most kinds of calls that are remembered; the requests of a hostile program have no end.
const KINDS_LIMIT: usize = 1024;

/// What tells one kind of call from another: who answers, the request, and the escape that it
/// carries, if it carries one.
type Kind = (Speaks, u32, Option<u32>);

/// The places of the statuses in one branch of the driver.
#[derive(Debug, Default)]
pub(super) struct StatusPlaces {
    branch: Option<u32>,
    offsets: BTreeMap<Kind, Option<usize>>,
}

impl StatusPlaces {
    /// Where in the parameters of a call the status will stand, in bytes; `None` where that is not
    /// known, for the branch or at all.
    pub(super) fn offset(&mut self, ioctl: &Ioctl, branch: Option<u32>) -> Option<usize> {
        if self.branch != branch || self.offsets.len() >= KINDS_LIMIT {
            *self = StatusPlaces { branch, offsets: BTreeMap::new() };
        }
        let carried = ioctl.asked.carried.map(|_| ioctl.asked.number);
        let look_up =
            || driver_call::status_offset(&ioctl.node, ioctl.request, &ioctl.asked, branch);
        let kind = (ioctl.node.speaks(), ioctl.request, carried);
        *self.offsets.entry(kind).or_insert_with(look_up)
    }
}

#[cfg(test)]
mod tests {
    use facts::parse::strace::driver_call::Node;

    use super::*;

    const UVM_FREE: u32 = 0x22;

    fn call(request: u32, path: &str) -> Ioctl {
        let node = Node::of(path).unwrap();
        let asked = driver_call::asked(&node, request, &[], &mut |_, _| None);
        Ioctl { node, request, asked, address: 0 }
    }

    #[test]
    fn a_place_is_that_of_the_call_and_the_branch() {
        let mut places = StatusPlaces::default();
        let free = call(UVM_FREE, "/dev/nvidia-uvm");
        let elsewhere = call(UVM_FREE, "/dev/nvidiactl");
        for _ in 0..2 {
            assert_eq!(places.offset(&free, Some(580)), Some(16));
            assert_eq!(places.offset(&elsewhere, Some(580)), None);
            assert_eq!(places.offset(&free, Some(595)), Some(8), "of the newer branch");
        }
    }

    #[test]
    fn a_program_of_many_requests_does_not_fill_the_memory() {
        let mut places = StatusPlaces::default();
        for request in 0..3000 {
            places.offset(&call(request, "/dev/nvidia-uvm"), Some(580));
            assert!(places.offsets.len() <= KINDS_LIMIT);
        }
    }
}
