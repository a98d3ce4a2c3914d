//! Causes on the PCI bus.

use facts::model::log::LogEvent;
use facts::{Facts, Origin};

use crate::gpu_state;

pub(super) mod bar_unassigned;
pub(super) mod fell_off_bus;
pub(super) mod link_degraded;
pub(super) mod no_gpu;
pub(super) mod power_state;

/// Lines of a GPU that is off the bus: the driver's, and a report's own words where none is quoted.
const OFF_BUS_LINES: [&str; 3] = ["FALLEN_BUS", "FALLEN_BUS_INIT", "FALLEN_BUS_TOLD"];

fn off_bus_statement(event: &LogEvent) -> &'static str {
    if event.signature == "FALLEN_BUS_TOLD" {
        "the input says that the GPU fell off the bus"
    } else {
        "the driver found the GPU fallen off the bus"
    }
}

/// The kernel's lines about a GPU that it cannot bring to D0, with their places in the log.
fn not_woken(facts: &Facts) -> impl Iterator<Item = (usize, &LogEvent)> {
    facts.log.events.iter().enumerate().filter(|(_, event)| {
        let line = event.signature == "PCI_D3COLD"
            || event.signature == "VFIO_D3" && event.text.contains("power state");
        line && gpu_state::is_about_gpu(facts, event)
    })
}

/// The first of them, when it stands before this place in the log.
fn not_woken_before(facts: &Facts, index: usize) -> Option<&Origin> {
    not_woken(facts).find(|(place, _)| *place < index).map(|(_, event)| &event.origin)
}
