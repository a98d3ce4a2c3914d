//! PCI devices and product names: which chip is on a board.
//!
//! Tables `gpu_pci_ids` (pci.ids 2026.10.24, nvidia-detect, the open modules' README) and
//! `open_modules_supported_gpus` (the README of every tag, with subsystem ids).

mod product;

use crate::number;
use crate::table::Row;
use crate::tables::{GPU_PCI_IDS, OPEN_MODULES_SUPPORTED_GPUS};

pub use product::{Product, by_product_name};

/// One PCI device of vendor 10de.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PciId {
    /// The device id.
    pub device: u16,
    /// The chip, such as `GB202`.
    pub chip: &'static str,
    /// The architecture.
    pub architecture: &'static str,
    /// The compute capability, as of CUDA 13.
    pub capability: (u32, u32),
    /// The name in pci.ids, such as `GB202GL [RTX PRO 6000 Blackwell Server Edition]`.
    pub name: &'static str,
    /// The name in the open modules' README, which is what nvidia-smi prints.
    pub product_name: Option<&'static str>,
    /// A guess at the product line, such as `GeForce`. May be empty.
    pub class_guess: &'static str,
    /// The first driver seen that lists it.
    pub first_driver_seen: &'static str,
    /// Whether the open modules drive it, in words.
    pub open_modules: &'static str,
    /// `current`, or which branch is the last to drive it.
    pub last_branch: &'static str,
}

impl PciId {
    fn of(row: Row) -> PciId {
        let device = row.number("pci_device_id").and_then(|id| u16::try_from(id).ok());
        PciId {
            device: device.unwrap_or(0),
            chip: row.text("chip"),
            architecture: row.text("architecture"),
            capability: number::major_minor(row.text("compute_capability")).unwrap_or_default(),
            name: row.text("pci_ids_name"),
            product_name: number::filled(row.text("open_readme_name")),
            class_guess: row.text("class_guess"),
            first_driver_seen: row.text("first_driver_seen"),
            open_modules: row.text("open_modules"),
            last_branch: row.text("last_branch"),
        }
    }
}

/// The device of that id; the vendor is NVIDIA's, 10de.
pub fn by_device(device: u16) -> Option<PciId> {
    GPU_PCI_IDS.numbered("pci_device_id", device.into()).next().map(PciId::of)
}

/// All devices, by id.
pub fn all() -> impl Iterator<Item = PciId> {
    GPU_PCI_IDS.rows().map(PciId::of)
}

/// One board in the README of the open modules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenBoard {
    /// The device id.
    pub device: u16,
    /// The subsystem's vendor and device, where the README tells boards apart by them.
    pub subsystem: Option<(u16, u16)>,
    /// The product name.
    pub product_name: &'static str,
    /// The first tag that lists it.
    pub first_tag: &'static str,
}

impl OpenBoard {
    fn of(row: Row) -> OpenBoard {
        let id = |column| row.number(column).and_then(|id| u16::try_from(id).ok());
        OpenBoard {
            device: id("pci_device_id").unwrap_or(0),
            subsystem: id("subsystem_vendor").zip(id("subsystem_device")),
            product_name: row.text("product_name"),
            first_tag: row.text("first_tag_listed"),
        }
    }
}

/// The boards with a device id that the open modules list.
pub fn open_boards(device: u16) -> impl Iterator<Item = OpenBoard> {
    OPEN_MODULES_SUPPORTED_GPUS.numbered("pci_device_id", device.into()).map(OpenBoard::of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flagship_board() {
        let board = by_device(0x2bb5).unwrap();
        assert_eq!((board.chip, board.capability), ("GB202", (12, 0)));
        assert_eq!(board.product_name, Some("NVIDIA RTX PRO 6000 Blackwell Server Edition"));
        assert_eq!(open_boards(0x2bb5).next().unwrap().first_tag, "575.57.08");
        assert_eq!(by_device(0xffff), None);
    }
}
