//! Causes in NVSwitch and the NVLink fabric.

pub(super) mod manager_missing;
