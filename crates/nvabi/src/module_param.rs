//! Parameters of the kernel modules.
//!
//! Table `module_params`: NVIDIA/open-gpu-kernel-modules. NVreg_ parameters are not readable under
//! /sys/module; /proc/driver/nvidia/params shows them without the prefix.

use crate::table::Row;
use crate::tables::MODULE_PARAMS;

/// The prefix that /proc/driver/nvidia/params leaves out.
const PREFIX: &str = "NVreg_";

/// One parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModuleParam {
    /// The module, such as `nvidia-uvm`.
    pub module: &'static str,
    /// The name, such as `uvm_disable_hmm`.
    pub name: &'static str,
    /// The C type.
    pub kind: &'static str,
    /// The default, as the source has it.
    pub default: &'static str,
    /// What it does.
    pub meaning: &'static str,
    /// The first branch seen with it.
    pub since_branch: &'static str,
    /// What it tells a diagnosis. May be empty.
    pub note: &'static str,
}

impl ModuleParam {
    fn of(row: Row) -> ModuleParam {
        ModuleParam {
            module: row.text("module"),
            name: row.text("parameter"),
            kind: row.text("type"),
            default: row.text("default"),
            meaning: row.text("meaning"),
            since_branch: row.text("since_branch"),
            note: row.text("diagnostic_note"),
        }
    }
}

/// The parameter of that name, case aside, with or without `NVreg_`.
pub fn by_name(name: &str) -> Option<ModuleParam> {
    let bare = |name: &'static str| name.strip_prefix(PREFIX).unwrap_or(name);
    let exact = MODULE_PARAMS.find("parameter", name).map(ModuleParam::of);
    exact.or_else(|| all().find(|param| bare(param.name).eq_ignore_ascii_case(name)))
}

/// All parameters, by module and name.
pub fn all() -> impl Iterator<Item = ModuleParam> {
    MODULE_PARAMS.rows().map(ModuleParam::of)
}
