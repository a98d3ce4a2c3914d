//! Files of a machine become facts: whole machines, and each way of not knowing.

use facts::extract::files::{Routing, apply, conclude, enter_ls_long, enter_lsmod};
use facts::model::Facts;
use facts::model::host::ContainerKind;
use facts::model::module::Flavour;
use facts::model::node::NodeKind;
use facts::model::pci::Bar;
use facts::raw::{ItemName, RawItem, RawSet, RawState};
use facts::{Errno, Observed, Why};

fn file(path: &str, text: impl AsRef<[u8]>) -> RawItem {
    RawItem::new(ItemName::File(path.to_owned()), text.as_ref())
}

fn state(path: &str, state: RawState) -> RawItem {
    RawItem::with_state(ItemName::File(path.to_owned()), state)
}

fn grepped(path: &str, pattern: &str, text: &str) -> RawItem {
    RawItem { partial: true, filter: Some(pattern.to_owned()), ..file(path, text) }
}

fn facts_of(items: impl IntoIterator<Item = RawItem>) -> Facts {
    let raw: RawSet = items.into_iter().collect();
    let mut facts = Facts::default();
    for item in raw.items() {
        let ItemName::File(path) = &item.name else {
            continue;
        };
        assert_ne!(apply(item, path, &mut facts), Routing::Unrouted, "{path}");
    }
    conclude(&raw, &mut facts);
    facts
}

const OPEN_590: &str =
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  590.48.01  Release Build\n";

#[test]
fn the_flagship_host() {
    let facts = facts_of([
        file("/proc/driver/nvidia/version", OPEN_590),
        file("/sys/module/nvidia/version", "590.48.01\n"),
        file("/proc/driver/nvidia/params", "DeviceFileMode: 438\nModifyDeviceFiles: 1\n"),
        file("/proc/driver/nvidia/gpus", "0000:01:00.0\n0000:81:00.0\n"),
        file(
            "/proc/driver/nvidia/gpus/0000:81:00.0/information",
            "Model: \t\t NVIDIA RTX PRO 6000 Blackwell Server Edition\nIRQ:   \t\t 212\n\
             GPU UUID: \t GPU-00000000-0000-0000-0000-000000000001\nDevice Minor: \t 1\n\
             GPU Firmware: \t 590.48.01\nGPU Excluded:\t No\n",
        ),
        file("/proc/driver/nvidia/gpus/0000:81:00.0/power", "Runtime D3 status:  Disabled\n"),
        file("/sys/module/nvidia_uvm/parameters/uvm_disable_hmm", "N\n"),
        file("/sys/module/nvidia_uvm/parameters/uvm_ats_mode", "1\n"),
        file("/proc/sys/kernel/osrelease", "6.8.12-9-pve\n"),
        file(
            "/usr/share/perl5/PVE/pvecfg.pm",
            "package PVE::pvecfg;\n\nsub version { return '8.4.1'; }\n",
        ),
        file("/etc/os-release", "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n"),
        file(
            "/proc/cmdline",
            "root=/dev/mapper/pve-root iommu=pt modprobe.blacklist=nouveau,nova-core\n",
        ),
        file(
            "/proc/iomem",
            "00000000-00000fff : Reserved\n5000000000-6fffffffff : nvidia-uvm-hmm\n",
        ),
        file("/proc/uptime", "35123.44 2000000.01\n"),
        file("/proc/self/ns/pid", "pid:[4026531836]"),
        file("/proc/self/ns/cgroup", "cgroup:[4026531835]"),
        file("/proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu vme sse2\nbugs\t\t: x\n"),
        file("/lib/firmware/nvidia/590.48.01", "gsp_ga10x.bin\ngsp_tu10x.bin\n"),
        file("/etc/modprobe.d/uvm.conf", "options nvidia_uvm uvm_disable_hmm=1\n"),
    ]);
    let nvrm = facts.module.nvrm.as_seen().unwrap();
    assert_eq!(nvrm.value.flavour, Some(Flavour::Open));
    assert_eq!(nvrm.origin.to_string(), "/proc/driver/nvidia/version:1");
    assert_eq!(facts.host.arch.value().unwrap(), "x86_64");
    assert_eq!(facts.module.gpu_folders.value().unwrap().len(), 2);
    let gpu = &facts.module.gpus[0].value;
    assert_eq!(gpu.address.unwrap().to_string(), "0000:81:00.0", "from the path");
    assert_eq!(
        facts.module.gpu_power[&gpu.address.unwrap()]["Runtime D3 status"].value,
        "Disabled"
    );
    assert_eq!(facts.module.uvm_disable_hmm.value(), Some(&false));
    assert_eq!(facts.module.uvm_params["uvm_ats_mode"].value, "1");
    assert_eq!(facts.module.params["DeviceFileMode"].origin.line, 1);
    assert_eq!(facts.host.proxmox.value().unwrap(), "8.4.1");
    assert_eq!(facts.host.kernel.value().unwrap().as_str(), "6.8.12-9-pve");
    assert_eq!(facts.host.container.value(), Some(&ContainerKind::None));
    assert_eq!(facts.host.hypervisor.value().unwrap(), "none");
    assert_eq!(facts.host.uptime_s.value(), Some(&35123));
    assert_eq!(facts.module.hmm_ranges.value().unwrap(), &[(0x50_0000_0000, 0x6f_ffff_ffff)]);
    let kept_out: Vec<_> = facts.module.kept_out.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(kept_out, ["nouveau", "nova_core"]);
    assert_eq!(facts.module.options[0].1, "uvm_disable_hmm=1");
    let firmware = facts.firmware.files.value().unwrap();
    assert_eq!(firmware[0].path, "/lib/firmware/nvidia/590.48.01/gsp_ga10x.bin");
    assert!(firmware[0].families.is_unknown(), "a name decides nothing");
    assert!(facts.mentions_gpu);
    assert_eq!(facts.complaints, []);
}

