//! Causes in nvidia_uvm.

pub(super) mod hmm;
pub(super) mod not_loaded;
