//! Faults: where one is injected and what it does.

use core::ffi::c_int;
use std::time::Duration;

use crate::memory::Memory;
use crate::settings::settings;
use crate::stuck;

/// A call at which a fault can be injected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Site {
    /// Opening the node at this path.
    Open(String),
    /// A request of /dev/nvidia-uvm.
    Uvm(u32),
    /// An RM control command.
    Control(u32),
    /// Allocation of an object of this RM class.
    Alloc(u32),
    /// Any other ioctl number of the control and GPU nodes.
    Escape(u32),
}

/// What the fault does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// The call reports this `NV_STATUS`.
    Status(u32),
    /// The call itself fails with this errno.
    Errno(c_int),
    /// The call sleeps for ever.
    Hang,
    /// The call burns the CPU for ever.
    Spin,
    /// The call writes to this path first.
    DState(String),
    /// The call is answered late.
    Slow(Duration),
    /// The process dies of SIGSEGV.
    Crash,
    /// The first 32 bits of the answer are overwritten.
    Value(u32),
    /// The call tells this version.
    Version(String),
}

/// What is left to be done at a site once waiting, hanging and crashing are over with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Answer as usual.
    Usual,
    /// Report this `NV_STATUS` and leave the parameters alone.
    Status(u32),
    /// Fail with this errno.
    Errno(c_int),
}

/// Plays the fault set for `site`, if any; does not return when it hangs or crashes.
pub(crate) fn strike(site: &Site) -> Effect {
    let mut effect = Effect::Usual;
    for action in actions(site) {
        match action {
            Action::Status(status) => effect = Effect::Status(*status),
            Action::Errno(errno) => effect = Effect::Errno(*errno),
            Action::Hang => stuck::sleep_forever(),
            Action::Spin => stuck::spin_forever(),
            Action::DState(path) => stuck::write_to(path),
            Action::Slow(wait) => std::thread::sleep(*wait),
            Action::Crash => stuck::crash(),
            Action::Value(_) | Action::Version(_) => {}
        }
    }
    effect
}

/// The version that `site` is to tell in place of the module's, if a fault says so.
pub(crate) fn version_at(site: &Site) -> Option<&'static str> {
    actions(site).find_map(|action| match action {
        Action::Version(version) => Some(version.as_str()),
        _ => None,
    })
}

/// Overwrites the first number of an answer if a fault says so.
pub(crate) fn overwrite(site: &Site, parameters: Memory) {
    for action in actions(site) {
        if let Action::Value(value) = action {
            parameters.set_u32(0, *value);
        }
    }
}

fn actions(site: &Site) -> impl Iterator<Item = &'static Action> {
    settings().faults.iter().filter(move |fault| fault.site == *site).map(|fault| &fault.action)
}