/// Files of a virtual machine with one H200 and driver 580.159.04, each after a line with its path.
const H200: &str = include_str!("recorded/h200-580.159.04.txt");

#[test]
fn a_recorded_machine_is_understood_to_the_last_line() {
    let items = H200.split("=== ").skip(1).map(|section| {
        let (path, text) = section.split_once('\n').unwrap();
        file(path, text)
    });
    let facts = facts_of(items);
    assert_eq!(facts.complaints, []);
    let nvrm = facts.module.nvrm.value().unwrap();
    assert_eq!(
        (nvrm.version.to_string().as_str(), nvrm.flavour),
        ("580.159.04", Some(Flavour::Open))
    );
    assert_eq!(facts.module.params.len(), 42);
    assert_eq!(facts.module.major("nvidia-uvm").value(), Some(&238));
    assert_eq!(facts.module.major("nvidia-caps-imex-channels").value(), Some(&242));
    assert!(facts.module.major("nvidia-modeset").absent().is_some());
    let loaded = facts.module.loaded("nvidia_uvm");
    assert_eq!((loaded.value().unwrap().use_count, facts.module.loaded.len()), (None, 12));
    assert!(facts.module.loaded("nouveau").absent().is_some());
    assert!(facts.module.hmm_ranges.absent().is_some());
    assert_eq!(facts.module.gpus[0].value.gpu_firmware.as_deref(), Some("580.159.04"));
    assert_eq!(facts.module.sysfs["nvidia/taint"].value().unwrap(), "O");
    let device = &facts.pci.devices.value().unwrap()[0];
    assert!(device.is_gpu());
    let sizes: Vec<(u8, u64)> =
        device.bars.value().unwrap().iter().map(|bar| (bar.index, bar.size_bytes >> 20)).collect();
    assert_eq!(sizes, [(0, 16), (2, 256 << 10), (4, 32)]);
    assert_eq!(device.link.value().unwrap().current_width, 16);
    assert_eq!(facts.sandbox.has_capability(24), Some(false));
    assert_eq!(facts.process.limits["Max open files"].value, Some(20_000));
}

