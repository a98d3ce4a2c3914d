//! How each table is searched by a word and shown: data, so that a new table is one entry here.

use std::sync::LazyLock;

use super::Entry;
use crate::number;
use crate::table::{Row, Table};
use crate::{error_text, tables};

/// A label and the column whose cell stands after it.
type LabeledColumn = (&'static str, &'static str);

/// A label and its text.
type Line = (&'static str, String);

/// A table that words are looked up in.
pub(super) struct Family {
    table: &'static LazyLock<Table>,
    /// What a row is, for the title.
    kind: &'static str,
    /// Words that say that this family is meant.
    qualifiers: &'static [&'static str],
    /// The column of the number, if rows have one.
    number: Option<&'static str>,
    /// Whether its numbers are written in hexadecimal without `0x` too.
    pub(super) bare_hex: bool,
    /// The columns of names. The first is the one to show.
    names: &'static [&'static str],
    /// Parts of names that may be left out in front.
    prefixes: &'static [&'static str],
    /// The columns to show, with their labels.
    lines: &'static [LabeledColumn],
    /// Which rows count; all of them when `None`.
    keep: Option<fn(Row) -> bool>,
    /// What to show beside the columns.
    more: Option<fn(Row) -> Vec<Line>>,
}

impl Family {
    /// Whether `word` is one of the qualifiers, case aside.
    pub(super) fn answers_to(&self, word: &str) -> bool {
        self.qualifiers.iter().any(|qualifier| qualifier.eq_ignore_ascii_case(word))
    }

    /// The rows with this number.
    pub(super) fn numbered(&self, wanted: u64) -> Vec<Entry> {
        let Some(column) = self.number else {
            return Vec::new();
        };
        self.entries(|row| number::parse(row.text(column)) == Some(wanted))
    }

    /// The rows of this name.
    pub(super) fn named(&self, wanted: &str) -> Vec<Entry> {
        self.entries(|row| self.names.iter().any(|column| self.is_name(row.text(column), wanted)))
    }

    fn is_name(&self, name: &str, wanted: &str) -> bool {
        let mut prefixes = self.prefixes.iter();
        name.eq_ignore_ascii_case(wanted)
            || prefixes.any(|prefix| {
                name.strip_prefix(prefix).is_some_and(|rest| rest.eq_ignore_ascii_case(wanted))
            })
    }

    fn entries(&self, fits: impl Fn(Row) -> bool) -> Vec<Entry> {
        let table: &'static Table = self.table;
        let rows = table.rows().filter(|row| self.keep.is_none_or(|keep| keep(*row)));
        rows.filter(|row| fits(*row)).map(|row| self.entry(row)).collect()
    }

    fn entry(&self, row: Row) -> Entry {
        let name = self.names.first().map_or("", |column| row.text(column));
        let number = self.number.map_or("", |column| row.text(column));
        let kind = if number.is_empty() {
            self.kind.to_owned()
        } else {
            format!("{} {number}", self.kind)
        };
        let shown = |label: &'static str, column| (label, row.text(column).to_owned());
        let mut lines: Vec<Line> =
            self.lines.iter().map(|(label, column)| shown(label, column)).collect();
        lines.extend(self.more.map(|more| more(row)).unwrap_or_default());
        lines.retain(|(_, text)| !matches!(text.as_str(), "" | "-"));
        Entry {
            table: row.table().name(),
            key: if number.is_empty() { name.to_owned() } else { number.to_owned() },
            title: if name.is_empty() { kind } else { format!("{name} ({kind})") },
            lines,
            source: row.source(),
        }
    }
}

/// The text that a library prints for a code.
fn printed(api: &'static str, row: Row) -> Vec<Line> {
    let code = row.number("value").and_then(|code| i64::try_from(code).ok());
    let mut texts = error_text::all().iter().filter(|text| text.api == api && text.code == code);
    texts.next().map(|text| ("printed as", text.text.to_owned())).into_iter().collect()
}

/// Messages whose code is told by another table are shown there; those with a name of their own
/// (the runtime's) and those without a code are shown by themselves.
fn stands_alone(row: Row) -> bool {
    let code = row.number("code").and_then(|code| i64::try_from(code).ok());
    match row.text("api") {
        "cuda-runtime" => code.is_some_and(|code| crate::cuda_result::by_code(code).is_none()),
        _ => false,
    }
}

