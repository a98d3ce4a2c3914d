//! The lines of what lies on disk and in /dev: firmware, nodes, libraries.

use facts::model::firmware::GspFile;
use facts::model::node::NodeOpen;
use facts::{Facts, Observed};

use super::{Line, not_seen};
use crate::readings;

/// `GSP 590.48.01 running; gsp_ga10x.bin carries gb20x, gb20y`.
pub(super) fn firmware(facts: &Facts) -> Line {
    let carried = carried(facts).map(|words| format!("; {words}")).unwrap_or_default();
    if let Some(running) = facts.firmware.running.first() {
        return Line::ok(format!("GSP {} running{carried}", running.value));
    }
    let families = readings::chips(facts)
        .into_iter()
        .filter_map(|product| Some(nvabi::chip::by_name(product.value.chip?)?.gsp_family));
    let families: Vec<Option<&str>> = families.collect();
    if !families.is_empty() && families.iter().all(Option::is_none) {
        return Line::not_applicable("these GPUs have no GSP");
    }
    if !facts.firmware.not_running.is_empty() {
        return Line::unknown(format!("no GSP version reported{carried}"));
    }
    if facts.firmware.files.absent().is_some() {
        return Line::unknown("no GSP file in the firmware folder");
    }
    Line::unknown(format!("GSP version not seen{carried}"))
}

/// What the first file whose sections were read carries: the families near those of the GPUs.
fn carried(facts: &Facts) -> Option<String> {
    let near: Vec<&str> = readings::chips(facts)
        .into_iter()
        .filter_map(|product| nvabi::chip::by_name(product.value.chip?)?.gsp_family?.get(..4))
        .collect();
    let fits =
        |family: &&String| near.is_empty() || near.iter().any(|head| family.starts_with(head));
    let files: Vec<&GspFile> = facts.firmware.files.value()?.iter().collect();
    let read = files.iter().find_map(|file| {
        let families: Vec<&str> =
            file.families.value()?.iter().filter(fits).take(4).map(String::as_str).collect();
        (!families.is_empty()).then(|| format!("{} carries {}", name(file), families.join(", ")))
    });
    read.or_else(|| {
        files.first().map(|file| format!("{} is there, its sections were not read", name(file)))
    })
}

fn name(file: &GspFile) -> &str {
    file.path.rsplit('/').next().unwrap_or(&file.path)
}

/// `nvidiactl, nvidia0-7, nvidia-uvm open read-write`.
pub(super) fn node(facts: &Facts) -> Line {
    if let Some((node, (major, minor), _)) = readings::misnumbered_nodes(facts).first() {
        let path = short(&node.value.path);
        return Line::fault(format!("{path} should be {major}:{minor}"));
    }
    let needed = readings::needed_nodes(facts);
    let failed = needed.iter().find_map(|path| match facts.node.opens.get(path) {
        Some((NodeOpen::Failed(errno), _)) => Some(format!("{}: {errno}", short(path))),
        Some((NodeOpen::Hung, _)) => Some(format!("opening {} does not return", short(path))),
        Some((NodeOpen::Opened | NodeOpen::NotTried(_), _)) | None => None,
    });
    if let Some(failed) = failed {
        return Line::fault(failed);
    }
    if readings::all_nodes_open(facts).is_some() {
        return Line::ok(format!("{} open read-write", together(&needed)));
    }
    let there: Vec<String> =
        needed.iter().filter(|path| facts.node.at(path).is_seen()).cloned().collect();
    if there.is_empty() {
        return Line::unknown(not_seen("device nodes", &facts.node.listed));
    }
    Line::unknown(format!("{} are there; opening them was not tried", together(&there)))
}

fn short(path: &str) -> &str {
    path.strip_prefix("/dev/").unwrap_or(path)
}

/// The nodes' names with the GPUs' drawn together: `nvidiactl, nvidia0-7, nvidia-uvm`.
fn together(paths: &[String]) -> String {
    let number =
        |path: &String| short(path).strip_prefix("nvidia").and_then(|n| n.parse::<u32>().ok());
    let mut gpus: Vec<u32> = paths.iter().filter_map(number).collect();
    gpus.sort_unstable();
    let others = |name: &str| paths.iter().any(|path| short(path) == name).then(|| name.to_owned());
    let row = match (gpus.first(), gpus.last()) {
        (Some(first), Some(last)) if first == last => Some(format!("nvidia{first}")),
        (Some(first), Some(last))
            if usize::try_from(last - first).is_ok_and(|n| n + 1 == gpus.len()) =>
        {
            Some(format!("nvidia{first}-{last}"))
        }
        (Some(_), Some(_)) => {
            Some(gpus.iter().map(|gpu| format!("nvidia{gpu}")).collect::<Vec<_>>().join(", "))
        }
        _ => None,
    };
    [others("nvidiactl"), row, others("nvidia-uvm")]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(", ")
}

/// `libcuda 590.48.01 = module`.
pub(super) fn library(facts: &Facts) -> Line {
    match &facts.library.cuda {
        Observed::Seen(seen) => {
            let Some(version) = &seen.value.version else {
                return Line::unknown(format!("{} without a version", seen.value.path));
            };
            let module = readings::driver_version(facts);
            match module {
                Some(module) if module.value == *version => {
                    Line::ok(format!("libcuda {version} = module"))
                }
                Some(module) => {
                    Line::unknown(format!("libcuda {version}, module {}", module.value))
                }
                None => Line::ok(format!("libcuda {version}")),
            }
        }
        Observed::Absent(_) => Line::fault("no libcuda.so.1 is found"),
        unseen => match (facts.library.cuda_load_error.value(), facts.library.reported.value()) {
            (Some(error), _) => Line::fault(facts::observed::clean_excerpt(error)),
            (None, Some(version)) => {
                Line::unknown(format!("libnvidia-ml {version}; libcuda's version not seen"))
            }
            (None, None) => Line::unknown(not_seen("libcuda", unseen)),
        },
    }
}
