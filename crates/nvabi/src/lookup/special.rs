//! Words that are no single key of a table: triples, PCI pairs, whole requests, products,
//! messages, structures.

use super::Entry;
use super::families::FAMILIES;
use crate::{
    arch, chip, error_text, ioctl, number, pci_id, rm_init, signature, struct_layout, topology,
};

/// A shorter part of a log line stands in too many.
const SHORTEST_PART: usize = 4;

/// Most log lines that are shown for a word.
const MOST_LOG_LINES: usize = 5;

/// What is told by its form alone.
pub(super) fn patterns(word: &str) -> Vec<Entry> {
    let entry = triple(word).or_else(|| request(word)).or_else(|| capability(word));
    if let Some(entry) = entry {
        return vec![entry];
    }
    pci_pair(word)
}

/// What is left when no table has the word as a key.
pub(super) fn phrases(word: &str) -> Vec<Entry> {
    let bonded = topology::canonical(word);
    if bonded != word {
        return FAMILIES.iter().flat_map(|family| family.named(bonded)).collect();
    }
    let one = structure(word).or_else(|| product(word)).or_else(|| message(word));
    one.map_or_else(|| log_lines(word), |entry| vec![entry])
}

/// The kernel-log signatures whose lines hold a word, such as `SXid`.
fn log_lines(word: &str) -> Vec<Entry> {
    if word.len() < SHORTEST_PART || !word.ends_with(|ch: char| ch.is_ascii_alphanumeric()) {
        return Vec::new();
    }
    let lower = word.to_ascii_lowercase();
    let known = signature::all().filter(|row| row.regex.to_ascii_lowercase().contains(&lower));
    known.take(MOST_LOG_LINES).flat_map(|row| by_key(row.id)).collect()
}

fn by_key(key: &str) -> Vec<Entry> {
    FAMILIES.iter().flat_map(|family| family.named(key)).collect()
}

