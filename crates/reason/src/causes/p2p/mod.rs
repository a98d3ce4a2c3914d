//! Causes in traffic between GPUs, and the remedies that they share.

use crate::remedy::{Impact, Place, Remedy};

pub(super) mod acs_iommu;
pub(super) mod driver_overclaims;
pub(super) mod guest_topology;
pub(super) mod unsupported_gpu;

/// Doing without peer copies: the stop-gap of several causes.
fn without_peer_copies() -> Remedy {
    Remedy::new(Impact::RestartsProcess, "the program in question; its traffic becomes slower")
        .step_to(
            Place::Program,
            "export NCCL_P2P_DISABLE=1",
            "NCCL then goes through host memory; other users of peer copies do not read this",
        )
        .step_to(
            Place::Program,
            "add --disable-custom-all-reduce (vLLM, SGLang)",
            "their own all-reduce copies between peers by itself",
        )
}
