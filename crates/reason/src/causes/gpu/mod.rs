//! Causes in the GPU itself.

pub(super) mod memory_fault;
pub(super) mod needs_reset;
pub(super) mod power_cable;
pub(super) mod vbios;
pub(super) mod xid;