#[test]
fn each_way_of_not_knowing_is_kept_apart() {
    const VERSION: &str = "/proc/driver/nvidia/version";
    let nvrm = |reading: RawItem| facts_of([reading]).module.nvrm;
    assert!(nvrm(state(VERSION, RawState::Absent)).absent().is_some());
    assert!(matches!(
        nvrm(state(VERSION, RawState::Denied(Errno::EACCES))),
        Observed::Denied(Errno::EACCES, _)
    ));
    let late = nvrm(state(VERSION, RawState::TimedOut));
    assert!(matches!(late, Observed::Unknown(Why::TimedOut(_))));
    let odd = nvrm(file(VERSION, "NVRM version: unreadable\n"));
    assert!(matches!(odd, Observed::Unknown(Why::Unparsed(_))));
}

#[test]
fn a_whole_list_of_modules_tells_which_are_absent_and_a_part_does_not() {
    let whole = facts_of([file("/proc/modules", "nvidia 1 2 nvidia_uvm, Live 0x0 (POE)\n")]);
    assert_eq!(whole.module.loaded("nvidia").value().unwrap().use_count, Some(2));
    assert!(whole.module.loaded("nvidia_uvm").absent().is_some());

    let part = RawItem { partial: true, ..file("/proc/modules", "nvidia 1 2 - Live 0x0\n") };
    assert!(facts_of([part]).module.loaded("nvidia_uvm").is_unknown());

    let shown = facts_of([grepped("/proc/modules", "^nvidia", "")]);
    assert!(shown.module.loaded("nvidia_uvm").absent().is_some());
    assert!(shown.module.loaded("nouveau").is_unknown());

    let refused = facts_of([file("/proc/modules", "cat: /proc/modules: Permission denied\n")]);
    assert!(refused.module.loaded("nvidia").is_unknown(), "an error message is no list");

    let mut facts = Facts::default();
    let heading = "Module                  Size  Used by\nnouveau 1 0\n";
    enter_lsmod(&RawItem::new(ItemName::Command("lsmod".into()), heading.as_bytes()), &mut facts);
    assert!(facts.module.loaded("nouveau").is_seen());
    assert!(facts.module.loaded("nvidia").absent().is_some());
}

#[test]
fn majors_by_filter() {
    let facts = facts_of([grepped("/proc/devices", "nvidia", "195 nvidia\n195 nvidiactl\n")]);
    assert_eq!(facts.module.major("nvidiactl").value(), Some(&195));
    assert!(facts.module.major("nvidia-uvm").absent().is_some());
    let narrow = facts_of([grepped("/proc/devices", "nvidia-uvm", "")]);
    assert!(narrow.module.major("nvidia-uvm").absent().is_some());
    assert!(narrow.module.major("nvidia").is_unknown());
}

fn gpu(address: &str, extra: &[(&str, &str)]) -> Vec<RawItem> {
    let folder = format!("/sys/bus/pci/devices/{address}");
    let fixed = [
        ("vendor", "0x10de\n"),
        ("device", "0x2bb5\n"),
        ("class", "0x030200\n"),
        ("subsystem_vendor", "0x10de\n"),
        ("subsystem_device", "0x204e\n"),
        ("numa_node", "-1\n"),
        ("power_state", "D0\n"),
        ("power/runtime_status", "active\n"),
        ("iommu_group", "../../../../kernel/iommu_groups/42"),
        ("current_link_speed", "32.0 GT/s PCIe\n"),
        ("current_link_width", "16\n"),
        ("max_link_speed", "32.0 GT/s PCIe\n"),
        ("resource", "0x00000000de000000 0x00000000deffffff 0x0000000000040200\n"),
    ];
    let all = fixed.iter().chain(extra);
    all.map(|(name, text)| file(&format!("{folder}/{name}"), text)).collect()
}

