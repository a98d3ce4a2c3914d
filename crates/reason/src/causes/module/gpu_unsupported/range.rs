//! Which releases drive which GPU, as far as the tables tell.

use facts::version::DriverVersion;
use nvabi::chip;
use nvabi::pci_id::PciId;

use crate::readings::Board;

/// A release against a GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Range {
    /// The release drives it.
    Inside,
    /// It does not, and why.
    Outside(String),
    /// The tables do not tell.
    Unknown,
}

/// Architecture, the first branch with any GPU of it, and a branch from which on all of its GPUs
/// are driven; 0 where the list of single boards decides. From the release notes of these branches
/// (highlights, "added support for the following GPUs").
const BRANCHES: [(&str, u32, u32); 8] = [
    ("Maxwell", 331, 346),
    ("Pascal", 361, 384),
    ("Volta", 375, 396),
    ("Turing", 410, 440),
    ("Ampere", 450, 470),
    ("Ada", 520, 0),
    ("Hopper", 515, 0),
    ("Blackwell", 570, 0),
];

/// The last branch that drives a chip, when later ones do not.
pub(super) fn last_branch(name: &str) -> Option<u32> {
    chip::by_name(name)?.proprietary_last_branch
}

/// A device by its PCI id.
pub(super) fn of_device(id: &PciId, release: &DriverVersion) -> Range {
    let name = id.product_name.unwrap_or(id.name);
    let by_chip = of_chip(name, id.chip, id.architecture, release);
    if by_chip != Range::Unknown {
        return by_chip;
    }
    // `>=575.57.08`, `>=570 family`: the first README that lists the board.
    let listed = id.first_driver_seen.strip_prefix(">=").unwrap_or("");
    let first = listed.split([' ', '.']).next().and_then(|branch| branch.parse::<u32>().ok());
    match first {
        Some(first) if release.branch() > first => Range::Inside,
        _ => Range::Unknown,
    }
}

/// A board by its name's chip.
pub(super) fn of_board(board: &Board, release: &DriverVersion) -> Range {
    let Some(chip) = board.product.chip else { return Range::Unknown };
    of_chip(&board.name, chip, board.product.architecture, release)
}

fn of_chip(name: &str, chip: &str, architecture: &str, release: &DriverVersion) -> Range {
    let branch = release.branch();
    if let Some(last) = last_branch(chip).filter(|last| branch > *last) {
        return Range::Outside(format!("{last} is the last branch that drives {name}"));
    }
    let row = BRANCHES.iter().find(|(known, ..)| architecture.starts_with(known));
    match row {
        Some((known, first, _)) if branch < *first => {
            Range::Outside(format!("{name} is of {known}, which {first} is the first to drive"))
        }
        Some((.., all)) if *all > 0 && branch >= *all => Range::Inside,
        _ => Range::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nvabi::pci_id::by_device;

    fn judged(device: u16, release: &str) -> Range {
        of_device(&by_device(device).unwrap(), &DriverVersion::parse(release).unwrap())
    }

    #[test]
    fn too_new_too_old_and_in_between() {
        // GTX 1050 Mobile, Quadro M2000M, H100 PCIe, RTX 5090, RTX 3090.
        assert!(matches!(judged(0x1c8d, "595.71.05"), Range::Outside(_)));
        assert_eq!(judged(0x1c8d, "580.95.05"), Range::Inside);
        assert_eq!(judged(0x13b0, "367.57"), Range::Inside);
        assert_eq!(judged(0x2331, "550.90.07"), Range::Inside);
        assert!(matches!(judged(0x2b85, "550.144.03"), Range::Outside(_)));
        assert!(matches!(judged(0x2204, "440.100"), Range::Outside(_)));
        assert_eq!(judged(0x2204, "455.23.04"), Range::Unknown);
    }

    #[test]
    fn every_architecture_of_the_table_of_chips_has_a_row() {
        for chip in chip::all() {
            let known = BRANCHES.iter().any(|(known, ..)| chip.architecture.starts_with(known));
            assert!(known, "{}", chip.architecture);
        }
    }
}
