//! Questions about traffic between GPUs that several causes and the symptoms ask.

use facts::model::p2p::{IommuMode, PortAccess};
use facts::{Facts, Origin, Seen};
use nvabi::pci_id::{self, Product};

use crate::readings;

/// A pair of GPUs, as nvidia-smi's matrices name rows and columns; NICs are left out.
fn is_gpu_pair(cell: &(String, String, String)) -> bool {
    cell.0.starts_with("GPU") && cell.1.starts_with("GPU")
}

/// Where the driver says that it offers no peer access between any two GPUs: its word, or what
/// CUDA answered.
pub(crate) fn refused(facts: &Facts) -> Option<Seen<String>> {
    let mut pairs = facts.nvml.peer_status.iter().filter(|seen| is_gpu_pair(&seen.value));
    if let Some(first) = pairs.clone().find(|seen| seen.value.2 != "OK") {
        let any_offered = pairs.any(|seen| seen.value.2 == "OK");
        let (row, column, word) = &first.value;
        let said = format!("the driver's peer matrix says {word} for {row} and {column}");
        return (!any_offered).then(|| Seen::new(said, first.origin.clone()));
    }
    if let Some(word) = facts.p2p.words.first() {
        let said = format!("the driver's peer matrix says {}", word.value);
        return Some(Seen::new(said, word.origin.clone()));
    }
    let access = &facts.p2p.access;
    let first = access.first().filter(|_| access.iter().all(|seen| !seen.value.1))?;
    let said = match first.value.0.as_str() {
        "" => "CUDA answers that peer access is not possible".to_owned(),
        pair => format!("CUDA answers that {pair} cannot access each other"),
    };
    Some(Seen::new(said, first.origin.clone()))
}

/// Where peer access is advertised for at least one pair.
pub(crate) fn advertised(facts: &Facts) -> Option<Seen<String>> {
    if let Some(seen) = facts.p2p.access.iter().find(|seen| seen.value.1) {
        let said = match seen.value.0.as_str() {
            "" => "CUDA says that the GPUs can access each other".to_owned(),
            pair => format!("CUDA says that {pair} can access each other"),
        };
        return Some(Seen::new(said, seen.origin.clone()));
    }
    let offered =
        |seen: &&Seen<(String, String, String)>| is_gpu_pair(&seen.value) && seen.value.2 == "OK";
    if let Some(seen) = facts.nvml.peer_status.iter().find(offered) {
        let said = "the driver's peer matrix says OK".to_owned();
        return Some(Seen::new(said, seen.origin.clone()));
    }
    let uses = facts.p2p.nccl_uses_p2p.as_seen()?;
    Some(Seen::new("NCCL connects the GPUs by peer copies".to_owned(), uses.origin.clone()))
}

/// What the IOMMU does with the GPUs' addresses, in words and where it was seen: by the type of
/// their groups, by the kernel's command line, by its log, or as it is told.
pub(crate) fn iommu(facts: &Facts) -> Option<(IommuMode, String, Origin)> {
    by_groups(facts).or_else(|| by_command_line(facts)).or_else(|| by_log(facts)).or_else(|| {
        let told = facts.p2p.iommu_told.as_seen()?;
        let said = match told.value {
            IommuMode::Translated => "the IOMMU is said to be on",
            IommuMode::Passthrough => "the IOMMU is said to pass addresses through",
            IommuMode::Off => "the IOMMU is said to be off",
        };
        Some((told.value, said.to_owned(), told.origin.clone()))
    })
}

fn by_groups(facts: &Facts) -> Option<(IommuMode, String, Origin)> {
    facts.pci.gpus().find_map(|gpu| {
        let group = gpu.iommu_group.value()?;
        let kind = facts.pci.iommu_types.get(group)?.as_seen()?;
        let mode = match kind.value.as_str() {
            "identity" => IommuMode::Passthrough,
            "DMA" | "DMA-FQ" => IommuMode::Translated,
            _ => return None,
        };
        let said = format!("a GPU's IOMMU group {group} is of type {}", kind.value);
        Some((mode, said, kind.origin.clone()))
    })
}

fn by_command_line(facts: &Facts) -> Option<(IommuMode, String, Origin)> {
    let words = facts.host.cmdline.as_seen()?;
    let find = |wanted: &[&str]| words.value.iter().find(|word| wanted.contains(&word.as_str()));
    let through = ["iommu=pt", "iommu.passthrough=1", "amd_iommu=pt"];
    let off = ["intel_iommu=off", "amd_iommu=off", "iommu=off", "iommu=0"];
    let on = ["intel_iommu=on", "amd_iommu=on", "iommu=force", "iommu.passthrough=0", "iommu=nopt"];
    let (mode, word) = find(&off)
        .map(|word| (IommuMode::Off, word))
        .or_else(|| Some((IommuMode::Passthrough, find(&through)?)))
        .or_else(|| Some((IommuMode::Translated, find(&on)?)))?;
    Some((mode, format!("the kernel was started with {word}"), words.origin.clone()))
}