#[test]
fn devices_are_assembled_from_their_files() {
    let mut items = gpu(
        "0000:81:00.0",
        &[("max_link_width", "16\n"), ("driver", "../../../../bus/pci/drivers/nvidia")],
    );
    items.extend(gpu("0000:01:00.0", &[]));
    items.push(state("/sys/bus/pci/devices/0000:01:00.0/driver", RawState::Absent));
    items.push(state("/sys/bus/pci/devices/0000:01:00.0/max_link_width", RawState::TimedOut));
    items.push(file("/sys/bus/pci/devices/0000:00:1f.0/vendor", "0x8086\n"));
    items.push(file("/sys/kernel/iommu_groups/42/type", "identity\n"));
    let facts = facts_of(items);
    let devices = facts.pci.devices.value().unwrap();
    assert_eq!(devices.len(), 2);
    let (unbound, bound) = (&devices[0], &devices[1]);
    assert!(unbound.is_gpu() && unbound.driver.absent().is_some());
    assert!(matches!(unbound.link, Observed::Unknown(Why::TimedOut(_))));
    assert_eq!(bound.driver.value().unwrap(), "nvidia");
    assert_eq!(bound.device, Some(0x2bb5));
    assert_eq!(bound.subsystem, Some((0x10de, 0x204e)));
    assert_eq!(bound.link.value().unwrap().max_width, 16);
    assert_eq!(bound.numa_node.value(), Some(&-1));
    assert_eq!(bound.iommu_group.value(), Some(&42));
    let register = Bar { index: 0, start: 0xde00_0000, size_bytes: 16 << 20 };
    assert_eq!(bound.bars.value().unwrap(), &[register]);
    assert_eq!(facts.pci.iommu_types[&42].value().unwrap(), "identity");
    assert!(facts.mentions_gpu);
}

#[test]
fn no_device_of_nvidia_is_said_only_when_every_vendor_is_known() {
    let listing = || file("/sys/bus/pci/devices", "0000:00:1f.0\n0000:00:02.0\n");
    let vendor =
        |address: &str| file(&format!("/sys/bus/pci/devices/{address}/vendor"), "0x8086\n");
    let devices = |items: Vec<RawItem>| facts_of(items).pci.devices;
    let all = vec![listing(), vendor("0000:00:1f.0"), vendor("0000:00:02.0")];
    assert!(devices(all).absent().is_some());
    assert!(devices(vec![listing(), vendor("0000:00:1f.0")]).is_unknown());
    assert!(devices(vec![file("/sys/bus/pci/devices", "")]).absent().is_some());
    assert!(devices(vec![vendor("0000:00:1f.0")]).is_unknown());
    let missing = || state("/sys/bus/pci/devices", RawState::Absent);
    assert!(devices(vec![missing()]).is_unknown(), "all of /sys may be missing");
    let sysfs = file("/sys/class/dmi/id/sys_vendor", "QEMU\n");
    assert!(devices(vec![missing(), sysfs]).absent().is_some());
    let gvisor = "Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016\n";
    let sandboxed = vec![file("/sys/bus/pci/devices", ""), file("/proc/version", gvisor)];
    assert!(devices(sandboxed).is_unknown());
}

#[test]
fn uevent_stands_in_for_files_that_are_missing() {
    let folder = "/sys/bus/pci/devices/0000:01:00.0";
    let text = "DRIVER=vfio-pci\nPCI_CLASS=30200\nPCI_ID=10DE:2335\nPCI_SUBSYS_ID=10DE:18BE\n";
    let facts = facts_of([file(&format!("{folder}/uevent"), text)]);
    let device = &facts.pci.devices.value().unwrap()[0];
    assert_eq!((device.device, device.class), (Some(0x2335), Some(0x03_02_00)));
    assert_eq!(device.driver.value().unwrap(), "vfio-pci");
}

