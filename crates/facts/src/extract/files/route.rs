//! Which reader takes which path. One table; a path goes to the first pattern that it fits.

use super::glob;
use super::reading::Reading;
use super::{
    build_log, cdi, container, driver, environment, fabric, host, modules, nodes, pci, policy,
    task, toolkit, wsl,
};
use crate::model::Facts;
use crate::parse::elf_library;

/// What becomes of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Routing {
    /// It is entered at once.
    Entered,
    /// It is read when all items are known, by [`super::conclude`].
    AtTheEnd,
    /// Another extractor reads it: kernel logs, ELF files, metadata of frameworks.
    Elsewhere,
    /// Nothing reads it.
    Unrouted,
}

/// Who reads an item.
#[derive(Clone, Copy)]
pub(super) enum Reader {
    /// This function, at once.
    Now(fn(&Reading, &mut Facts)),
    /// [`super::conclude`].
    AtTheEnd,
    /// Another extractor.
    Elsewhere,
}

use Reader::{AtTheEnd, Elsewhere, Now};

/// The table. More particular patterns stand before more general ones.
const ROUTES: &[(&str, Reader)] = &[
    // The driver's own files.
    ("/proc/driver/nvidia/version", Now(driver::version)),
    ("/proc/driver/nvidia/params", Now(driver::params)),
    ("/proc/driver/nvidia/registry", Now(driver::registry)),
    ("/proc/driver/nvidia/gpus", Now(driver::gpu_folders)),
    ("/proc/driver/nvidia/gpus/*/information", Now(driver::information)),
    ("/proc/driver/nvidia/gpus/*/power", Now(driver::power)),
    ("/proc/driver/nvidia/gpus/*/registry", Now(driver::gpu_registry)),
    // Libraries.
    ("/usr/lib/wsl/lib", Now(wsl::libraries)),
    // The fabric.
    ("/sys/class/infiniband", Now(fabric::infiniband)),
    // Modules.
    ("/proc/modules", Now(modules::proc_modules)),
    ("/proc/devices", Now(modules::proc_devices)),
    ("/proc/iomem", Now(modules::iomem)),
    ("/sys/module/*/initstate", Now(modules::initstate)),
    ("/sys/module/*/version", Now(modules::sysfs_version)),
    ("/sys/module/*/srcversion", Now(modules::sysfs_value)),
    ("/sys/module/*/taint", Now(modules::sysfs_value)),
    ("/sys/module/*/refcnt", Now(modules::sysfs_value)),
    ("/sys/module/nvidia_uvm/parameters/uvm_disable_hmm", Now(modules::uvm_disable_hmm)),
    ("/sys/module/nvidia_uvm/parameters/*", Now(modules::uvm_parameter)),
    ("/sys/module/*/parameters/*", Now(modules::parameter)),
    ("/etc/modprobe.d/*.conf", Now(modules::modprobe_conf)),
    ("/usr/lib/modprobe.d/*.conf", Now(modules::modprobe_conf)),
    ("/lib/modprobe.d/*.conf", Now(modules::modprobe_conf)),
    ("/run/modprobe.d/*.conf", Now(modules::modprobe_conf)),
    ("/lib/modules", AtTheEnd),
    ("/usr/lib/modules", AtTheEnd),
    ("/lib/modules/*/modules.dep", AtTheEnd),
    ("/usr/lib/modules/*/modules.dep", AtTheEnd),
    ("/var/lib/dkms/nvidia*/*/build/make.log", Now(build_log::make_log)),
    ("/var/lib/dkms/nvidia*/*/*/*/log/make.log", Now(build_log::make_log)),
    // The kernel's configuration.
    ("/proc/config.gz", AtTheEnd),
    ("/boot/config-*", AtTheEnd),
    ("/lib/modules/*/config", AtTheEnd),
    ("/usr/lib/modules/*/config", AtTheEnd),
    // Firmware.
    ("/lib/firmware/nvidia/*", AtTheEnd),
    ("/usr/lib/firmware/nvidia/*", AtTheEnd),
    ("/lib/firmware/updates/nvidia/*", AtTheEnd),
    ("/lib/firmware/nvidia/*/*.bin*", Elsewhere),
    ("/usr/lib/firmware/nvidia/*/*.bin*", Elsewhere),
    // The PCI bus.
    ("/sys/bus/pci/devices", AtTheEnd),
    ("/sys/bus/pci/devices/*/*", AtTheEnd),
    ("/sys/bus/pci/devices/*/power/runtime_status", AtTheEnd),
    ("/sys/kernel/iommu_groups/*/type", Now(pci::iommu_type)),
    // The host.
    ("/etc/hostname", Now(host::hostname)),
    ("/proc/sys/kernel/hostname", Now(host::hostname)),
    ("/proc/sys/kernel/osrelease", Now(host::osrelease)),
    ("/proc/sys/kernel/arch", Now(host::arch)),
    ("/proc/version", Now(host::proc_version)),
    ("/proc/uptime", Now(host::uptime)),
    ("/proc/cmdline", Now(host::cmdline)),
    ("/proc/cpuinfo", AtTheEnd),
    ("/etc/os-release", Now(host::os_release)),
    ("/usr/lib/os-release", Now(host::os_release)),
    ("/etc/nv_tegra_release", Now(host::tegra_release)),
    ("/proc/device-tree/compatible", Now(host::device_tree)),
    ("/sys/firmware/devicetree/base/compatible", Now(host::device_tree)),
    ("/sys/class/dmi/id/sys_vendor", AtTheEnd),
    ("/sys/class/dmi/id/product_name", AtTheEnd),
    ("/sys/hypervisor/type", AtTheEnd),
    ("/sys/firmware/efi", Now(host::efi_folder)),
    ("/sys/firmware/efi/efivars/SecureBoot-*", Now(host::secure_boot)),
    ("/sys/kernel/security/lockdown", Now(host::lockdown)),
    ("/usr/share/perl5/PVE/pvecfg.pm", Now(host::pvecfg)),
    // Containers and policy.
    ("/.dockerenv", AtTheEnd),
    ("/run/.containerenv", AtTheEnd),
    ("/run/systemd/container", AtTheEnd),
    ("/proc/self/ns/*", AtTheEnd),
    ("/proc/1/environ", AtTheEnd),
    ("/proc/1/cgroup", AtTheEnd),
    ("/proc/self/cgroup", Now(policy::cgroup)),
    ("/proc/self/mountinfo", Now(policy::mountinfo)),
    ("/proc/self/status", Now(policy::status)),
    ("/proc/self/uid_map", Now(policy::uid_map)),
    ("/proc/self/gid_map", Now(policy::gid_map)),
    ("/etc/pve/lxc/*.conf", Now(container::lxc)),
    ("/etc/pve/nodes/*/lxc/*.conf", Now(container::lxc)),
    ("/var/lib/lxc/*/config", Now(container::lxc)),
    ("/usr/share/lxc/config/*.conf", Now(container::lxc)),
    ("/etc/nvidia-container-runtime/config.toml", Now(container::nvidia_runtime)),
    ("/etc/cdi", Now(cdi::folder)),
    ("/run/cdi", Now(cdi::folder)),
    ("/var/run/cdi", Now(cdi::folder)),
    ("/etc/cdi/*", Now(cdi::spec)),
    ("/run/cdi/*", Now(cdi::spec)),
    ("/var/run/cdi/*", Now(cdi::spec)),
    ("/sys/fs/selinux/enforce", Now(cdi::selinux)),
    ("/proc/self/attr/current", Now(cdi::label)),
    // The process.
    ("/proc/self/environ", Now(environment::environ)),
    ("/proc/self/limits", Now(environment::limits)),
    ("/sys/fs/cgroup/pids.max", Now(environment::pids_max)),
    ("/sys/fs/cgroup/pids/pids.max", Now(environment::pids_max)),
    // Single tasks.
    ("/proc/*/stat", Now(task::file)),
    ("/proc/*/comm", Now(task::file)),
    ("/proc/*/wchan", Now(task::file)),
    ("/proc/*/syscall", Now(task::file)),
    ("/proc/*/stack", Now(task::file)),
    ("/proc/*/fd", Now(task::file)),
    ("/proc/*/fd/*", Now(task::file)),
    ("/proc/*/task/*/stat", Now(task::file)),
    ("/proc/*/task/*/status", Now(task::file)),
    ("/proc/*/task/*/comm", Now(task::file)),
    ("/proc/*/task/*/wchan", Now(task::file)),
    ("/proc/*/task/*/syscall", Now(task::file)),
    ("/proc/*/task/*/stack", Now(task::file)),
    ("/proc/*/task/*/fd", Now(task::file)),
    ("/proc/*/task/*/mem", Now(task::file)),
    // Device nodes.
    ("/dev", Now(nodes::folder)),
    ("/dev/nvidia-caps", Now(nodes::folder)),
    ("/dev/nvidia-caps-imex-channels", Now(nodes::folder)),
    ("/dev/dxg", Now(nodes::dxg)),
    ("/dev/nvidia*", Now(nodes::node)),
    ("/dev/nvidia-caps/*", Now(nodes::node)),
    ("/dev/nvidia-caps-imex-channels/*", Now(nodes::node)),
    ("/dev/char/*", Now(nodes::link)),
    // Toolkits and the loader.
    ("/usr/local/cuda*/version.json", Now(toolkit::version_json)),
    ("/usr/local/cuda*/version.txt", Now(toolkit::version_txt)),
    ("/etc/ld.so.preload", Now(toolkit::ld_so_preload)),
    // Read by others.
    ("/dev/kmsg", Elsewhere),
    ("/var/log/dmesg", Elsewhere),
    ("/var/log/kern.log", Elsewhere),
    ("/var/log/messages", Elsewhere),
    ("/var/log/syslog", Elsewhere),
    ("/etc/ld.so.cache", Elsewhere),
    ("/proc/self/maps", Elsewhere),
];

