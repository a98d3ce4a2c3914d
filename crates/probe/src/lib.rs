//! Everything that touches a machine.
//!
//! A [`source`] fills a [`facts::raw::RawSet`]. On the running machine each look is taken by a
//! *probe*, which runs in a child of this same binary (`gpudx __probe NAME`, see [`child`]) under
//! the eyes of a [`supervise::Supervisor`] that never waits without a limit. Rules that hold here:
//!
//! * The parent never loads a driver library, opens a driver's node or reads a driver's file.
//! * What a child is about to do is written before it is done, so that a hang has a name.
//! * A child that asks the driver first gives up what the driver libraries would change the
//!   machine with; see `child::guard`.
//! * Unsafe code is in `sys` and nowhere else.

pub mod child;
mod probes;
mod proc_task;
pub mod source;
pub mod supervise;
mod sys;
pub mod trace;

/// Peak resident memory, in bytes, of the largest process among the ended and awaited children of
/// this process, for measuring.
pub fn peak_memory_of_children() -> Option<u64> {
    sys::process::peak_memory_of_children()
}