#[test]
fn nodes_from_a_listing_and_from_their_own_items() {
    let facts = facts_of([
        file("/dev", "null\nnvidia0\nnvidiactl\nnvidia-caps\n"),
        file("/dev/nvidia0", "char 195:0 mode 0666 owner 0:0\n"),
        state("/dev/nvidiactl", RawState::Denied(Errno::EACCES)),
        file("/dev/char/195:255", "../nvidiactl"),
    ]);
    let node = facts.node.at("/dev/nvidia0");
    assert_eq!(node.value().unwrap().kind, NodeKind::Char { major: 195, minor: 0 });
    assert!(matches!(facts.node.at("/dev/nvidiactl"), Observed::Denied(..)));
    assert!(facts.node.at("/dev/nvidia-uvm").absent().is_some());
    assert!(facts.node.at("/dev/nvidia-caps/nvidia-cap1").is_unknown());
    assert_eq!(facts.host.wsl.value(), Some(&false));
    assert_eq!(facts.node.links["/dev/char/195:255"].value().unwrap(), "../nvidiactl");

    let filtered = facts_of([grepped("/dev", "nvidia", "nvidia0\n")]);
    assert!(filtered.node.at("/dev/nvidia-uvm").absent().is_some());
    assert!(filtered.node.at("/dev/nvidia0").is_unknown());
    assert!(filtered.host.wsl.is_unknown());
}

#[test]
fn a_pattern_given_to_ls_covers_what_it_did_not_show() {
    let ls = |operands: &[&str], text: &str| {
        let mut facts = Facts::default();
        let name = ItemName::Command(format!("ls -l {}", operands.join(" ")));
        enter_ls_long(&RawItem::new(name, text.as_bytes()), operands, &mut facts);
        facts.node
    };
    let shown = "crw-rw-rw- 1 root root 195, 0 Nov 3 10:22 /dev/nvidia0\n";
    assert!(ls(&["/dev/nvidia*"], shown).at("/dev/nvidia-uvm").absent().is_some());
    assert!(ls(&["/dev/nvidia0"], shown).at("/dev/nvidia-uvm").is_unknown());
    assert!(ls(&["/dev/nvidia[0-9]*"], shown).at("/dev/nvidia-uvm").is_unknown());
    let none = "ls: cannot access '/dev/nvidia*': No such file or directory\n";
    assert!(ls(&["/dev/nvidia*"], none).at("/dev/nvidiactl").absent().is_some());
    let one = "ls: cannot access '/dev/nvidia-uvm': No such file or directory\n";
    let nodes = ls(&["/dev/nvidia0", "/dev/nvidia-uvm"], &format!("{one}{shown}"));
    assert!(nodes.at("/dev/nvidia-uvm").absent().is_some());
    assert!(nodes.at("/dev/nvidia0").is_seen());
    let error = "bash: ls: command not found\n";
    assert!(ls(&["/dev/nvidia*"], error).at("/dev/nvidiactl").is_unknown());
}

#[test]
fn kinds_of_containers() {
    let kind = |items: Vec<RawItem>| facts_of(items).host.container.value().copied();
    let pid = || file("/proc/self/ns/pid", "pid:[4026532100]");
    let absent = || state("/.dockerenv", RawState::Absent);
    assert_eq!(kind(vec![pid(), absent()]), Some(ContainerKind::Other));
    assert_eq!(kind(vec![absent()]), None);
    let wsl = file("/proc/sys/kernel/osrelease", "5.15.153.1-microsoft-standard-WSL2\n");
    assert_eq!(kind(vec![pid(), wsl]), Some(ContainerKind::None));
    let lxc = || file("/run/systemd/container", "lxc\n");
    assert_eq!(kind(vec![pid(), lxc()]), Some(ContainerKind::Lxc));
    let docker = || file("/.dockerenv", "");
    assert_eq!(kind(vec![lxc(), docker()]), Some(ContainerKind::Docker), "the innermost");
    let pod = file("/proc/self/environ", "KUBERNETES_SERVICE_HOST=10.96.0.1\0A=b\0");
    assert_eq!(kind(vec![docker(), pod]), Some(ContainerKind::Kubernetes));
    let initial = || {
        [
            file("/proc/self/ns/pid", "pid:[4026531836]"),
            file("/proc/self/ns/cgroup", "cgroup:[4026531835]"),
        ]
    };
    let word = file("/run/systemd/container", "docker\n");
    let machine = initial().into_iter().chain([docker(), word]).collect();
    assert_eq!(kind(machine), Some(ContainerKind::None), "a machine booted from an image");
    let group = file("/proc/self/cgroup", "0::/system.slice/docker-0123abcd.scope\n");
    let host_namespaces = initial().into_iter().chain([docker(), group]).collect();
    assert_eq!(kind(host_namespaces), Some(ContainerKind::Docker));
    let init = file("/proc/1/environ", "container=lxc\0");
    assert_eq!(kind(vec![init]), Some(ContainerKind::Lxc));
    let mounts = file(
        "/proc/self/mountinfo",
        "650 612 8:1 /var/lib/docker/containers/0123/hosts /etc/hosts rw - ext4 /dev/sda1 rw\n",
    );
    assert_eq!(kind(vec![mounts]), Some(ContainerKind::Docker));
}

