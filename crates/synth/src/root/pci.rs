//! GPUs on the PCI bus.

use std::fmt::Write as _;
use std::io;

use super::FakeRoot;

/// A GPU as sysfs and the driver's /proc show it.
#[derive(Debug, Clone)]
pub struct PciGpu {
    /// PCI address, such as `0000:41:00.0`.
    pub address: String,
    /// Folder of the device below `/sys/devices`, without the address: its bridges.
    pub bridges: String,
    /// PCI device id.
    pub device: u16,
    /// PCI subsystem device id.
    pub subsystem: u16,
    /// Name that the driver gives it.
    pub name: String,
    /// UUID, or `GPU-????????-????-????-????-????????????` before initialization.
    pub uuid: String,
    /// GSP firmware version, or `N/A`.
    pub firmware: String,
    /// Driver bound to it; `None` leaves the device without one.
    pub driver: Option<String>,
    /// Current and full link width.
    pub link_width: (u32, u32),
    /// NUMA node, −1 for none.
    pub numa_node: i32,
    /// IOMMU group.
    pub iommu_group: Option<u32>,
}

impl PciGpu {
    /// An RTX PRO 6000 Blackwell Server Edition below a bridge of its own, bound to `nvidia`.
    pub fn rtx_pro_6000(number: u32, firmware: &str) -> Self {
        let bus = 0x01 + number * 0x20;
        Self {
            address: format!("0000:{bus:02x}:00.0"),
            bridges: format!("pci0000:{:02x}/0000:{:02x}:01.1", bus - 1, bus - 1),
            device: 0x2bb5,
            subsystem: 0x204e,
            name: "NVIDIA RTX PRO 6000 Blackwell Server Edition".to_owned(),
            uuid: format!("GPU-5a5a0000-0000-4000-8000-{number:012x}"),
            firmware: firmware.to_owned(),
            driver: Some("nvidia".to_owned()),
            link_width: (16, 16),
            numa_node: 0,
            iommu_group: Some(20 + number),
        }
    }
}

impl FakeRoot {
    /// Puts a GPU on the bus, and into the driver's list if it is bound to `nvidia`.
    pub fn gpu(&self, minor: u32, gpu: &PciGpu) -> io::Result<&Self> {
        let address = &gpu.address;
        let device = format!("/sys/devices/{}/{address}", gpu.bridges);
        let width = gpu.link_width;
        let files = [
            ("vendor", "0x10de".to_owned()),
            ("device", format!("0x{:04x}", gpu.device)),
            ("subsystem_vendor", "0x10de".to_owned()),
            ("subsystem_device", format!("0x{:04x}", gpu.subsystem)),
            ("class", "0x030200".to_owned()),
            ("revision", "0xa1".to_owned()),
            ("numa_node", gpu.numa_node.to_string()),
            ("current_link_speed", "32.0 GT/s PCIe".to_owned()),
            ("max_link_speed", "32.0 GT/s PCIe".to_owned()),
            ("current_link_width", width.0.to_string()),
            ("max_link_width", width.1.to_string()),
            ("power_state", "D0".to_owned()),
            ("power/runtime_status", "active".to_owned()),
            ("resource", resources(minor)),
        ];
        for (name, value) in files {
            self.file(&format!("{device}/{name}"), value + "\n")?;
        }
        self.link(
            &format!("/sys/bus/pci/devices/{address}"),
            &format!("../../../devices/{}/{address}", gpu.bridges),
        )?;
        let up = "../".repeat(gpu.bridges.split('/').count() + 2);
        if let Some(driver) = &gpu.driver {
            self.folder(&format!("/sys/bus/pci/drivers/{driver}"))?
                .link(&format!("{device}/driver"), &format!("{up}bus/pci/drivers/{driver}"))?;
        }
        if let Some(group) = gpu.iommu_group {
            self.file(&format!("/sys/kernel/iommu_groups/{group}/type"), "DMA-FQ\n")?.link(
                &format!("{device}/iommu_group"),
                &format!("{up}kernel/iommu_groups/{group}"),
            )?;
        }
        if gpu.driver.as_deref() == Some("nvidia") {
            self.file(
                &format!("/proc/driver/nvidia/gpus/{address}/information"),
                information(minor, gpu),
            )?;
        }
        Ok(self)
    }
}

fn information(minor: u32, gpu: &PciGpu) -> String {
    format!(
        "Model: \t\t {}\nIRQ:   \t\t 120\nGPU UUID: \t {}\nVideo BIOS: \t 98.02.6d.00.03\n\
         Bus Type: \t PCIe\nDMA Size: \t 52 bits\nDMA Mask: \t 0xfffffffffffff\n\
         Bus Location: \t {}\nDevice Minor: \t {minor}\nGPU Firmware: \t {}\nGPU Excluded:\t No\n",
        gpu.name, gpu.uuid, gpu.address, gpu.firmware
    )
}

/// Six base address registers and the ROM: registers of 64 MiB in BAR 0, 128 GiB of memory in
/// BAR 1, 32 MiB in BAR 3.
fn resources(minor: u32) -> String {
    let minor = u64::from(minor);
    let bars = [
        (0xb000_0000 + (minor << 27), 64 << 20, 0x0004_0200_u64),
        (0x2000_0000_0000 + (minor << 38), 128 << 30, 0x0014_220c),
        (0, 0, 0),
        (0x3000_0000_0000 + (minor << 38), 32 << 20, 0x0014_220c),
    ];
    let mut text = String::new();
    for (start, size, flags) in bars.into_iter().chain([(0, 0, 0); 3]) {
        let end = if size == 0 { 0 } else { start + size - 1 };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "0x{start:016x} 0x{end:016x} 0x{flags:016x}");
    }
    text.trim_end().to_owned()
}
