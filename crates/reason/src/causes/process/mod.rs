//! Causes in the process: its environment, limits and history.

pub(super) mod fork_after_init;
pub(super) mod visible_devices;