#[test]
fn policy_of_a_container() {
    let facts = facts_of([
        file(
            "/proc/self/status",
            "Uid:\t0\t0\t0\t0\nGroups:\t44 \nCapEff:\t00000000a80425fb\nSeccomp:\t2\nNoNewPrivs:\t0\n",
        ),
        file("/proc/self/uid_map", "0 100000 65536\n"),
        file("/proc/self/cgroup", "0::/\n"),
        file(
            "/proc/4711/limits",
            "Max open files            16                   16                   files\n",
        ),
        file("/etc/nvidia-container-runtime/config.toml", "no-cgroups = true\n"),
        file("/var/lib/lxc/129/config", "lxc.cgroup2.devices.allow = c 195:* rwm\n"),
    ]);
    assert_eq!(facts.sandbox.has_capability(27), Some(true));
    assert_eq!(facts.sandbox.has_capability(21), Some(false));
    assert_eq!(facts.sandbox.seccomp.value(), Some(&2));
    assert_eq!(facts.node.euid.value(), Some(&0));
    assert_eq!(facts.node.groups.value(), Some(&vec![44]));
    assert_eq!(facts.sandbox.uid_map.value().unwrap()[0].outside, 100_000);
    assert_eq!(facts.sandbox.cgroups.value().unwrap(), &["0::/"]);
    assert_eq!(facts.process.limits["Max open files"].value, Some(16));
    let settings: Vec<_> =
        facts.sandbox.settings.iter().map(|seen| seen.value.0.as_str()).collect();
    assert_eq!(settings, ["no-cgroups", "lxc.cgroup2.devices.allow"]);
}

#[test]
fn what_an_environment_does_not_hold() {
    let whole = facts_of([file("/proc/self/environ", "CUDA_VISIBLE_DEVICES=\0HOME=/root\0")]);
    assert_eq!(whole.process.env("CUDA_VISIBLE_DEVICES").value().unwrap(), "");
    assert!(whole.process.env("LD_PRELOAD").absent().is_some());
    let filtered = facts_of([grepped("/proc/self/environ", "^CUDA|NVIDIA", "")]);
    assert!(filtered.process.env("CUDA_VISIBLE_DEVICES").absent().is_some());
    assert!(filtered.process.env("NVIDIA_VISIBLE_DEVICES").absent().is_some());
    assert!(filtered.process.env("MY_CUDA").is_unknown());
    let gone = facts_of([file("/proc/self/environ", "")]);
    assert!(gone.process.env("CUDA_VISIBLE_DEVICES").is_unknown());
}

