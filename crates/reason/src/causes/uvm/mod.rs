//! Causes in nvidia_uvm.

pub(super) mod fatal_latched;
pub(super) mod hmm;
pub(super) mod hmm_crash;
pub(super) mod hmm_kaslr;
pub(super) mod mixed_families;
pub(super) mod not_loaded;
pub(super) mod stale_after_suspend;