/// The reader of a path. Another process's files of /proc are read like one's own, since in a
/// pasted text they are there because that process is the one in question. Process 1 is not: its
/// files tell of the container.
pub(super) fn reader(path: &str) -> Option<Reader> {
    in_table(path).or_else(|| of_process(path)).or_else(|| is_binary(path).then_some(Elsewhere))
}

fn in_table(path: &str) -> Option<Reader> {
    ROUTES.iter().find(|(pattern, _)| glob::matches(pattern, path)).map(|(_, reader)| *reader)
}

fn of_process(path: &str) -> Option<Reader> {
    let (process, file) = path.strip_prefix("/proc/")?.split_once('/')?;
    let number = process.parse::<u32>().ok();
    let is_process = process == "thread-self" || number.is_some_and(|number| number > 1);
    in_table(&format!("/proc/self/{file}")).filter(|_| is_process)
}

/// Libraries and modules lie in too many folders for a table; [`crate::extract::binary`] knows
/// them by name.
fn is_binary(path: &str) -> bool {
    let file = path.rsplit('/').next().unwrap_or(path);
    let is_module = file.starts_with("nvidia") && file.contains(".ko");
    is_module || elf_library::soname_of_path(path).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_pattern_hides_a_later_one() {
        for (index, (pattern, _)) in ROUTES.iter().enumerate() {
            let sample = pattern.replace('*', "7");
            let first = ROUTES.iter().position(|(other, _)| glob::matches(other, &sample));
            assert_eq!(first, Some(index), "{pattern} is never reached");
        }
    }

    #[test]
    fn files_of_other_processes_go_the_same_way() {
        assert!(matches!(reader("/proc/4711/limits"), Some(Now(_))));
        assert!(matches!(reader("/proc/1/environ"), Some(AtTheEnd)));
        assert!(reader("/proc/1/status").is_none());
        assert!(reader("/proc/x/limits").is_none());
        assert!(reader("/proc/4711/io").is_none());
    }
}
