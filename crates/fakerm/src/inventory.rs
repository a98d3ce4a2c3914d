//! What the pretended machine has at which path.

use std::collections::BTreeMap;

use crate::machine::{self, MAJOR_NVIDIA, MAJOR_UVM, MINOR_CONTROL};
use crate::settings::{NodeChange, settings};
use crate::tree::Entry;

/// All entries, with the folders above them.
pub(crate) fn build() -> BTreeMap<String, Entry> {
    let mut tree = BTreeMap::new();
    add_nodes(&mut tree);
    add_module_files(&mut tree);
    for gpu in machine::gpus() {
        add_gpu_files(&mut tree, gpu);
    }
    add_folders(&mut tree);
    tree
}

fn add_nodes(tree: &mut BTreeMap<String, Entry>) {
    let mut node = |path: String, major: u32, minor: u32| {
        let change = settings().nodes.iter().rfind(|(changed, _)| *changed == path);
        let mode = settings().modes.iter().rfind(|(changed, _)| *changed == path);
        let mode = mode.map_or(0o666, |(_, mode)| *mode);
        let entry = match change {
            Some((_, NodeChange::Absent)) => Entry::Nothing,
            Some((_, NodeChange::Numbers(wrong_major, wrong_minor))) => Entry::Device {
                major: *wrong_major,
                minor: *wrong_minor,
                right: (*wrong_major, *wrong_minor) == (major, minor),
                mode,
            },
            None => Entry::Device { major, minor, right: true, mode },
        };
        tree.insert(path, entry);
    };
    node("/dev/nvidiactl".to_owned(), MAJOR_NVIDIA, MINOR_CONTROL);
    node("/dev/nvidia-uvm".to_owned(), MAJOR_UVM, 0);
    node("/dev/nvidia-uvm-tools".to_owned(), MAJOR_UVM, 1);
    for gpu in machine::gpus() {
        node(format!("/dev/nvidia{}", gpu.index), MAJOR_NVIDIA, gpu.index);
    }
}

fn add_module_files(tree: &mut BTreeMap<String, Entry>) {
    let version = &settings().version;
    let mut text = |path: &str, contents: String| {
        tree.insert(path.to_owned(), Entry::Text(contents));
    };
    text(
        "/proc/driver/nvidia/version",
        format!(
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {version}  Release Build  \
             (fakerm)\nGCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n"
        ),
    );
    text("/proc/driver/nvidia/params", PARAMETERS.to_owned());
    for module in ["nvidia", "nvidia_uvm"] {
        text(&format!("/sys/module/{module}/initstate"), "live\n".to_owned());
        text(&format!("/sys/module/{module}/version"), format!("{version}\n"));
        text(&format!("/sys/module/{module}/refcnt"), "1\n".to_owned());
        text(&format!("/sys/module/{module}/taint"), "OE\n".to_owned());
    }
    let disabled = if settings().hmm { "N\n" } else { "Y\n" };
    text("/sys/module/nvidia_uvm/parameters/uvm_disable_hmm", disabled.to_owned());
    let control = if version.starts_with("535") { "195 nvidia-frontend\n" } else { CONTROL_MAJORS };
    let majors = format!("{control}{MAJOR_UVM} nvidia-uvm\n");
    tree.insert("/proc/devices".to_owned(), Entry::Added(c"/proc/devices", 1, majors));
    tree.insert(
        "/proc/modules".to_owned(),
        Entry::Added(c"/proc/modules", 0, LOADED_MODULES.to_owned()),
    );
}

/// Names of major 195 since branch 545.
const CONTROL_MAJORS: &str = "195 nvidia\n195 nvidiactl\n195 nvidia-modeset\n";

const LOADED_MODULES: &str = "nvidia_uvm 4796416 0 - Live 0x0000000000000000 (OE)\n\
    nvidia 54493184 1 nvidia_uvm, Live 0x0000000000000000 (OE)\n";

