//! Causes in the machine around the GPU.

pub(super) mod cc_not_ready;
pub(super) mod guest_mmio_window;
pub(super) mod vfio_bound;
pub(super) mod vfio_unbind_stuck;
pub(super) mod vgpu_unlicensed;
pub(super) mod vgpu_version_skew;
