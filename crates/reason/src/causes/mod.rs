//! The catalogue of causes, one file each.

use crate::cause::Cause;

mod fabric;
mod firmware;
mod framework;
mod kernel;
mod library;
mod module;
mod node;
mod p2p;
mod pci;
mod process;
mod sandbox;
mod share;
mod uvm;

/// Every cause, sorted by id. Kept in order by `cargo xtask new-cause`; a test compares this list
/// with the files and with the folders of cases.
pub static CAUSES: &[&Cause] = &[
    &fabric::manager_misconfigured::CAUSE,
    &fabric::manager_missing::CAUSE,
    &fabric::manager_version_skew::CAUSE,
    &fabric::multicast::CAUSE,
    &fabric::nvlink_down::CAUSE,
    &fabric::vm_partition::CAUSE,
    &firmware::gsp_lacks_chip::CAUSE,
    &firmware::gsp_missing::CAUSE,
    &firmware::gsp_timeout::CAUSE,
    &firmware::gsp_version_skew::CAUSE,
    &framework::cpu_build::CAUSE,
    &framework::driver_too_old::CAUSE,
    &framework::lacks_arch::CAUSE,
    &framework::ptx_too_new::CAUSE,
    &framework::toolkit_mismatch::CAUSE,
    &kernel::lacks_sva::CAUSE,
    &kernel::module_build_failed::CAUSE,
    &kernel::module_not_built::CAUSE,
    &kernel::nouveau_bound::CAUSE,
    &kernel::signature_rejected::CAUSE,
    &library::compat_shadows::CAUSE,
    &library::missing::CAUSE,
    &library::stub::CAUSE,
    &module::deadlock::CAUSE,
    &module::needs_open::CAUSE,
    &module::not_loaded::CAUSE,
    &module::open_unsupported::CAUSE,
    &module::rm_init_failed::CAUSE,
    &module::uptime_hang::CAUSE,
    &module::version_skew::CAUSE,
    &node::missing::CAUSE,
    &node::permission::CAUSE,
    &node::wrong_number::CAUSE,
    &p2p::acs_iommu::CAUSE,
    &p2p::driver_overclaims::CAUSE,
    &p2p::guest_topology::CAUSE,
    &p2p::unsupported_gpu::CAUSE,
    &pci::no_gpu::CAUSE,
    &process::fork_after_init::CAUSE,
    &process::visible_devices::CAUSE,
    &sandbox::cgroup_denies::CAUSE,
    &sandbox::gpu_not_requested::CAUSE,
    &sandbox::seccomp::CAUSE,
    &share::compute_mode::CAUSE,
    &share::mig_one_per_process::CAUSE,
    &share::mps_unreachable::CAUSE,
    &share::mps_version_skew::CAUSE,
    &uvm::fatal_latched::CAUSE,
    &uvm::hmm::CAUSE,
    &uvm::hmm_crash::CAUSE,
    &uvm::hmm_kaslr::CAUSE,
    &uvm::mixed_families::CAUSE,
    &uvm::not_loaded::CAUSE,
    &uvm::stale_after_suspend::CAUSE,
];

/// The cause of that id.
pub fn by_id(id: &str) -> Option<&'static Cause> {
    CAUSES.iter().copied().find(|cause| cause.id == id)
}