#[test]
fn module_files_of_the_running_kernel() {
    let osrelease = || file("/proc/sys/kernel/osrelease", "6.8.12-9-pve\n");
    let with = facts_of([
        osrelease(),
        file(
            "/lib/modules/6.8.12-9-pve/modules.dep",
            "kernel/fs/ext4/ext4.ko: kernel/fs/jbd2/jbd2.ko\n\
             updates/dkms/nvidia-uvm.ko.zst: updates/dkms/nvidia.ko.zst\nupdates/dkms/nvidia.ko.zst:\n",
        ),
    ]);
    let files = with.module.on_disk.value().unwrap();
    assert_eq!(files[1].name, "nvidia");
    assert_eq!(files[1].path, "/lib/modules/6.8.12-9-pve/updates/dkms/nvidia.ko.zst");
    let none = "kernel/fs/ext4/ext4.ko:\n";
    let without = facts_of([osrelease(), file("/lib/modules/6.8.12-9-pve/modules.dep", none)]);
    assert!(without.module.on_disk.absent().is_some());
    let other = facts_of([osrelease(), file("/lib/modules/6.8.12-8-pve/modules.dep", none)]);
    assert!(other.module.on_disk.is_unknown());
    let container = facts_of([osrelease(), state("/lib/modules", RawState::Absent)]);
    assert!(container.module.on_disk.is_unknown());
}

#[test]
fn firmware_is_absent_only_for_the_modules_own_version() {
    let module = || file("/sys/module/nvidia/version", "590.48.01\n");
    let absent =
        |version: &str| state(&format!("/lib/firmware/nvidia/{version}"), RawState::Absent);
    assert!(facts_of([module(), absent("590.48.01")]).firmware.files.absent().is_some());
    assert!(facts_of([module(), absent("580.95.05")]).firmware.files.is_unknown());
    assert!(facts_of([absent("590.48.01")]).firmware.files.is_unknown());
}

#[test]
fn hypervisors() {
    let name = |vendor: &str, product: &str, flags: &str| {
        let facts = facts_of([
            file("/sys/class/dmi/id/sys_vendor", vendor),
            file("/sys/class/dmi/id/product_name", product),
            file("/proc/cpuinfo", format!("flags\t\t: {flags}\nbugs\t\t:\n")),
        ]);
        facts.host.hypervisor.value().cloned().unwrap()
    };
    assert_eq!(name("QEMU\n", "Standard PC (Q35 + ICH9, 2009)\n", "fpu hypervisor"), "kvm");
    assert_eq!(name("Microsoft Corporation\n", "Virtual Machine\n", "hypervisor"), "microsoft");
    assert_eq!(name("Microsoft Corporation\n", "Surface\n", "fpu"), "none");
    assert_eq!(name("Amazon EC2\n", "p5.48xlarge\n", "hypervisor"), "kvm");
    assert_eq!(name("Supermicro\n", "SYS-421GE\n", "fpu vme"), "none");
    assert_eq!(name("Somebody\n", "Something\n", "hypervisor"), "unknown");
}

#[test]
fn boot_and_odds_and_ends() {
    let facts = facts_of([
        file(
            "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c",
            [6, 0, 0, 0, 1],
        ),
        file("/sys/kernel/security/lockdown", "none [integrity] confidentiality\n"),
        file("/usr/local/cuda-12.8/version.json", r#"{"cuda": {"version": "12.8.1"}}"#),
        file("/usr/local/cuda/version.txt", "CUDA Version 10.2.89\n"),
        file("/etc/ld.so.preload", "/usr/lib/libvgpu.so # interposer\n"),
        file("/etc/hostname", "gpu-ct\n"),
    ]);
    assert_eq!(facts.host.secure_boot.value(), Some(&true));
    assert_eq!(facts.host.lockdown.value().unwrap(), "integrity");
    let toolkits: Vec<String> = facts
        .framework
        .toolkits
        .iter()
        .map(|seen| format!("{} {}", seen.value.0, seen.value.1))
        .collect();
    assert_eq!(toolkits, ["/usr/local/cuda-12.8 12.8", "/usr/local/cuda 10.2"]);
    assert_eq!(facts.library.interposers[0].0, "/usr/lib/libvgpu.so");
    assert_eq!(facts.host.hostname.value().unwrap(), "gpu-ct");
    let old = facts_of([state("/sys/firmware/efi", RawState::Absent)]);
    assert_eq!(old.host.secure_boot.value(), Some(&false));
}
