//! RM controls: the commands of NV_ESC_RM_CONTROL. A command is class << 16 | category << 8 |
//! index.
//!
//! Table `rm_control_cmds`: the ctrl headers and export tables of NVIDIA/open-gpu-kernel-modules.

use crate::table::Row;
use crate::tables::RM_CONTROL_CMDS;

/// One command under one of its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Control {
    /// The number.
    pub command: u32,
    /// The name, such as `NV2080_CTRL_CMD_GPU_GET_INFO_V2`.
    pub name: &'static str,
    /// The class it is for, as four hexadecimal digits.
    pub class: &'static str,
    /// The parameter structure. May be empty.
    pub parameters: &'static str,
    /// Its size in bytes in branch 595.
    pub size: Option<u32>,
    /// The first and last branch whose headers have the name.
    pub branches: (Option<u32>, Option<u32>),
    /// Who may call it: `any`, `root`, `kernel_only`, or empty when not known.
    pub privilege: &'static str,
    /// Whether it is forwarded to the GSP; `None` when not known. A command that times out points
    /// to the GSP when it is, to the kernel side when it is not.
    pub routed_to_gsp: Option<bool>,
    /// The command's other name when this one is an alias.
    pub alias_of: Option<&'static str>,
}

impl Control {
    fn of(row: Row) -> Control {
        Control {
            command: row.number_u32("value").unwrap_or(u32::MAX),
            name: row.text("name"),
            class: row.text("class"),
            parameters: row.text("params_struct"),
            size: row.number_u32("params_size_595"),
            branches: (row.number_u32("first_branch"), row.number_u32("last_branch")),
            privilege: row.text("caller_privilege"),
            routed_to_gsp: match row.text("routed_to_gsp") {
                "1" => Some(true),
                "0" => Some(false),
                _ => None,
            },
            alias_of: Some(row.text("alias_of")).filter(|name| !name.is_empty()),
        }
    }
}

/// All names of a command: the current one first, then those of older branches, then aliases.
pub fn names(command: u32) -> impl Iterator<Item = Control> {
    RM_CONTROL_CMDS.numbered("value", command.into()).map(Control::of)
}

/// The command of that number under its current name.
pub fn by_command(command: u32) -> Option<Control> {
    names(command).next()
}

/// The command of that name, case aside.
pub fn by_name(name: &str) -> Option<Control> {
    RM_CONTROL_CMDS.find("name", name).map(Control::of)
}

/// All commands, by number.
pub fn all() -> impl Iterator<Item = Control> {
    RM_CONTROL_CMDS.rows().map(Control::of)
}
