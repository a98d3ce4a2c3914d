//! Every table is a rectangle, in the order of its key, with no key twice, and has a source.

use std::collections::BTreeSet;

use nvabi::number;
use nvabi::table::{self, Row, Table};

/// How the cells of a key column compare.
#[derive(Clone, Copy)]
enum By {
    Number,
    /// The numbers in the cell, `12.4 U1` after `12.4`.
    Version,
    Text,
}
use By::{Number, Text, Version};

/// The key columns of each table that is sorted, the most significant first.
const SORTED: &[(&str, &[(&str, By)])] = &[
    (
        "abi_changes_by_version",
        &[("since_driver_version", Version), ("kind", Text), ("name", Text)],
    ),
    ("chips", &[("compute_capability", Version), ("chip", Text)]),
    ("cuda_arch_support", &[("cuda_version", Version)]),
    ("cuda_results", &[("value", Number)]),
    ("cuda_toolkit_driver", &[("toolkit", Version), ("bundled_linux_driver", Version)]),
    ("driver_branches", &[("branch", Number)]),
    ("driver_versions_seen", &[("version", Version), ("source", Text)]),
    ("error_texts", &[("api", Text), ("code", Number), ("text", Text)]),
    ("gpu_pci_ids", &[("pci_device_id", Number)]),
    ("gsp_firmware", &[("branch", Number), ("family_enum", Number)]),
    ("gsp_rpc_functions", &[("kind", Text), ("number", Number), ("name", Text)]),
    ("gsp_sections_measured", &[("package", Text), ("file", Text), ("offset", Number)]),
    ("init_sequences", &[("library", Text), ("step", Number)]),
    ("module_params", &[("module", Text), ("parameter", Text)]),
    ("nv_ioctls", &[("nr_dec", Number), ("size_595", Number)]),
    ("nv_status", &[("value", Number)]),
    ("nvml_enums", &[("enum", Text), ("value", Number)]),
    ("nvml_returns", &[("value", Number)]),
    (
        "open_modules_supported_gpus",
        &[("pci_device_id", Number), ("subsystem_vendor", Number), ("subsystem_device", Number)],
    ),
    ("proc_sys_dev", &[("path", Text)]),
    ("pytorch_cuda", &[("torch_version", Version)]),
    ("rm_init_adapter_codes", &[("code_hex", Number), ("name", Text)]),
    ("rm_registry_keys", &[("key", Text)]),
    ("sources", &[("table", Text)]),
    ("uvm_ioctls", &[("request_dec", Number)]),
    ("xid", &[("xid", Number)]),
];

/// Tables whose order says something that no column does (a sequence of faults, the order in which
/// signatures are tried, current names before old ones): the columns that may not repeat together.
const AS_WRITTEN: &[(&str, &[&str])] = &[
    ("cuinit_fault_matrix", &["injected_fault"]),
    ("hang_states", &["stat_state", "wchan_or_top_frames", "proc_syscall", "other_sign"]),
    ("kernel_log_signatures", &["id"]),
    ("nv_struct_layouts", &["struct", "offset", "field"]),
    ("nv_struct_layouts_branch_diffs", &["branch", "struct", "offset", "field"]),
    ("nvmlinit_fault_matrix", &["injected_fault"]),
    ("proc_pid_readables", &["source"]),
    ("rm_classes", &["class_id", "name"]),
    ("rm_control_cmds", &["value", "name"]),
    ("topology_p2p", &["kind", "name"]),
    ("uvm_struct_layouts", &["branch", "struct", "offset", "field"]),
];

/// Columns that are searched by halves though other columns, or none, complete the order.
const ALSO_SORTED: &[(&str, &str)] = &[
    ("rm_classes", "class_id"),
    ("rm_control_cmds", "value"),
    ("nv_struct_layouts_branch_diffs", "branch"),
    ("uvm_struct_layouts", "branch"),
];

fn the(name: &str) -> &'static Table {
    table::by_name(name).unwrap_or_else(|| panic!("no table {name}"))
}

fn key(row: Row, columns: &[(&str, By)]) -> Vec<(Vec<u64>, &'static str)> {
    columns
        .iter()
        .map(|(column, by)| {
            let cell = row.get(column).unwrap_or_else(|| panic!("no column {column}"));
            match by {
                // An empty cell sorts before every number.
                Number => (number::parse(cell).into_iter().collect(), ""),
                Version => (numbers_in(cell), ""),
                Text => (Vec::new(), cell),
            }
        })
        .collect()
}

