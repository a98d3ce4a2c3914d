//! Layouts of the driver's parameter structures, by branch.
//!
//! Tables `nv_struct_layouts` (branch 595), `nv_struct_layouts_branch_diffs` (older branches where
//! they differ) and `uvm_struct_layouts`: compiled from the headers of
//! NVIDIA/open-gpu-kernel-modules, 64-bit.

use crate::number;
use crate::table::Row;
use crate::tables::{NV_STRUCT_LAYOUTS, NV_STRUCT_LAYOUTS_BRANCH_DIFFS, UVM_STRUCT_LAYOUTS};
use crate::uvm;

/// The branch that `nv_struct_layouts` was compiled from.
const NEWEST: u32 = 595;

/// One field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// Bytes from the start of the structure.
    pub offset: u32,
    /// Bytes.
    pub size: u32,
    /// The name, with dots for members of members.
    pub name: &'static str,
    /// The C type.
    pub kind: &'static str,
    /// Bytes of the whole structure.
    pub struct_size: u32,
}

impl Field {
    fn of(row: Row, size_column: &str) -> Option<Field> {
        Some(Field {
            offset: row.number_u32("offset")?,
            size: row.number_u32("size")?,
            name: row.text("field"),
            kind: row.text("type"),
            struct_size: row.number_u32(size_column)?,
        })
    }
}

/// The fields of a structure in a driver branch, by offset. Empty when the structure is not known,
/// the branch is older than 535, or the measured branches on either side of it differ.
pub fn fields(name: &str, branch: u32) -> Vec<Field> {
    let Some((below, above)) = number::measured_neighbors(branch) else {
        return Vec::new();
    };
    let layout = measured(name, below);
    if below == above || layout == measured(name, above) { layout } else { Vec::new() }
}

/// The size of a structure in a driver branch, in bytes.
pub fn size(name: &str, branch: u32) -> Option<u32> {
    fields(name, branch).first().map(|field| field.struct_size)
}

/// The names of all structures.
pub fn names() -> impl Iterator<Item = &'static str> {
    let mut names: Vec<&str> = NV_STRUCT_LAYOUTS.rows().map(|row| row.text("struct")).collect();
    names.extend(UVM_STRUCT_LAYOUTS.rows().map(|row| row.text("struct")));
    names.sort_unstable();
    names.dedup();
    names.into_iter()
}

/// The layout in a measured branch. An older branch has rows of its own only where it differs from
/// the next newer one, so the rows that hold are those of the oldest branch that is not older.
fn measured(name: &str, branch: u32) -> Vec<Field> {
    if name.starts_with("UVM_") { uvm_fields(name, branch) } else { nv_fields(name, branch) }
}

fn uvm_fields(name: &str, branch: u32) -> Vec<Field> {
    // The layout table does not tell when a request came or went; the request table does.
    let request = uvm::all().find(|request| request.parameters == name);
    if request.is_none_or(|request| request.size_in(branch).is_none()) {
        return Vec::new();
    }
    let rows = || UVM_STRUCT_LAYOUTS.rows().filter(|row| row.text("struct") == name);
    let listed = rows().filter_map(|row| row.number_u32("branch"));
    let Some(holds) = listed.filter(|known| *known >= branch).min() else {
        return Vec::new();
    };
    rows()
        .filter(|row| row.number_u32("branch") == Some(holds))
        .filter_map(|row| Field::of(row, "struct_size"))
        .collect()
}

fn nv_fields(name: &str, branch: u32) -> Vec<Field> {
    let older: Vec<Field> = NV_STRUCT_LAYOUTS_BRANCH_DIFFS
        .rows()
        .filter(|row| row.text("struct") == name && row.number_u32("branch") == Some(branch))
        .filter_map(|row| Field::of(row, "struct_size"))
        .collect();
    if branch < NEWEST && !older.is_empty() {
        return older;
    }
    NV_STRUCT_LAYOUTS
        .rows()
        .filter(|row| row.text("struct") == name)
        .filter_map(|row| Field::of(row, "struct_size_595"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ioctl;

    #[test]
    fn the_control_structure_is_the_same_everywhere() {
        for branch in [535, 545, 550, 565, 580, 595, 620] {
            let fields = fields("NVOS54_PARAMETERS", branch);
            let offset = |name| fields.iter().find(|field| field.name == name).unwrap().offset;
            assert_eq!(
                (offset("cmd"), offset("params"), offset("status")),
                (8, 16, 28),
                "{branch}"
            );
        }
        assert_eq!(fields("NVOS54_PARAMETERS", 470), []);
        assert_eq!(fields("NO_SUCH_PARAMETERS", 595), []);
    }

    #[test]
    fn sizes_agree_with_the_request_tables_in_every_measured_branch() {
        for branch in number::MEASURED_BRANCHES {
            for request in uvm::all().filter(|request| request.size_in(branch).is_some()) {
                let known = size(request.parameters, branch);
                assert_eq!(known, request.size_in(branch), "{} in {branch}", request.name);
            }
            for escape in
                ioctl::all().filter(|escape| names().any(|name| name == escape.parameters))
            {
                let Some(listed) = escape.size_in(branch) else {
                    continue;
                };
                assert_eq!(size(escape.parameters, branch), Some(listed), "{escape:?} {branch}");
            }
        }
    }

    #[test]
    fn a_structure_that_came_later_has_no_older_layout() {
        assert_eq!(size("UVM_DISCARD_PARAMS", 580), Some(32));
        assert_eq!(size("UVM_DISCARD_PARAMS", 550), None);
        assert_eq!(size("UVM_RUN_TEST_PARAMS", 595), None);
        assert_eq!(size("UVM_RUN_TEST_PARAMS", 550), Some(44));
    }
}
