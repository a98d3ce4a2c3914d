//! What shows that a register window of a GPU has no address, for bare metal and for guests.

use facts::model::log::LogEvent;
use facts::{Facts, Origin};

use crate::gpu_state;
use crate::readings;

/// The driver's verdict.
pub(crate) const REFUSED: &str = "the driver calls a window of the GPU invalid";
/// The kernel's.
pub(crate) const NO_SPACE: &str = "the kernel found no room for a window of the GPU";
/// A listing that speaks against.
pub(crate) const PLACED: &str = "lspci shows an address for every window that it lists";

/// The evidence.
pub(crate) struct Bars {
    /// `BAR1 is 0M @ 0x0`.
    pub zero_line: Option<(String, Origin)>,
    /// `This PCI I/O region assigned to your NVIDIA device is invalid`.
    pub refused: Option<Origin>,
    /// A listing of the bus with a window that has a size and no address.
    pub listed: Option<(String, Origin)>,
    /// `BAR 1: can't assign; no space` about a GPU, where no later line places the same window.
    pub no_space: Option<Origin>,
    /// A listing in which every window has an address.
    pub placed: Option<Origin>,
}

impl Bars {
    /// What the facts tell.
    pub(crate) fn of(facts: &Facts) -> Bars {
        let zero =
            |event: &&LogEvent| event.get("addr") == Some("0x0") || event.get("mb") == Some("0");
        let zero_line = facts.log.with("BAR_INVALID_LINE").find(zero).map(|event| {
            let bar = event.get("bar").unwrap_or("?");
            let (size, address) =
                (event.get("mb").unwrap_or("?"), event.get("addr").unwrap_or("?"));
            (
                format!("the driver finds BAR{bar} with {size} MiB at {address}"),
                event.origin.clone(),
            )
        });
        let listed = gpu_state::registers_without_address(facts).into_iter().next();
        let events = &facts.log.events;
        let no_space = events.iter().enumerate().find(|(at, event)| {
            let names_gpu =
                event.signature == "PCI_BAR_NOASSIGN" && gpu_state::is_about_gpu(facts, event);
            names_gpu
                && matches!(event.get("bar"), Some("0" | "1" | "2" | "3"))
                && !events.iter().skip(*at).any(|later| places(later, event))
        });
        Bars {
            zero_line,
            refused: readings::logged(facts, &["BAR_INVALID", "BAR_RESIZE_FATAL"]).cloned(),
            listed: listed.map(|(_, index, origin)| {
                (format!("BAR{index} of the GPU has a size and no address"), origin)
            }),
            no_space: no_space.map(|(_, event)| event.origin.clone()),
            placed: gpu_state::registers_all_placed(facts),
        }
    }
}

/// Whether a later line says that the same window was placed after all: the kernel first tries with
/// what the firmware left, then anew.
fn places(later: &LogEvent, failed: &LogEvent) -> bool {
    later.signature == "PCI_BAR_ASSIGNED"
        && ["bdf", "bar"].iter().all(|name| later.get(name) == failed.get(name))
}