/// What stands in most entries below, so that each says only what it has.
const PLAIN: Family = Family {
    table: &tables::SOURCES,
    kind: "",
    qualifiers: &[],
    number: None,
    bare_hex: false,
    names: &[],
    prefixes: &[],
    lines: &[],
    keep: None,
    more: None,
};

/// All families, in the order in which entries are shown.
pub(super) static FAMILIES: &[Family] = &[
    Family {
        table: &tables::CUDA_RESULTS,
        kind: "CUDA result",
        qualifiers: &["cuda", "cuinit", "curesult", "cudaerror"],
        number: Some("value"),
        names: &["name"],
        prefixes: &["CUDA_ERROR_", "CUDA_"],
        lines: &[("causes", "common_real_world_causes"), ("known since", "known_since")],
        more: Some(|row| printed("cuda-driver", row)),
        ..PLAIN
    },
    Family {
        table: &tables::ERROR_TEXTS,
        kind: "CUDA runtime error",
        qualifiers: &["cuda", "cudart", "cudaerror"],
        number: Some("code"),
        names: &["name"],
        prefixes: &["cudaError"],
        lines: &[("printed as", "text"), ("note", "note")],
        keep: Some(stands_alone),
        ..PLAIN
    },
    // By name only: the number leads to the driver's entry.
    Family {
        table: &tables::ERROR_TEXTS,
        kind: "CUDA runtime error",
        names: &["name"],
        prefixes: &["cudaError"],
        lines: &[("code", "code"), ("printed as", "text"), ("note", "note")],
        keep: Some(|row| row.text("api") == "cuda-runtime" && !stands_alone(row)),
        ..PLAIN
    },
    Family {
        table: &tables::NVML_RETURNS,
        kind: "NVML return",
        qualifiers: &["nvml", "nvidia-smi", "nvmlreturn"],
        number: Some("value"),
        names: &["name"],
        prefixes: &["NVML_ERROR_", "NVML_"],
        lines: &[("causes", "cause_notes")],
        more: Some(|row| printed("nvml", row)),
        ..PLAIN
    },
    Family {
        table: &tables::XID,
        kind: "Xid",
        qualifiers: &["xid"],
        number: Some("xid"),
        names: &["mnemonic"],
        prefixes: &["ROBUST_CHANNEL_"],
        lines: &[
            ("meaning", "meaning"),
            ("typical cause", "typical_cause"),
            ("what to do", "action_own_words"),
            ("NVIDIA: at once", "nvidia_immediate_bucket"),
            ("NVIDIA: then", "nvidia_investigatory_bucket"),
        ],
        ..PLAIN
    },
    Family {
        table: &tables::NV_STATUS,
        kind: "NV_STATUS",
        qualifiers: &["nv_status", "nvstatus", "status", "rmstatus", "rm"],
        number: Some("value"),
        names: &["name"],
        prefixes: &["NV_ERR_", "NV_WARN_", "NV_"],
        lines: &[
            ("meaning", "meaning"),
            ("beneath cuInit", "hint_in_cuda_init_context"),
            ("known since", "since"),
        ],
        ..PLAIN
    },
    Family {
        table: &tables::RM_INIT_ADAPTER_CODES,
        kind: "RmInitAdapter step",
        qualifiers: &["rminitadapter", "rm_init", "rminit"],
        number: Some("code_hex"),
        names: &["name"],
        prefixes: &["RM_INIT_", "RM_"],
        lines: &[("meaning", "meaning"), ("causes", "likely_causes"), ("branches", "branches")],
        ..PLAIN
    },
    Family {
        table: &tables::UVM_IOCTLS,
        kind: "nvidia-uvm request",
        qualifiers: &["uvm", "nvidia-uvm", "nvidia_uvm"],
        number: Some("request_hex"),
        names: &["name", "params_struct"],
        prefixes: &["UVM_"],
        lines: &[
            ("parameters", "params_struct"),
            ("size by branch", "size_by_branch"),
            ("status offset by branch", "rmStatus_offset_by_branch"),
            ("needs UVM_INITIALIZE", "needs_UVM_INITIALIZE_first"),
            ("branches", "branches"),
        ],
        ..PLAIN
    },
    Family {
        table: &tables::NV_IOCTLS,
        kind: "ioctl escape",
        qualifiers: &["ioctl", "escape", "nr"],
        number: Some("nr_hex"),
        names: &["name", "param_struct"],
        prefixes: &["NV_ESC_RM_", "NV_ESC_"],
        lines: &[
            ("parameters", "param_struct"),
            ("request", "cmd_hex_595"),
            ("size by branch", "size_by_branch"),
            ("status offset", "status_offset"),
            ("node", "node"),
            ("note", "note"),
        ],
        ..PLAIN
    },
    Family {
        table: &tables::RM_CONTROL_CMDS,
        kind: "RM control",
        qualifiers: &["control", "ctrl", "rm_control", "cmd"],
        number: Some("value"),
        bare_hex: true,
        names: &["name", "params_struct"],
        lines: &[
            ("parameters", "params_struct"),
            ("size", "params_size_595"),
            ("first branch", "first_branch"),
            ("last branch", "last_branch"),
            ("caller", "caller_privilege"),
            ("forwarded to GSP", "routed_to_gsp"),
            ("flags", "flag_names"),
            ("alias of", "alias_of"),
        ],
        ..PLAIN
    },
    Family {
        table: &tables::RM_CLASSES,
        kind: "RM class",
        qualifiers: &["class", "rm_class", "alloc"],
        number: Some("class_id"),
        bare_hex: true,
        names: &["name"],
        lines: &[
            ("architecture", "arch_hint"),
            ("header", "header"),
            ("first branch", "first_branch"),
            ("last branch", "last_branch"),
        ],
        ..PLAIN
    },
    Family {
        table: &tables::GSP_RPC_FUNCTIONS,
        kind: "GSP function",
        qualifiers: &["rpc", "gsp", "function"],
        number: Some("number"),
        names: &["name"],
        lines: &[("branches", "branches_seen")],
        keep: Some(|row| row.text("kind") == "function"),
        ..PLAIN
    },
    Family {
        table: &tables::GSP_RPC_FUNCTIONS,
        kind: "GSP event",
        qualifiers: &["rpc", "gsp", "event"],
        number: Some("number"),
        names: &["name"],
        lines: &[("branches", "branches_seen")],
        keep: Some(|row| row.text("kind") == "event"),
        ..PLAIN
    },
    Family {
        table: &tables::CHIPS,
        kind: "chip",
        qualifiers: &["chip"],
        names: &["chip"],
        lines: &[
            ("architecture", "architecture"),
            ("compute capability", "compute_capability"),
            ("GSP firmware since 535", "gsp_file_since_535"),
            ("its section", "gsp_signature_section"),
            ("open modules", "open_modules"),
            ("proprietary modules", "proprietary_modules"),
            ("first open tag with a board", "first_open_tag_with_a_board"),
        ],
        ..PLAIN
    },
    Family {
        table: &tables::GPU_PCI_IDS,
        kind: "PCI device",
        qualifiers: &["pci", "10de", "device"],
        number: Some("pci_device_id"),
        bare_hex: true,
        names: &["pci_ids_name"],
        lines: &[
            ("product", "open_readme_name"),
            ("chip", "chip"),
            ("architecture", "architecture"),
            ("compute capability", "compute_capability"),
            ("open modules", "open_modules"),
            ("first driver seen", "first_driver_seen"),
            ("branches", "last_branch"),
        ],
        ..PLAIN
    },
    Family {
        table: &tables::DRIVER_BRANCHES,
        kind: "driver branch",
        qualifiers: &["branch", "driver"],
        number: Some("branch"),
        lines: &[("CUDA", "cuda_driver_api_version"), ("notes", "notes"), ("state", "state")],
        ..PLAIN
    },
    Family {
        table: &tables::DRIVER_VERSIONS_SEEN,
        kind: "driver version",
        qualifiers: &["driver", "version"],
        names: &["version"],
        lines: &[("seen in", "source"), ("gVisor", "gvisor_status")],
        ..PLAIN
    },
    Family {
        table: &tables::CUDA_TOOLKIT_DRIVER,
        kind: "CUDA toolkit",
        qualifiers: &["cuda", "toolkit"],
        names: &["toolkit"],
        lines: &[
            ("comes with driver", "bundled_linux_driver"),
            ("oldest driver", "minimum_driver_by_minor_version_compat"),
        ],
        ..PLAIN
    },
    Family {
        table: &tables::CUDA_ARCH_SUPPORT,
        kind: "CUDA compiler",
        qualifiers: &["cuda", "toolkit", "nvrtc", "nvcc"],
        names: &["cuda_version"],
        lines: &[("compute capabilities", "compute_capabilities")],
        ..PLAIN
    },
    Family {
        table: &tables::PYTORCH_CUDA,
        kind: "PyTorch release",
        qualifiers: &["torch", "pytorch"],
        names: &["torch_version"],
        lines: &[
            ("CUDA of the PyPI wheel", "pypi_default_cuda_runtime"),
            ("official builds", "other_official_builds"),
            ("architectures", "sm_list"),
            ("driver", "min_driver_for_pypi_default"),
        ],
        ..PLAIN
    },
    Family {
        table: &tables::TOPOLOGY_P2P,
        kind: "topology and peer-to-peer",
        qualifiers: &["topo", "topology", "p2p"],
        names: &["name"],
        lines: &[
            ("meaning", "meaning"),
            ("NVML or place", "nvml_or_place"),
            ("how to tell", "how_to_derive"),
            ("notes", "notes_or_confidence"),
        ],
        ..PLAIN
    },
    Family {
        table: &tables::NVML_ENUMS,
        kind: "NVML enumeration value",
        names: &["name"],
        prefixes: &["NVML_"],
        lines: &[("enumeration", "enum"), ("value", "value"), ("meaning", "meaning")],
        ..PLAIN
    },
    Family {
        table: &tables::MODULE_PARAMS,
        kind: "kernel module parameter",
        qualifiers: &["parameter", "param", "modparam"],
        names: &["parameter"],
        prefixes: &["NVreg_"],
        lines: &[
            ("module", "module"),
            ("meaning", "meaning"),
            ("default", "default"),
            ("type", "type"),
            ("since branch", "since_branch"),
            ("note", "diagnostic_note"),
        ],
        ..PLAIN
    },
    Family {
        table: &tables::RM_REGISTRY_KEYS,
        kind: "registry key of NVreg_RegistryDwords",
        qualifiers: &["regkey", "registry"],
        names: &["key", "define"],
        lines: &[("define", "define"), ("values", "symbolic_values_or_bitfields")],
        ..PLAIN
    },
    Family {
        table: &tables::KERNEL_LOG_SIGNATURES,
        kind: "kernel-log signature",
        qualifiers: &["signature", "log"],
        names: &["id"],
        lines: &[
            ("meaning", "meaning"),
            ("causes", "likely_causes"),
            ("severity", "severity"),
            ("expression", "regex"),
            ("proprietary module", "printed_by_proprietary_550"),
            ("notes", "notes"),
        ],
        ..PLAIN
    },
    Family {
        table: &tables::PROC_SYS_DEV,
        kind: "path",
        qualifiers: &["path"],
        names: &["path"],
        lines: &[
            ("content", "content"),
            ("use", "diagnostic_use"),
            ("mode", "usual_mode"),
            ("hang safety", "hang_safety"),
        ],
        ..PLAIN
    },
    Family {
        table: &tables::PROC_PID_READABLES,
        kind: "source of knowledge about a process",
        names: &["source"],
        lines: &[("permission", "permission"), ("blocks on", "blocks_on"), ("use", "use")],
        ..PLAIN
    },
    Family {
        table: &tables::ABI_CHANGES_BY_VERSION,
        kind: "interface change",
        names: &["name"],
        lines: &[("since driver", "since_driver_version"), ("change", "change"), ("kind", "kind")],
        ..PLAIN
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_shows_its_rows_and_finds_them_by_name_and_number() {
        for family in FAMILIES {
            let table: &'static Table = family.table;
            let entries = family.entries(|_| true);
            assert!(!entries.is_empty(), "{}", family.kind);
            assert!(entries.iter().all(|entry| !entry.title.is_empty() && !entry.key.is_empty()));
            // A sample: all pairs of the long tables would take seconds.
            let kept = table.rows().filter(|row| family.keep.is_none_or(|keep| keep(*row)));
            for row in kept.step_by(41) {
                let entry = family.entry(row);
                if let Some(name) = family.names.first() {
                    assert!(family.named(row.text(name)).contains(&entry), "{entry:?}");
                }
                if let Some(number) = family.number.and_then(|column| row.number(column)) {
                    assert!(family.numbered(number).contains(&entry), "{entry:?}");
                }
            }
        }
    }

    #[test]
    fn a_prefix_that_may_be_left_out_is_one_that_names_have() {
        for family in FAMILIES {
            let table: &'static Table = family.table;
            for prefix in family.prefixes {
                let mut names =
                    table.rows().flat_map(|row| family.names.iter().map(move |c| row.text(c)));
                assert!(names.any(|name| name.starts_with(prefix)), "{prefix} of {}", family.kind);
            }
        }
    }
}
