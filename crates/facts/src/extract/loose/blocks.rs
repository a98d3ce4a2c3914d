//! Outputs that stand in a text without the command that printed them, known by what only that
//! command prints.

use crate::extract::{binary, collect_env, log, smi};
use crate::model::Facts;
use crate::raw::{ItemName, RawItem};

/// Hands the text to the reader of each output whose mark it bears.
pub(super) fn apply(item: &RawItem, text: &str, facts: &mut Facts) {
    let named = |line: &str| {
        let mut part = item.clone();
        part.name = ItemName::Command(line.to_owned());
        part.partial = true;
        part
    };
    log::apply(&named("dmesg"), facts);
    if text.contains("NVSMI LOG") || has_query_rows(text) {
        smi::apply(&named("nvidia-smi -q"), facts);
    }
    // The head is often cut off; the names of the columns are nobody else's.
    if text.contains("| NVIDIA-SMI") || text.contains("| Volatile Uncorr. ECC |") {
        smi::apply(&named("nvidia-smi"), facts);
    }
    if text.contains("(UUID: GPU-") || text.contains("(UUID: MIG-") {
        smi::apply(&named("nvidia-smi -L"), facts);
    }
    let peers = text.contains("Chipset not supported") || text.contains("GPU not supported");
    let linked = text.contains("GPU1") && [" X ", "\tX"].iter().any(|cell| text.contains(cell));
    if text.contains("GPU0") && (text.contains("CPU Affinity") || peers || linked) {
        smi::apply(&named("nvidia-smi topo -m"), facts);
    }
    if text.contains("Collecting environment information") || text.contains("Is debug build:") {
        collect_env::apply(&named("python3 -m torch.utils.collect_env"), facts);
    }
    if text.contains("NVRM version:") {
        file("/proc/driver/nvidia/version", "NVRM version:", item, text, facts);
    }
    if text.contains("vermagic:") && text.contains("nvidia") {
        binary::apply_modinfo(&named("modinfo nvidia"), facts);
    }
    if text.contains("NVIDIA Corporation") {
        binary::apply_lspci(&named("lspci -nnk"), facts);
    }
    if text.contains("libcuda.so.1 (libc6") || text.contains("libnvidia-ml.so.1 (libc6") {
        binary::apply_ldconfig(&named("ldconfig -p"), facts);
    }
    if text.contains("deviceNodes:") {
        crate::extract::cdi::enter(item, "a pasted CDI spec", text, facts);
    }
    chosen_columns(item, text, facts);
    nodes(item, text, facts);
    majors(item, text, facts);
    options(item, text, facts);
}

/// What `nvidia-smi --query-gpu=… --format=csv` printed: a line of column names, then a line a GPU
/// up to the next empty one.
fn chosen_columns(item: &RawItem, text: &str, facts: &mut Facts) {
    const COLUMNS: [&str; 4] = ["compute_mode", "mig.mode.current", "driver_version", "pci.bus_id"];
    let heading = |line: &str| {
        let first = line.split(',').next().unwrap_or("").trim();
        matches!(first, "index" | "name" | "uuid")
            && COLUMNS.iter().any(|column| line.contains(column))
            && !line.contains("--")
    };
    let found = crate::parse::numbered(text).find(|(_, line)| line.len() < 512 && heading(line));
    let Some((number, _)) = found else { return };
    let lines = text.lines().skip(usize::try_from(number).unwrap_or(1) - 1);
    let rows: Vec<&str> = lines.take_while(|line| line.contains(',')).take(256).collect();
    let name = ItemName::Command("nvidia-smi --query-gpu=index --format=csv".to_owned());
    let mut part = RawItem::new(name, rows.join("\n").into_bytes());
    part.partial = true;
    part.cut_from = item.cut_from.clone().map(|(label, first)| (label, first + number - 1));
    smi::apply(&part, facts);
}

/// Two rows that only `nvidia-smi -q` prints, with its wide columns.
fn has_query_rows(text: &str) -> bool {
    let rows = ["    : ", "  : "];
    let names = [
        "Product Name  ",
        "GSP Firmware Version  ",
        "Addressing Mode  ",
        "GPU Recovery Action  ",
        "Uncorrectable Error  ",
        "Remapping Failure Occurred  ",
    ];
    names.iter().any(|name| text.contains(name)) && rows.iter().any(|row| text.contains(row))
}

/// The lines from the one that bears a mark, as a file item.
fn file(path: &str, mark: &str, item: &RawItem, text: &str, facts: &mut Facts) {
    for (number, line) in crate::parse::numbered(text) {
        let Some(start) = line.find(mark) else { continue };
        let mut part = RawItem::new(ItemName::File(path.to_owned()), &line.as_bytes()[start..]);
        part.partial = true;
        part.cut_from = item.cut_from.clone().map(|(label, first)| (label, first + number - 1));
        crate::extract::item(&part, facts);
        return;
    }
}

/// `crw-rw-rw-`, and what else may stand there for a character device.
fn is_mode(line: &str) -> bool {
    let mode = line.split(' ').next().unwrap_or("");
    let bits = mode.strip_prefix('c').unwrap_or("").trim_end_matches(['.', '+']);
    bits.len() == 9 && bits.bytes().all(|bit| b"rwxsStT-".contains(&bit))
}

/// Lines of `ls -l` that name nodes of the driver.
fn nodes(item: &RawItem, text: &str, facts: &mut Facts) {
    if !text.contains("nvidia") {
        return;
    }
    for (number, line) in crate::parse::numbered(text) {
        let line = line.trim_start_matches([' ', '-', '*', '`', '>']).trim_end_matches('`');
        let refused = line.contains("/dev/nvidia") && line.contains("No such file or directory");
        // The type letter may have gone with a list marker.
        let row = is_mode(line) || line.starts_with("cr-");
        if !(row && line.contains("nvidia") || refused) {
            continue;
        }
        let mut part = RawItem::new(item.name.clone(), line.as_bytes());
        part.partial = true;
        part.cut_from = item.cut_from.clone().map(|(label, first)| (label, first + number - 1));
        crate::extract::files::enter_ls_long(&part, &["/dev"], facts);
    }
}

/// Lines of /proc/devices: a number and a name that only the driver registers.
fn majors(item: &RawItem, text: &str, facts: &mut Facts) {
    use crate::model::module::{CharMajor, MAJORS_OF_INTEREST};
    for (number, line) in crate::parse::numbered(text) {
        let mut words = line.split_whitespace();
        let (Some(major), Some(name), None) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        let Ok(major) = major.parse::<u32>() else { continue };
        if MAJORS_OF_INTEREST.contains(&name) && major < 4096 {
            facts.mentions_gpu = true;
            let value = CharMajor { major, name: name.to_owned() };
            let seen = crate::Observed::seen(value, item.origin_at(number, line));
            facts.module.majors.insert(name.to_owned(), seen);
        }
    }
}

/// `options nvidia_uvm …` lines of modprobe.d.
fn options(item: &RawItem, text: &str, facts: &mut Facts) {
    for (number, line) in crate::parse::numbered(text) {
        let line = line.trim();
        let Some(rest) = line.strip_prefix("options nvidia") else { continue };
        let mut words = rest.split_whitespace();
        let suffix = if rest.starts_with(' ') { "" } else { words.next().unwrap_or("") };
        let module = format!("nvidia{}", suffix.replace('-', "_"));
        for option in words {
            let origin = item.origin_at(number, line);
            facts.module.options.push((module.clone(), option.to_owned(), origin));
        }
    }
}
