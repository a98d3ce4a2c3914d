//! The pretended nodes, files and folders, by path.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use crate::machine::{self, MAJOR_NVIDIA, MAJOR_UVM, MINOR_CONTROL};
use crate::real;
use crate::settings::{NodeChange, settings};

/// What stands at a pretended path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    /// A character device.
    Device {
        /// Major number.
        major: u32,
        /// Minor number.
        minor: u32,
        /// Whether these are the driver's own numbers, so that opening reaches it.
        right: bool,
    },
    /// A text file.
    Text(String),
    /// A file of the real system with lines added after its line number `.1`.
    Added(&'static core::ffi::CStr, usize, String),
    /// A symbolic link.
    Link(String),
    /// A folder.
    Folder,
    /// Nothing, even if the real system has something here.
    Nothing,
}

/// All entries. Folders above an entry are entries too when the real system lacks them.
pub(crate) fn tree() -> &'static BTreeMap<String, Entry> {
    static TREE: OnceLock<BTreeMap<String, Entry>> = OnceLock::new();
    TREE.get_or_init(|| {
        let mut tree = BTreeMap::new();
        add_nodes(&mut tree);
        add_module_files(&mut tree);
        for gpu in machine::gpus() {
            add_gpu_files(&mut tree, gpu);
        }
        add_folders(&mut tree);
        tree
    })
}

/// The entry at an absolute path, links on the way followed; `None` leaves the path to the kernel.
pub(crate) fn find(path: &str) -> Option<&'static Entry> {
    if !["/dev/", "/proc/", "/sys/"].iter().any(|root| path.starts_with(root)) {
        return None;
    }
    tree().get(&resolve_parents(path))
}

/// As [`find`], with a link at the end of the path followed too. Gives the final path as well.
pub(crate) fn find_followed(path: &str) -> Option<(String, &'static Entry)> {
    let mut path = resolve_parents(path);
    for _ in 0..8 {
        match find(&path)? {
            Entry::Link(target) => path = resolve_parents(&join(&path, target)),
            entry => return Some((path, entry)),
        }
    }
    None
}

/// The names in a folder that come from here: shown beside the real ones, if there are any.
pub(crate) fn names_in(folder: &str) -> Vec<(String, &'static Entry)> {
    let folder = resolve_parents(folder);
    let prefix = format!("{}/", folder.trim_end_matches('/'));
    tree()
        .range(prefix.clone()..)
        .take_while(|(path, _)| path.starts_with(&prefix))
        .filter_map(|(path, entry)| {
            let name = path.strip_prefix(&prefix)?;
            (!name.contains('/')).then(|| (name.to_owned(), entry))
        })
        .collect()
}

/// The bytes that reading a text entry gives.
pub(crate) fn contents(entry: &Entry) -> Option<String> {
    match entry {
        Entry::Text(text) => Some(text.clone()),
        Entry::Added(path, after, lines) => {
            let text = real::read_text(path);
            let split = text.split_inclusive('\n').take(*after).map(str::len).sum();
            let (head, rest) = text.split_at_checked(split).unwrap_or(("", &text));
            Some(format!("{head}{lines}{rest}"))
        }
        _ => None,
    }
}

/// The path with `.`, `..` and doubled slashes worked out and links in its folders followed.
fn resolve_parents(path: &str) -> String {
    let mut done = String::new();
    let mut parts = path.split('/').filter(|part| !part.is_empty() && *part != ".").peekable();
    while let Some(part) = parts.next() {
        if part == ".." {
            done.truncate(done.rfind('/').unwrap_or(0));
            continue;
        }
        done = format!("{done}/{part}");
        if parts.peek().is_some()
            && let Some(Entry::Link(target)) = tree().get(&done)
        {
            // Links here lead to folders without links in them, so one step is enough.
            done = join(&done, target);
        }
    }
    done
}

/// Where a link at `path` leads.
fn join(path: &str, target: &str) -> String {
    if target.starts_with('/') {
        return target.to_owned();
    }
    let mut folder: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    folder.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                folder.pop();
            }
            part => folder.push(part),
        }
    }
    format!("/{}", folder.join("/"))
}

fn add_nodes(tree: &mut BTreeMap<String, Entry>) {
    let mut node = |path: String, major: u32, minor: u32| {
        let change = settings().nodes.iter().rfind(|(changed, _)| *changed == path);
        let entry = match change {
            Some((_, NodeChange::Absent)) => Entry::Nothing,
            Some((_, NodeChange::Numbers(wrong_major, wrong_minor))) => Entry::Device {
                major: *wrong_major,
                minor: *wrong_minor,
                right: (*wrong_major, *wrong_minor) == (major, minor),
            },
            None => Entry::Device { major, minor, right: true },
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
    let device = format!("/sys/devices/pci0000:{:02x}/0000:{:02x}:01.0/{address}", bus - 1, bus - 1);
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
    let mut text = format!(
        "0x00000000d0000000 0x{:016x} 0x0000000000040200\n",
        0xd000_0000 + machine::BAR0_BYTES - 1
    );
    text += &format!(
        "0x{window:016x} 0x{:016x} 0x000000000014220c\n",
        window + machine::BAR1_BYTES - 1
    );
    text + &"0x0000000000000000 0x0000000000000000 0x0000000000000000\n".repeat(5)
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