/// `sm_120`, `compute_90a` or `sm120`: a compute capability as compilers spell it.
fn capability(word: &str) -> Option<Entry> {
    let lower = word.to_ascii_lowercase();
    let rest = lower.strip_prefix("sm").or_else(|| lower.strip_prefix("compute"))?;
    let digits = rest.trim_start_matches('_').trim_end_matches(['a', 'f']);
    let (major, minor) = digits.split_at_checked(digits.len().checked_sub(1)?)?;
    let wanted: (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
    let chips: Vec<chip::Chip> = chip::all().filter(|chip| chip.capability == wanted).collect();
    let names: Vec<&str> = chips.iter().map(|chip| chip.chip).collect();
    let toolkits = arch::toolkits_for(wanted);
    if names.is_empty() && toolkits.is_none() {
        return None;
    }
    let range = toolkits.map(|(first, last)| {
        format!("{}.{} to {}.{}, of those measured", first.0, first.1, last.0, last.1)
    });
    let mut lines = vec![
        ("chips", names.join(", ")),
        ("architecture", chips.first().map_or(String::new(), |chip| chip.architecture.to_owned())),
        ("compiled for by CUDA", range.unwrap_or_default()),
    ];
    lines.retain(|(_, text)| !text.is_empty());
    Some(Entry {
        table: "chips",
        key: format!("{}.{}", wanted.0, wanted.1),
        title: format!("sm_{digits} (compute capability {}.{})", wanted.0, wanted.1),
        lines,
        source: source_of("chips"),
    })
}

fn triple(word: &str) -> Option<Entry> {
    let triple = rm_init::decode_triple(word)?;
    let mut lines = Vec::new();
    for step in rm_init::meanings(triple.code) {
        lines.push((
            "step",
            format!("{} ({}), branches {}", step.name, step.meaning, step.branches),
        ));
        lines.push(("causes", step.causes.to_owned()));
    }
    if let Some(status) = triple.status() {
        lines.push(("status", format!("{} ({})", status.name, status.meaning)));
        lines.push(("beneath cuInit", status.hint.to_owned()));
    }
    lines.push(("source line", format!("{} (differs by driver version)", triple.line)));
    lines.retain(|(_, text)| !text.is_empty());
    let step = triple.step_name().unwrap_or("unknown step");
    let status = triple.status_name().unwrap_or("unknown status");
    Some(Entry {
        table: "rm_init_adapter_codes",
        key: triple.to_string(),
        title: format!("{step} with {status} (RmInitAdapter {triple})"),
        lines,
        source: source_of("rm_init_adapter_codes"),
    })
}

/// A request such as `0xc020462a`, alone or after `ioctl`.
fn request(word: &str) -> Option<Entry> {
    let last = word.split_whitespace().next_back()?;
    let call = ioctl::decode_request(number::parse_u32(last).filter(|_| last.starts_with("0x"))?)?;
    let offset = call.escape.status_offset.map(|offset| offset.to_string());
    let mut lines = vec![
        ("escape", format!("{:#x}", call.nr)),
        ("parameters", format!("{}, {} bytes", call.escape.parameters, call.size)),
        ("status offset", offset.unwrap_or_default()),
        ("node", call.escape.node.to_owned()),
        ("note", call.escape.note.to_owned()),
    ];
    lines.retain(|(_, text)| !text.is_empty());
    Some(Entry {
        table: "nv_ioctls",
        key: last.to_owned(),
        title: format!("{} (ioctl request {last})", call.name),
        lines,
        source: source_of("nv_ioctls"),
    })
}

/// `10de:2bb5`, in brackets or not, perhaps after other words.
fn pci_pair(word: &str) -> Vec<Entry> {
    let pair = word.split_whitespace().find_map(|part| {
        let part = part.trim_matches(|ch: char| !ch.is_ascii_alphanumeric()).to_ascii_lowercase();
        let device = part.strip_prefix("10de:")?;
        let hexadecimal = device.bytes().all(|byte| byte.is_ascii_hexdigit());
        if hexadecimal { u64::from_str_radix(device, 16).ok() } else { None }
    });
    let Some(device) = pair else {
        return Vec::new();
    };
    let mut families = FAMILIES.iter().filter(|family| family.answers_to("10de"));
    families.next().map(|family| family.numbered(device)).unwrap_or_default()
}

/// The fields of a parameter structure, in the newest branch that has it.
pub(super) fn structure(word: &str) -> Option<Entry> {
    let name = struct_layout::names().find(|name| name.eq_ignore_ascii_case(word))?;
    let newest = number::MEASURED_BRANCHES.into_iter().rev();
    let (branch, fields) = newest
        .map(|branch| (branch, struct_layout::fields(name, branch)))
        .find(|(_, fields)| !fields.is_empty())?;
    let size = fields.first().map_or(0, |field| field.struct_size);
    let line = |field: &struct_layout::Field| {
        (
            "field",
            format!("{:>4} {} ({}, {} bytes)", field.offset, field.name, field.kind, field.size),
        )
    };
    Some(Entry {
        table: "nv_struct_layouts",
        key: name.to_owned(),
        title: format!("{name} (structure of {size} bytes in branch {branch})"),
        lines: fields.iter().map(line).collect(),
        source: source_of("nv_struct_layouts"),
    })
}

fn product(word: &str) -> Option<Entry> {
    let product = pci_id::by_product_name(word)?;
    let (major, minor) = product.capability;
    let chip = product.chip.unwrap_or("different ones under this name").to_owned();
    Some(Entry {
        table: "gpu_pci_ids",
        key: word.to_owned(),
        title: format!("{word} (GPU product)"),
        lines: vec![
            ("chip", chip),
            ("architecture", product.architecture.to_owned()),
            ("compute capability", format!("{major}.{minor}")),
        ],
        source: source_of("gpu_pci_ids"),
    })
}

fn message(word: &str) -> Option<Entry> {
    let message = error_text::in_line(word)?;
    let code = message.code.map(|code| code.to_string()).unwrap_or_default();
    let mut lines = vec![
        ("printed by", message.api.to_owned()),
        ("code", code),
        ("name", message.name.to_owned()),
        ("note", message.note.to_owned()),
    ];
    lines.retain(|(_, text)| !text.is_empty());
    Some(Entry {
        table: "error_texts",
        key: message.text.to_owned(),
        title: format!("{} (message)", message.text),
        lines,
        source: source_of("error_texts"),
    })
}

fn source_of(table: &str) -> &'static str {
    crate::table::by_name(table).map_or("", crate::table::Table::source)
}
