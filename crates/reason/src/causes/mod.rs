//! The catalogue of causes, one file each.

use crate::cause::Cause;

mod fabric;
mod firmware;
mod framework;
mod gpu;
mod kernel;
mod library;
mod module;
mod node;
mod p2p;
mod pci;
mod platform;
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
    &gpu::memory_fault::CAUSE,
    &gpu::needs_reset::CAUSE,
    &gpu::power_cable::CAUSE,
    &gpu::vbios::CAUSE,
    &gpu::xid::CAUSE,
    &kernel::lacks_sva::CAUSE,
    &kernel::module_build_failed::CAUSE,
    &kernel::module_not_built::CAUSE,
    &kernel::nouveau_bound::CAUSE,
    &kernel::signature_rejected::CAUSE,
    &library::bundled_driver::CAUSE,
    &library::compat_shadows::CAUSE,
    &library::compat_unsupported::CAUSE,
    &library::interposer::CAUSE,
    &library::missing::CAUSE,
    &library::stub::CAUSE,
    &library::wsl_linux_driver::CAUSE,
    &module::deadlock::CAUSE,
    &module::gpu_unsupported::CAUSE,
    &module::needs_open::CAUSE,
    &module::not_loaded::CAUSE,
    &module::open_unsupported::CAUSE,
    &module::rm_init_failed::CAUSE,
    &module::uptime_hang::CAUSE,
    &module::version_skew::CAUSE,
    &node::missing::CAUSE,
    &node::nodev_mount::CAUSE,
    &node::permission::CAUSE,
    &node::wrong_number::CAUSE,
    &p2p::acs_iommu::CAUSE,
    &p2p::driver_overclaims::CAUSE,
    &p2p::guest_topology::CAUSE,
    &p2p::unsupported_gpu::CAUSE,
    &pci::bar_unassigned::CAUSE,
    &pci::fell_off_bus::CAUSE,
    &pci::link_degraded::CAUSE,
    &pci::no_gpu::CAUSE,
    &pci::power_state::CAUSE,
    &platform::cc_not_ready::CAUSE,
    &platform::guest_mmio_window::CAUSE,
    &platform::vfio_bound::CAUSE,
    &platform::vfio_unbind_stuck::CAUSE,
    &platform::vgpu_unlicensed::CAUSE,
    &platform::vgpu_version_skew::CAUSE,
    &process::address_space::CAUSE,
    &process::fork_after_init::CAUSE,
    &process::index_remapped::CAUSE,
    &process::memlock::CAUSE,
    &process::open_files_huge::CAUSE,
    &process::open_files_low::CAUSE,
    &process::shm_small::CAUSE,
    &process::threads::CAUSE,
    &process::visible_devices::CAUSE,
    &sandbox::bpf_old_kernel::CAUSE,
    &sandbox::cdi_stale::CAUSE,
    &sandbox::cdi_unresolvable::CAUSE,
    &sandbox::cgroup_denies::CAUSE,
    &sandbox::cgroup_lost::CAUSE,
    &sandbox::cgroup_v2_unsupported::CAUSE,
    &sandbox::cli_timeout::CAUSE,
    &sandbox::engine_blind::CAUSE,
    &sandbox::flatpak_runtime::CAUSE,
    &sandbox::gpu_not_requested::CAUSE,
    &sandbox::gvisor_unsupported::CAUSE,
    &sandbox::landlock::CAUSE,
    &sandbox::no_cgroups_set::CAUSE,
    &sandbox::operator_host_driver::CAUSE,
    &sandbox::proc_hidden::CAUSE,
    &sandbox::rootless_bpf::CAUSE,
    &sandbox::seccomp::CAUSE,
    &sandbox::selinux::CAUSE,
    &sandbox::userns::CAUSE,
    &share::compute_mode::CAUSE,
    &share::memory_full::CAUSE,
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
