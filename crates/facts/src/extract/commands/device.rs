//! Commands that print what the driver, the kernel or the bus says: nvidia-smi, dmesg, lsmod,
//! modinfo, lspci, ldconfig, strings and readelf of firmware.

use super::Output;
use crate::model::Facts;
use crate::raw::ItemName;

pub(super) fn apply(output: &Output<'_>, facts: &mut Facts) -> bool {
    let program = output.command.program();
    match program {
        "nvidia-smi" => {
            facts.mentions_gpu = true;
            smi(output, facts);
        }
        "dmesg" | "journalctl" => {
            let named = output.renamed(ItemName::Command(output.command.words.join(" ")));
            crate::extract::log::apply(&named, facts);
        }
        "lsmod" => {
            crate::extract::files::enter_lsmod(&output.renamed(command_name(output)), facts);
        }
        "modinfo" => {
            crate::extract::binary::apply_modinfo(&output.renamed(command_name(output)), facts);
        }
        "lspci" => {
            crate::extract::binary::apply_lspci(&output.renamed(command_name(output)), facts);
        }
        "ldconfig" => {
            crate::extract::binary::apply_ldconfig(&output.renamed(command_name(output)), facts);
        }
        "strings" | "readelf" | "objdump" => {
            let gsp = output.command.operands().find(|word| word.contains("gsp"));
            let Some(path) = gsp else { return false };
            let item = output.renamed(ItemName::File(path.to_owned()));
            crate::extract::binary::apply_gsp_text(&item, path, program, facts);
        }
        _ => return false,
    }
    true
}

/// The item's name without wrappers and filters, so that readers see the command itself.
fn command_name(output: &Output<'_>) -> ItemName {
    ItemName::Command(output.command.words.join(" "))
}

fn smi(output: &Output<'_>, facts: &mut Facts) {
    use crate::model::nvml::{NvmlQuery, NvmlResult};
    let item = output.renamed(command_name(output));
    if output.timed_out() {
        facts.nvml.queries.push(NvmlQuery {
            query: output.command.words.join(" "),
            device: None,
            result: NvmlResult::Hung,
            ms: None,
            origin: output.item.origin_at(0, output.line),
        });
    }
    crate::extract::smi::apply(&item, facts);
}
