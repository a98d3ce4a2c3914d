//! The machine that is pretended: its GPUs and the numbers they are known by.

use crate::settings::settings;

/// Major number of the control and GPU nodes, fixed by the driver.
pub(crate) const MAJOR_NVIDIA: u32 = 195;
/// Minor number of /dev/nvidiactl.
pub(crate) const MINOR_CONTROL: u32 = 255;
/// Major number of the UVM nodes. The kernel hands it out at load time; this is a usual one.
pub(crate) const MAJOR_UVM: u32 = 511;
/// PCI vendor id of NVIDIA.
pub(crate) const VENDOR_NVIDIA: u16 = 0x10de;
/// Memory of each GPU in KiB, the unit of RM's answers: 80 GiB.
pub(crate) const MEMORY_KIB: u32 = 80 * 1024 * 1024;
/// Size of BAR 0 (registers) in bytes.
pub(crate) const BAR0_BYTES: u64 = 16 << 20;
/// Size of BAR 1 (memory window) in bytes.
pub(crate) const BAR1_BYTES: u64 = 128 << 30;

/// Chips that can be pretended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Chip {
    /// A100.
    Ga100,
    /// H100.
    Gh100,
}

impl Chip {
    /// The chip of this name in lower case.
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "ga100" => Some(Self::Ga100),
            "gh100" => Some(Self::Gh100),
            _ => None,
        }
    }

    /// PCI device id.
    pub(crate) fn device_id(self) -> u16 {
        match self {
            Self::Ga100 => 0x20b2,
            Self::Gh100 => 0x2330,
        }
    }

    /// Marketing name, as RM tells it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ga100 => "NVIDIA A100-SXM4-80GB",
            Self::Gh100 => "NVIDIA H100 80GB HBM3",
        }
    }

    /// Chip name, as RM tells it.
    pub(crate) fn short_name(self) -> &'static str {
        match self {
            Self::Ga100 => "GA100",
            Self::Gh100 => "GH100",
        }
    }

    /// Architecture number of `NV2080_CTRL_CMD_MC_GET_ARCH_INFO`; the implementation is 0 for both.
    pub(crate) fn architecture(self) -> u32 {
        match self {
            Self::Ga100 => 0x170,
            Self::Gh100 => 0x180,
        }
    }

    /// Compute capability times ten.
    pub(crate) fn capability(self) -> u32 {
        match self {
            Self::Ga100 => 80,
            Self::Gh100 => 90,
        }
    }

    /// RM classes that the chip offers, so far as the libraries choose by them: user-mode
    /// doorbell, channel group, channel, compute, copy engine, address space and memory.
    pub(crate) fn classes(self) -> &'static [u32] {
        match self {
            Self::Ga100 => &[
                0x0080, 0x2080, 0x90f1, 0x50a0, 0x003e, 0x0040, 0x0070, 0xa06c, 0xc461, 0xc561,
                0xc56f, 0xc6c0, 0xc6b5, 0x9067, 0x902d,
            ],
            Self::Gh100 => &[
                0x0080, 0x2080, 0x90f1, 0x50a0, 0x003e, 0x0040, 0x0070, 0xa06c, 0xc461, 0xc561,
                0xc661, 0xc86f, 0xcbc0, 0xc8b5, 0x9067, 0x902d,
            ],
        }
    }
}

/// One pretended GPU.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gpu {
    /// Minor number and RM instance.
    pub(crate) index: u32,
}

impl Gpu {
    /// PCI bus number. Each GPU has a bus of its own.
    pub(crate) fn bus(self) -> u8 {
        u8::try_from(0x41 + self.index * 0x10).unwrap_or(0x41)
    }

    /// RM's id of the GPU: domain, bus and slot in one number.
    pub(crate) fn id(self) -> u32 {
        u32::from(self.bus()) << 8
    }

    /// PCI address in the kernel's spelling.
    pub(crate) fn address(self) -> String {
        format!("0000:{:02x}:00.0", self.bus())
    }

    /// The bytes of the UUID.
    pub(crate) fn uuid_bytes(self) -> [u8; 16] {
        let mut bytes = *b"\xfa\xce\x00\x00\x11\x11\x22\x22\x33\x33\x44\x44\x55\x55\x66\x60";
        bytes[15] |= u8::try_from(self.index).unwrap_or(0);
        bytes
    }

    /// The UUID as text, `GPU-…`.
    pub(crate) fn uuid(self) -> String {
        let hex = format!("{:032x}", u128::from_be_bytes(self.uuid_bytes()));
        let parts = [0..8, 8..12, 12..16, 16..20, 20..32];
        parts
            .into_iter()
            .fold("GPU".to_owned(), |uuid, part| uuid + "-" + hex.get(part).unwrap_or_default())
    }
}

/// The GPUs that are pretended.
pub(crate) fn gpus() -> impl Iterator<Item = Gpu> {
    (0..settings().gpus).map(|index| Gpu { index })
}

/// The GPU with this RM id.
pub(crate) fn gpu_with_id(id: u32) -> Option<Gpu> {
    gpus().find(|gpu| gpu.id() == id)
}