/// The parameters that libraries read before they make nodes.
const PARAMETERS: &str = "ResmanDebugLevel: 4294967295\nRmLogonRC: 1\nModifyDeviceFiles: 1\n\
    DeviceFileUID: 0\nDeviceFileGID: 0\nDeviceFileMode: 438\nEnableMSI: 1\n\
    EnableGpuFirmware: 18\nOpenRmEnableUnsupportedGpus: 1\nRegistryDwords: \"\"\n\
    RegistryDwordsPerDevice: \"\"\nRmMsg: \"\"\nGpuBlacklist: \"\"\nTemporaryFilePath: \"\"\n\
    ExcludedGpus: \"\"\n";

fn add_gpu_files(tree: &mut BTreeMap<String, Entry>, gpu: machine::Gpu) {
    let address = gpu.address();
    let chip = settings().chip;
    tree.insert(
        format!("/proc/driver/nvidia/gpus/{address}/information"),
        Entry::Text(format!(
            "Model: \t\t {}\nIRQ:   \t\t 120\nGPU UUID: \t {}\nVideo BIOS: \t 92.00.45.00.05\n\
             Bus Type: \t PCIe\nDMA Size: \t 47 bits\nDMA Mask: \t 0x7fffffffffff\n\
             Bus Location: \t {address}\nDevice Minor: \t {}\nGPU Firmware: \t {}\n\
             GPU Excluded:\t No\n",
            chip.name(),
            gpu.uuid(),
            gpu.index,
            settings().version,
        )),
    );
    let bus = gpu.bus();
    let device =
        format!("/sys/devices/pci0000:{:02x}/0000:{:02x}:01.0/{address}", bus - 1, bus - 1);
    tree.insert(
        format!("/sys/bus/pci/devices/{address}"),
        Entry::Link(device.replacen("/sys/", "../../../", 1)),
    );
    let window = 0x2_0000_0000_0000_u64 + (u64::from(gpu.index) << 40);
    let files = [
        ("vendor", "0x10de\n".to_owned()),
        ("device", format!("0x{:04x}\n", chip.device_id())),
        ("subsystem_vendor", "0x10de\n".to_owned()),
        ("subsystem_device", "0x1463\n".to_owned()),
        ("class", "0x030200\n".to_owned()),
        ("revision", "0xa1\n".to_owned()),
        ("numa_node", "0\n".to_owned()),
        ("current_link_speed", "16.0 GT/s PCIe\n".to_owned()),
        ("max_link_speed", "16.0 GT/s PCIe\n".to_owned()),
        ("current_link_width", "16\n".to_owned()),
        ("max_link_width", "16\n".to_owned()),
        ("power/runtime_status", "active\n".to_owned()),
        ("power_state", "D0\n".to_owned()),
        ("enable", "1\n".to_owned()),
        ("resource", resources(window)),
    ];
    for (name, contents) in files {
        tree.insert(format!("{device}/{name}"), Entry::Text(contents));
    }
    tree.insert(
        format!("{device}/driver"),
        Entry::Link("../../../../bus/pci/drivers/nvidia".to_owned()),
    );
    tree.insert("/sys/bus/pci/drivers/nvidia".to_owned(), Entry::Folder);
}

/// The `resource` file: registers in BAR 0, the memory window in BAR 1.
fn resources(window: u64) -> String {
    let registers = format!(
        "0x00000000d0000000 0x{:016x} 0x0000000000040200\n",
        0xd000_0000 + machine::BAR0_BYTES - 1
    );
    let window = format!(
        "0x{window:016x} 0x{:016x} 0x000000000014220c
",
        window + machine::BAR1_BYTES - 1
    );
    registers + &window + &"0x0000000000000000 0x0000000000000000 0x0000000000000000\n".repeat(5)
}

/// Adds the folders above each entry, up to the ones that any Linux system has.
fn add_folders(tree: &mut BTreeMap<String, Entry>) {
    const REAL: [&str; 8] = [
        "/dev",
        "/proc",
        "/proc/driver",
        "/sys",
        "/sys/module",
        "/sys/devices",
        "/sys/bus/pci/devices",
        "/sys/bus/pci/drivers",
    ];
    let paths: Vec<String> = tree.keys().cloned().collect();
    for path in paths {
        let mut path = path.as_str();
        while let Some((parent, _)) = path.rsplit_once('/') {
            if parent.is_empty() || REAL.contains(&parent) {
                break;
            }
            tree.entry(parent.to_owned()).or_insert(Entry::Folder);
            path = parent;
        }
    }
}