fn numbers_in(cell: &str) -> Vec<u64> {
    let head = cell.split(' ').next().unwrap_or(cell);
    head.split('.').filter_map(|part| part.parse().ok()).collect()
}

#[test]
fn every_table_is_listed_here_once() {
    let sorted = SORTED.iter().map(|(name, _)| *name);
    let written = AS_WRITTEN.iter().map(|(name, _)| *name);
    let mut listed: Vec<&str> = sorted.chain(written).collect();
    listed.sort_unstable();
    let mut known: Vec<&str> = table::names().collect();
    known.sort_unstable();
    assert_eq!(listed, known);
}

#[test]
fn every_data_file_is_a_table() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/data");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = files.map(|name| name.into_string().unwrap()).collect();
    names.sort_unstable();
    let mut known: Vec<String> = table::names().map(|name| format!("{name}.tsv")).collect();
    known.sort_unstable();
    assert_eq!(names, known);
}

#[test]
fn sorted_tables_are_sorted_and_no_key_repeats() {
    for (name, columns) in SORTED {
        let keys: Vec<_> = the(name).rows().map(|row| (key(row, columns), row.line())).collect();
        for pair in keys.windows(2) {
            assert!(pair[0].0 < pair[1].0, "{name}.tsv, line {}: {:?}", pair[1].1, pair[1].0);
        }
    }
}

#[test]
fn tables_as_written_repeat_no_key() {
    for (name, columns) in AS_WRITTEN {
        let mut seen = BTreeSet::new();
        for row in the(name).rows() {
            let cells: Vec<_> = columns.iter().map(|column| row.get(column).unwrap()).collect();
            assert!(seen.insert(cells.clone()), "{name}.tsv, line {}: {cells:?}", row.line());
        }
    }
    for (name, column) in ALSO_SORTED {
        let cells = the(name).rows().map(|row| number::parse(row.get(column).unwrap()).unwrap());
        assert!(cells.is_sorted(), "{name}.tsv by {column}");
    }
}

#[test]
fn files_are_rectangles_of_clean_cells() {
    for table in table::all() {
        let path = format!("{}/data/{}.tsv", env!("CARGO_MANIFEST_DIR"), table.name());
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.ends_with('\n') && !text.contains('\r'), "{}", table.name());
        assert_eq!(text.lines().count(), table.len() + 1, "{}", table.name());
        for (index, line) in text.lines().enumerate() {
            let place = format!("{}.tsv, line {}", table.name(), index + 1);
            assert_eq!(line.split('\t').count(), table.header().len(), "{place}");
            assert!(line.split('\t').all(|cell| cell == cell.trim()), "{place}");
        }
        let titles: BTreeSet<_> =
            table.header().iter().map(|title| title.split('(').next()).collect();
        assert_eq!(titles.len(), table.header().len(), "{}: a title twice", table.name());
    }
}

#[test]
fn rows_know_their_line() {
    let table = the("xid");
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/data/xid.tsv")).unwrap();
    for row in table.rows() {
        let line = text.lines().nth(row.line() - 1).unwrap();
        assert_eq!(line.split('\t').collect::<Vec<_>>(), row.cells());
    }
}

#[test]
fn every_row_has_a_source() {
    for table in table::all() {
        assert!(!table.source().is_empty(), "{} has no row in sources.tsv", table.name());
        assert!(table.rows().all(|row| !row.source().is_empty()), "{}", table.name());
    }
    let row = the("kernel_log_signatures").rows().next().unwrap();
    assert_eq!(Some(row.source()), row.get("source_file"), "a row's own source goes first");
    let file = the("proc_pid_readables").rows().next().unwrap();
    assert!(!file.source().starts_with("/proc"), "that column is no source");
    for row in the("sources").rows() {
        let column = row.get("source_column").unwrap();
        let described = the(row.get("table").unwrap());
        assert!(column.is_empty() || described.column(column).is_some(), "{column}");
        assert!(matches!(row.get("basis"), Some("src" | "meas" | "doc" | "mem")));
    }
}
