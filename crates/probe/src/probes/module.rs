//! The module's own version and its list of GPUs, asked on /dev/nvidiactl without any library.

use std::fmt::Write as _;
use std::fs::File;

use super::Options;
use super::nodes::{Majors, UNKNOWN_MAJORS, open as open_node};
use crate::child::report::{Failure, Report};
use crate::sys::errno_of;
use crate::sys::nvidiactl::{
    Card, RM_REQUESTS, UVM_REQUESTS, cards, module_version, reaches_driver,
};

const CONTROL: &str = "/dev/nvidiactl";
const UVM: &str = "/dev/nvidia-uvm";

/// Asks both. Neither takes the driver's lock nor initializes a GPU, so they answer also while
/// another process hangs in the driver.
pub(super) fn run(report: &mut Report, _: &Options) {
    let objection = Majors::read()
        .map_or_else(|| Some(UNKNOWN_MAJORS.to_owned()), |majors| majors.objection(CONTROL));
    if let Some(reason) = objection {
        report.not_called("open", CONTROL, &reason);
        return;
    }
    let open = || open_node(CONTROL).map_err(|error| errno_of(&error));
    let Ok(control) = report.system_call("open", Some(CONTROL), open) else { return };
    let failure = |errno: facts::Errno| Failure { code: i64::from(errno.0), text: None };
    let version = || module_version(&control).map_err(failure);
    let _ = report.call("version", Some(CONTROL), version, |text| Some(text.clone()));
    let list = || cards(&control).map_err(failure);
    let found = report.call("card-info", Some(CONTROL), list, |cards| Some(addresses(cards)));
    for card in found.unwrap_or_default() {
        report.note("card", describe(&card));
    }
    reach(report, CONTROL, &control, &RM_REQUESTS);
    if Majors::read().is_some_and(|majors| majors.objection(UVM).is_none())
        && let Ok(uvm) = open_node(UVM)
    {
        reach(report, UVM, &uvm, &UVM_REQUESTS);
    }
}

/// Whether these requests reach the driver behind a node, or are refused before it.
fn reach(report: &mut Report, path: &str, node: &File, requests: &[(&str, u32)]) {
    for (name, request) in requests {
        let on = format!("{path} {name}");
        let _ = report.system_call("reach", Some(&on), || reaches_driver(node, *request));
    }
}

/// PCI addresses with commas between.
fn addresses(cards: &[Card]) -> String {
    cards.iter().map(address).collect::<Vec<_>>().join(",")
}

fn address(card: &Card) -> String {
    format!("{:04x}:{:02x}:{:02x}.{:x}", card.domain, card.bus, card.slot, card.function)
}

fn describe(card: &Card) -> String {
    let mut text = format!("{} {:04x}:{:04x}", address(card), card.vendor, card.device);
    let (registers, memory) = (card.registers, card.memory);
    // Writing to a String cannot fail.
    let _ = write!(
        text,
        " minor {} gpu-id {:#x} interrupt {} bar0 {:#x}+{:#x} bar1 {:#x}+{:#x}",
        card.minor, card.gpu_id, card.interrupt, registers.0, registers.1, memory.0, memory.1
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_are_listed_by_address() {
        let card = Card {
            domain: 0,
            bus: 0x41,
            slot: 0,
            function: 0,
            vendor: 0x10de,
            device: 0x2bb5,
            gpu_id: 0x4100,
            interrupt: 11,
            registers: (0xf000_0000, 0x0400_0000),
            memory: (0x38_0000_0000, 0x20_0000_0000),
            minor: 1,
        };
        let other = Card { bus: 0xc1, ..card };
        assert_eq!(addresses(&[card, other]), "0000:41:00.0,0000:c1:00.0");
        assert_eq!(
            describe(&card),
            "0000:41:00.0 10de:2bb5 minor 1 gpu-id 0x4100 interrupt 11 \
             bar0 0xf0000000+0x4000000 bar1 0x3800000000+0x2000000000"
        );
    }
}
