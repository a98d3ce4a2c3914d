//! Causes in nvidia_uvm.

pub(super) mod hmm;
