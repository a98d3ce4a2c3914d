//! The catalogue of causes, one file each.

use crate::cause::Cause;

mod fabric;
mod firmware;
mod framework;
mod library;
mod module;
mod node;
mod pci;
mod process;
mod sandbox;
mod uvm;

/// Every cause, sorted by id. Kept in order by `cargo xtask new-cause`; a test compares this list
/// with the files and with the folders of cases.
pub static CAUSES: &[&Cause] = &[
    &fabric::manager_missing::CAUSE,
    &firmware::gsp_lacks_chip::CAUSE,
    &firmware::gsp_missing::CAUSE,
    &framework::driver_too_old::CAUSE,
    &framework::lacks_arch::CAUSE,
    &framework::toolkit_mismatch::CAUSE,
    &library::compat_shadows::CAUSE,
    &library::missing::CAUSE,
    &library::stub::CAUSE,
    &module::deadlock::CAUSE,
    &module::needs_open::CAUSE,
    &module::not_loaded::CAUSE,
    &module::version_skew::CAUSE,
    &node::missing::CAUSE,
    &node::permission::CAUSE,
    &node::wrong_number::CAUSE,
    &pci::no_gpu::CAUSE,
    &process::fork_after_init::CAUSE,
    &process::visible_devices::CAUSE,
    &sandbox::cgroup_denies::CAUSE,
    &sandbox::gpu_not_requested::CAUSE,
    &sandbox::seccomp::CAUSE,
    &uvm::hmm::CAUSE,
    &uvm::not_loaded::CAUSE,
];

/// The cause of that id.
pub fn by_id(id: &str) -> Option<&'static Cause> {
    CAUSES.iter().copied().find(|cause| cause.id == id)
}
