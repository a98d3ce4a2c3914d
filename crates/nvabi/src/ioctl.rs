//! Requests to /dev/nvidiactl and /dev/nvidiaN: the escapes and how a request number carries them.
//!
//! A request is read+write (0xc0000000), the size of its parameters in bits 16 to 29, type `F`
//! (0x46) in bits 8 to 15, and the escape's number below. RM failure shows in the status field of
//! the parameters while the ioctl returns 0.
//!
//! Table `nv_ioctls`: `nv-ioctl.h`, `nv_escape.h` and `escape.c` of
//! NVIDIA/open-gpu-kernel-modules.

use crate::number;
use crate::struct_layout;
use crate::table::Row;
use crate::tables::NV_IOCTLS;

/// The type letter of the driver's requests, `F`.
const TYPE: u32 = 0x46;
/// Both direction bits, which every request of the driver has.
const READ_WRITE: u32 = 3;

/// One escape with one of its parameter structures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Escape {
    /// The number in the low byte of a request.
    pub nr: u32,
    /// The name, such as `NV_ESC_RM_CONTROL`.
    pub name: &'static str,
    /// The parameter structure.
    pub parameters: &'static str,
    /// Its size in bytes in branch 595 (of one element, for arrays); `None` where there is none.
    pub size: Option<u32>,
    /// Which node it is for: `ctl`, `dev` or `either`, perhaps with a remark.
    pub node: &'static str,
    /// Where in the parameters the NV_STATUS stands in branch 595, in bytes; `None` where there is
    /// none.
    pub status_offset: Option<u32>,
    /// Remarks. May be empty.
    pub note: &'static str,
    sizes: &'static str,
}

impl Escape {
    fn of(row: Row) -> Escape {
        Escape {
            nr: row.number_u32("nr_dec").unwrap_or(u32::MAX),
            name: row.text("name"),
            parameters: row.text("param_struct"),
            size: row.number_u32("size_595"),
            node: row.text("node"),
            status_offset: status_offset(row.text("status_offset")),
            note: row.text("note"),
            sizes: row.text("size_by_branch"),
        }
    }

    /// The size of the parameters in a driver branch, in bytes; `None` when it is not known.
    pub fn size_in(&self, branch: u32) -> Option<u32> {
        number::value_for_branch(self.sizes, branch)
    }

    /// Where the NV_STATUS stands in a driver branch, in bytes. Structures that grew moved it.
    pub fn status_offset_in(&self, branch: u32) -> Option<u32> {
        let now = self.status_offset?;
        let fields = struct_layout::fields(self.parameters, branch);
        let status = fields.iter().find(|field| field.name == "status");
        status.map_or(Some(now), |field| Some(field.offset))
    }

    /// Whether `size` fits these parameters in any branch; an array fits with each whole count.
    fn accepts(&self, size: u32) -> bool {
        let is_array = self.parameters.ends_with("[N]");
        let listed = self.sizes.split(',').filter_map(|part| part.split_once(':')?.1.parse().ok());
        let mut sizes = listed.chain(self.size);
        sizes.any(|known: u32| known == size || (is_array && size.is_multiple_of(known)))
    }
}

/// A cell that says more than a number is about a field that is not the status (the reply of
/// NV_ESC_CHECK_VERSION_STR).
fn status_offset(cell: &str) -> Option<u32> {
    number::parse_u32(cell)
}

/// A request, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EscapeCall {
    /// The escape's name.
    pub name: &'static str,
    /// The escape's number.
    pub nr: u32,
    /// The size that the request carries, in bytes.
    pub size: u32,
    /// The escape as the table has it: the row whose parameters have that size, or the first.
    pub escape: Escape,
}

/// All rows of a number: NV_ESC_RM_ALLOC has one for each of its two parameter structures.
pub fn escapes(nr: u32) -> impl Iterator<Item = Escape> {
    NV_IOCTLS.numbered("nr_dec", nr.into()).map(Escape::of)
}

/// The escape of that number, the first of its rows.
pub fn escape_by_nr(nr: u32) -> Option<Escape> {
    escapes(nr).next()
}

/// The escape of that name, case aside.
pub fn escape_by_name(name: &str) -> Option<Escape> {
    NV_IOCTLS.find("name", name).map(Escape::of)
}

/// All escapes, by number.
pub fn all() -> impl Iterator<Item = Escape> {
    NV_IOCTLS.rows().map(Escape::of)
}

/// Takes a request number apart; `None` when it is not one of the driver's.
pub fn decode_request(request: u32) -> Option<EscapeCall> {
    let (nr, kind) = (request & 0xff, request >> 8 & 0xff);
    let (size, direction) = (request >> 16 & 0x3fff, request >> 30);
    if kind != TYPE || direction != READ_WRITE {
        return None;
    }
    let fitting = escapes(nr).find(|escape| escape.accepts(size));
    let escape = fitting.or_else(|| escape_by_nr(nr))?;
    Some(EscapeCall { name: escape.name, nr, size, escape })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_taken_apart() {
        let control = decode_request(0xc020_462a).unwrap();
        assert_eq!((control.name, control.nr, control.size), ("NV_ESC_RM_CONTROL", 0x2a, 32));
        assert_eq!(control.escape.status_offset, Some(28));
        let cards = decode_request(0xc900_46c8).unwrap();
        assert_eq!((cards.name, cards.size), ("NV_ESC_CARD_INFO", 32 * 72));
        for request in [0, 0xc020_452a, 0x8020_462a, 0x0000_5401, 0xc004_46ff, u32::MAX] {
            assert_eq!(decode_request(request), None, "{request:#x}");
        }
    }

    #[test]
    fn the_two_alloc_structures_are_told_by_size() {
        let parameters = |request| decode_request(request).map(|call| call.escape.parameters);
        assert_eq!(parameters(0xc020_462b), Some("NVOS21_PARAMETERS"));
        assert_eq!(parameters(0xc030_462b), Some("NVOS64_PARAMETERS"));
    }

    #[test]
    fn every_listed_request_decodes_to_its_row() {
        for row in NV_IOCTLS.rows() {
            let command = row.text("cmd_hex_595").split(' ').next().unwrap();
            if !command.is_empty() {
                let request = number::parse_u32(command).unwrap();
                let call = decode_request(request).unwrap();
                assert_eq!(call.escape, Escape::of(row), "{command}");
            }
        }
    }

    #[test]
    fn sizes_follow_the_branch() {
        let unmap = escape_by_name("NV_ESC_RM_UNMAP_MEMORY_DMA").unwrap();
        assert_eq!((unmap.size_in(535), unmap.size_in(550)), (Some(40), Some(48)));
        assert_eq!((unmap.size_in(545), unmap.size_in(620)), (None, Some(48)));
        let map = escape_by_name("NV_ESC_RM_MAP_MEMORY_DMA").unwrap();
        assert_eq!((map.status_offset_in(570), map.status_offset_in(580)), (Some(48), Some(56)));
        let control = escape_by_nr(0x2a).unwrap();
        assert_eq!(control.status_offset_in(560), Some(28));
    }
}