fn by_log(facts: &Facts) -> Option<(IommuMode, String, Origin)> {
    let event = facts.log.with("IOMMU_DEFAULT").last()?;
    let mode = match event.get("t")? {
        "Passthrough" => IommuMode::Passthrough,
        _ => IommuMode::Translated,
    };
    let word = event.get("t").unwrap_or_default();
    Some((mode, format!("the kernel's default domain type is {word}"), event.origin.clone()))
}

/// The port above a GPU (or one of which that is not known) whose access control redirects peer
/// requests; the best known first.
pub(crate) fn redirecting_port(facts: &Facts) -> Option<&Seen<PortAccess>> {
    let ports = facts.p2p.ports.iter().filter(|port| port.value.redirects);
    let above = |port: &&Seen<PortAccess>| port.value.above_gpu == Some(true);
    let unknown = |port: &&Seen<PortAccess>| port.value.above_gpu.is_none();
    ports.clone().find(above).or_else(|| ports.clone().find(unknown))
}

/// Where it was seen that no port above a GPU redirects.
pub(crate) fn ports_clear(facts: &Facts) -> Option<&Origin> {
    let mut above = facts.p2p.ports.iter().filter(|port| port.value.above_gpu == Some(true));
    let first = above.next().filter(|port| !port.value.redirects)?;
    above.all(|port| !port.value.redirects).then_some(&first.origin)
}

/// Where it was seen (or told) that this is a guest of a hypervisor.
pub(crate) fn guest(facts: &Facts) -> Option<Origin> {
    let host = &facts.host.hypervisor;
    if let Some(seen) = host.as_seen() {
        return (seen.value != "none").then(|| seen.origin.clone());
    }
    let passed = facts
        .nvml
        .gpus
        .iter()
        .find(|gpu| gpu.value.virtualization.as_deref() == Some("Pass-Through"));
    passed
        .map(|gpu| gpu.origin.clone())
        .or_else(|| facts.p2p.guest_told.as_seen().map(|seen| seen.origin.clone()))
}

/// Pairs of GPUs in the matrix of links, with their words.
pub(crate) fn gpu_links(facts: &Facts) -> impl Iterator<Item = &Seen<(String, String, String)>> {
    facts.nvml.topology.iter().filter(|seen| is_gpu_pair(&seen.value))
}

/// The matrix in which every pair of GPUs is PHB: where it stands.
pub(crate) fn flat_matrix(facts: &Facts) -> Option<&Origin> {
    let first = gpu_links(facts).next()?;
    gpu_links(facts).all(|seen| seen.value.2 == "PHB").then_some(&first.origin)
}

/// The products that the input names, listed or told, with their names as written.
pub(crate) fn products(facts: &Facts) -> Vec<Seen<(String, Option<Product>)>> {
    let boards = readings::boards(facts).into_iter();
    let mut found: Vec<Seen<(String, Option<Product>)>> = boards
        .map(|board| Seen::new((board.value.name, Some(board.value.product)), board.origin))
        .collect();
    found.extend(facts.nvml.gpus.iter().filter_map(|gpu| {
        let name = gpu.value.name.clone()?;
        let product = pci_id::by_product_name(&name);
        Some(Seen::new((name, product), gpu.origin.clone()))
    }));
    found.extend(facts.host.gpu_names.iter().map(|name| {
        let product = pci_id::by_product_name(&name.value);
        Seen::new((name.value.clone(), product), name.origin.clone())
    }));
    found
}

/// Whether a product's name is of NVIDIA's consumer line.
pub(crate) fn is_consumer(name: &str) -> bool {
    let plain = ["GeForce", "TITAN", "GTX"].iter().any(|word| name.contains(word));
    let number = name.split("RTX ").nth(1).and_then(|rest| rest.get(..4));
    let gaming = number.is_some_and(|digits| {
        // GeForce numbers are 2050 to 5090; workstation boards have 2000 to 6000, 4500, 5880.
        let series = ["20", "30", "40", "50"].iter().any(|series| digits.starts_with(series));
        series && matches!(digits.as_bytes(), [_, _, b'5'..=b'9', b'0'])
    });
    let professional = ["PRO", "Ada", "Quadro"].iter().any(|word| name.contains(word));
    (plain || gaming) && !professional
}

#[cfg(test)]
mod tests {
    use super::is_consumer;

    #[test]
    fn consumer_boards_are_told_from_workstation_boards() {
        for name in ["NVIDIA GeForce RTX 4090", "GTX 1080 Ti", "RTX 5090", "GeForce RTX 3060 Ti"] {
            assert!(is_consumer(name), "{name}");
        }
        for name in ["RTX 5880 Ada", "RTX 6000 Ada Generation", "RTX PRO 6000 Blackwell", "A100"] {
            assert!(!is_consumer(name), "{name}");
        }
    }
}
