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

/// The categories of NV20_SUBDEVICE_0 whose commands are in no published header ("legacy": the
/// kernel side hands their parameters to the GSP as they are), as `ctrl2080base.h` calls them.
const LEGACY: [(u32, &str); 17] = [
    (0x81, "GPU_LEGACY_NON_PRIVILEGED"),
    (0x82, "FUSE_LEGACY_NON_PRIVILEGED"),
    (0x85, "THERMAL_LEGACY_NON_PRIVILEGED"),
    (0x90, "CLK_LEGACY_NON_PRIVILEGED"),
    (0xa0, "PERF_LEGACY_NON_PRIVILEGED"),
    (0xa3, "GPIO_LEGACY_NON_PRIVILEGED"),
    (0xa6, "PMGR_LEGACY_NON_PRIVILEGED"),
    (0xa7, "POWER_LEGACY_NON_PRIVILEGED"),
    (0xa8, "LPWR_LEGACY_NON_PRIVILEGED"),
    (0xb2, "VOLT_LEGACY_NON_PRIVILEGED"),
    (0xb4, "ECC_NON_PRIVILEGED"),
    (0xc5, "THERMAL_LEGACY_PRIVILEGED"),
    (0xd0, "CLK_LEGACY_PRIVILEGED"),
    (0xe0, "PERF_LEGACY_PRIVILEGED"),
    (0xe6, "PMGR_LEGACY_PRIVILEGED"),
    (0xe8, "LPWR_LEGACY_PRIVILEGED"),
    (0xf2, "VOLT_LEGACY_PRIVILEGED"),
];

/// What a command that has no name belongs to: its category where that has one, as
/// `NV2080_CTRL_GPU_LEGACY_NON_PRIVILEGED`, else its class, as `NV2081_BINAPI`. cuInit of the
/// branches 535 to 580 makes two or three such calls.
pub fn group(command: u32) -> Option<String> {
    const SUBDEVICE: u32 = 0x2080;
    let (class, category) = (command >> 16, command >> 8 & 0xff);
    let legacy = LEGACY.iter().find(|(number, _)| class == SUBDEVICE && *number == category);
    match legacy {
        Some((_, name)) => Some(format!("NV2080_CTRL_{name}")),
        None => crate::class::by_id(class).map(|class| class.name.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nameless_command_has_a_group() {
        // The three of cuInit with libcuda 580.159.04.
        for (command, expected) in [
            (0x2080_8159, "NV2080_CTRL_GPU_LEGACY_NON_PRIVILEGED"),
            (0x2080_8162, "NV2080_CTRL_GPU_LEGACY_NON_PRIVILEGED"),
            (0x2081_0108, "NV2081_BINAPI"),
        ] {
            assert_eq!(by_command(command), None);
            assert_eq!(group(command).as_deref(), Some(expected));
        }
        assert_eq!(group(0xfff1_0101), None);
    }

    #[test]
    fn legacy_categories_are_those_of_the_same_class_with_a_mark() {
        for (number, name) in LEGACY {
            let privileged = number & 0xc0 == 0xc0;
            assert_eq!(privileged, !name.ends_with("NON_PRIVILEGED"), "{name}");
            assert!(number & 0x80 != 0, "{name}");
        }
    }
}
