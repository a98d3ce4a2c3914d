//! Two questions to /dev/nvidiactl that need no library, take no RM lock and write no log line.
//!
//! Request numbers and layouts: nv-ioctl-numbers.h and nv-ioctl.h of NVIDIA's open kernel modules,
//! the same from branch 515 to 595.

use std::os::fd::{AsFd, AsRawFd};

use facts::Errno;

use super::check;

/// `NV_ESC_CHECK_VERSION_STR` with its 72-byte structure.
const CHECK_VERSION_STR: libc::Ioctl = 0xc048_46d2_u32 as libc::Ioctl;
/// `NV_ESC_CARD_INFO` with 32 entries of 72 bytes.
const CARD_INFO: libc::Ioctl = 0xc900_46c8_u32 as libc::Ioctl;
/// Length of `nv_ioctl_rm_api_version_t` and of `nv_ioctl_card_info_t`.
const STRUCTURE_BYTES: usize = 72;
/// Entries that user space asks for (`NV_MAX_DEVICES` of the libraries).
const CARDS: usize = 32;
/// The query mode of the version check, `'2'`: answers the module's version and compares nothing.
/// The strict mode would write "API mismatch" to the kernel log.
const VERSION_QUERY: u32 = 0x32;

/// `NV_ESC_RM_CONTROL` and `NV_ESC_RM_ALLOC` with the lengths of NVOS54 and NVOS64, and two requests
/// of UVM, which are bare numbers.
pub(crate) const RM_REQUESTS: [(&str, u32); 2] =
    [("RM_CONTROL", 0xc020_462a), ("RM_ALLOC", 0xc030_462b)];
/// As [`RM_REQUESTS`], of /dev/nvidia-uvm.
pub(crate) const UVM_REQUESTS: [(&str, u32); 2] =
    [("UVM_INITIALIZE", 0x3000_0001), ("UVM_REGISTER_GPU", 0x25)];

/// Sends a request with no structure, to learn whether it reaches the driver, which answers that
/// there is nothing at that address before it does anything else. Whatever the driver answers is
/// success; EPERM and ENOSYS are never its answers, but those of a filter before it.
pub(crate) fn reaches_driver(node: impl AsFd, request: u32) -> Result<(), Errno> {
    let fd = node.as_fd().as_raw_fd();
    let nowhere = std::ptr::null_mut::<libc::c_void>();
    // SAFETY: the kernel checks the address before it reads from it.
    match check(unsafe { libc::ioctl(fd, libc::Ioctl::from(request), nowhere) }) {
        Err(errno @ (Errno::EPERM | Errno::ENOSYS)) => Err(errno),
        _ => Ok(()),
    }
}

/// One GPU as the module lists it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Card {
    /// PCI domain.
    pub(crate) domain: u32,
    /// PCI bus.
    pub(crate) bus: u8,
    /// PCI slot.
    pub(crate) slot: u8,
    /// PCI function.
    pub(crate) function: u8,
    /// PCI vendor.
    pub(crate) vendor: u16,
    /// PCI device.
    pub(crate) device: u16,
    /// The module's own number of the GPU.
    pub(crate) gpu_id: u32,
    /// Interrupt line; 0 for none.
    pub(crate) interrupt: u16,
    /// Physical address and length of BAR0.
    pub(crate) registers: (u64, u64),
    /// Physical address and length of BAR1.
    pub(crate) memory: (u64, u64),
    /// Minor number, the N of /dev/nvidiaN.
    pub(crate) minor: u32,
}

/// The module's version, asked in query mode. Branches before 530 know no query mode and leave
/// the text empty.
pub(crate) fn module_version(control: impl AsFd) -> Result<String, Errno> {
    let mut structure = [0_u8; STRUCTURE_BYTES];
    structure[..4].copy_from_slice(&VERSION_QUERY.to_ne_bytes());
    let fd = control.as_fd().as_raw_fd();
    // SAFETY: the request's size field says 72 bytes, which is what the kernel reads and writes.
    check(unsafe { libc::ioctl(fd, CHECK_VERSION_STR, structure.as_mut_ptr()) })?;
    let text = structure.get(8..).unwrap_or_default();
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(text).into_owned())
}

/// The GPUs that the module has taken. Excluded ones are left out by the module.
pub(crate) fn cards(control: impl AsFd) -> Result<Vec<Card>, Errno> {
    let mut table = vec![0_u8; STRUCTURE_BYTES * CARDS];
    let fd = control.as_fd().as_raw_fd();
    // SAFETY: the request's size field says 32 entries of 72 bytes, the length of `table`.
    check(unsafe { libc::ioctl(fd, CARD_INFO, table.as_mut_ptr()) })?;
    Ok(table.chunks_exact(STRUCTURE_BYTES).filter_map(read_card).collect())
}

/// Reads one entry; `None` when its valid flag is not set.
fn read_card(entry: &[u8]) -> Option<Card> {
    if *entry.first()? == 0 {
        return None;
    }
    Some(Card {
        domain: u32::from_ne_bytes(field(entry, 4)?),
        bus: *entry.get(8)?,
        slot: *entry.get(9)?,
        function: *entry.get(10)?,
        vendor: u16::from_ne_bytes(field(entry, 12)?),
        device: u16::from_ne_bytes(field(entry, 14)?),
        gpu_id: u32::from_ne_bytes(field(entry, 16)?),
        interrupt: u16::from_ne_bytes(field(entry, 20)?),
        registers: (u64::from_ne_bytes(field(entry, 24)?), u64::from_ne_bytes(field(entry, 32)?)),
        memory: (u64::from_ne_bytes(field(entry, 40)?), u64::from_ne_bytes(field(entry, 48)?)),
        minor: u32::from_ne_bytes(field(entry, 56)?),
    })
}

/// The bytes of a field at an offset.
fn field<const LENGTH: usize>(entry: &[u8], offset: usize) -> Option<[u8; LENGTH]> {
    entry.get(offset..offset + LENGTH)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_read_at_the_offsets_of_the_drivers_header() {
        let mut entry = [0_u8; STRUCTURE_BYTES];
        assert_eq!(read_card(&entry), None);
        entry[0] = 1;
        entry[4] = 2;
        entry[8] = 0x41;
        entry[12..16].copy_from_slice(&[0xde, 0x10, 0x35, 0x23]);
        entry[40..48].copy_from_slice(&0x38_0000_0000_u64.to_ne_bytes());
        entry[56] = 3;
        let card = read_card(&entry).unwrap();
        assert_eq!((card.domain, card.bus, card.minor), (2, 0x41, 3));
        assert_eq!((card.vendor, card.device), (0x10de, 0x2335));
        assert_eq!(card.memory.0, 0x38_0000_0000);
    }

    #[test]
    fn a_file_that_is_no_driver_answers_not_a_terminal() {
        let null = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(module_version(&null), Err(Errno::ENOTTY));
        assert_eq!(cards(&null), Err(Errno::ENOTTY));
    }
}
