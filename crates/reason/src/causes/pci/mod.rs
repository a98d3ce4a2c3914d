//! Causes on the PCI bus.

pub(super) mod no_gpu;
