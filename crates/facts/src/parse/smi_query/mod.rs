//! `nvidia-smi -q`: an indented tree, whole or in the parts that `grep` left of it.

mod health;
mod tree;

use super::{At, Parsed};
use crate::model::nvml::NvmlGpu;
use crate::model::pci::PciAddress;

pub use tree::Entry;

/// One GPU of the report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueriedGpu {
    /// The fields that are typed.
    pub gpu: NvmlGpu,
    /// The line of its GSP firmware version, if that is there.
    pub gsp_line: Option<u32>,
    /// All entries, by their path in the tree.
    pub entries: Vec<Entry>,
}

impl QueriedGpu {
    /// The value at a path such as `Fabric/State`.
    pub fn get(&self, path: &str) -> Option<&str> {
        self.entries.iter().find(|entry| entry.path == path).map(|entry| entry.value.as_str())
    }
}

/// The report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SmiQuery {
    /// Driver version as text.
    pub driver: Option<At<String>>,
    /// CUDA version as text; `N/A` or `Not Found` when nvidia-smi found no libcuda.
    pub cuda: Option<At<String>>,
    /// How many GPUs it announces.
    pub attached: Option<At<u32>>,
    /// The GPUs, in order.
    pub gpus: Vec<At<QueriedGpu>>,
}

impl SmiQuery {
    /// True when nothing of a report was found.
    pub fn is_empty(&self) -> bool {
        *self == SmiQuery::default()
    }
}

/// Reads the report.
pub fn parse(text: &str) -> Parsed<SmiQuery> {
    let mut query = SmiQuery::default();
    for group in tree::groups(text) {
        let mut entries = group.entries;
        take_report_fields(&mut entries, &mut query);
        let mut gpu = QueriedGpu { gpu: NvmlGpu::default(), gsp_line: None, entries };
        gpu.gpu.address = group.address;
        fill(&mut gpu);
        let known = gpu.gpu != NvmlGpu::default();
        if known || group.address.is_some() {
            query.gpus.push(At::new(group.line, gpu));
        }
    }
    // The order of the report is that of the indices only when all GPUs are in it.
    if query.attached.as_ref().is_some_and(|n| usize::try_from(n.value) == Ok(query.gpus.len())) {
        for (index, gpu) in (0..).zip(&mut query.gpus) {
            gpu.value.gpu.index = Some(index);
        }
    }
    Parsed::clean(query)
}

/// Takes the entries that stand above the first GPU.
fn take_report_fields(entries: &mut Vec<Entry>, query: &mut SmiQuery) {
    entries.retain(|entry| {
        let at = || At::new(entry.line, entry.value.clone());
        match entry.path.as_str() {
            "Driver Version" | "KMD Version" => query.driver = Some(at()),
            "CUDA Version" | "CUDA UMD Version" => query.cuda = Some(at()),
            "Attached GPUs" => {
                query.attached = entry.value.parse().ok().map(|count| At::new(entry.line, count));
            }
            _ => return true,
        }
        false
    });
}

/// Enters the entries that are typed.
fn fill(queried: &mut QueriedGpu) {
    let QueriedGpu { gpu, gsp_line, entries } = queried;
    let mut memory_used = None;
    let mut memory_total = None;
    for Entry { line, path, value } in entries.iter() {
        let text = || Some(value.clone());
        health::fill(path, value, &mut gpu.health);
        match path.as_str() {
            "Product Name" => gpu.name = text(),
            "Product Architecture" => gpu.architecture = text(),
            "GPU UUID" => gpu.uuid = text(),
            "Minor Number" => gpu.minor = value.parse().ok(),
            "Persistence Mode" => gpu.persistence = switch(value),
            "Addressing Mode" => gpu.addressing_mode = text(),
            "MIG Mode/Current" => gpu.mig = switch(value),
            "Compute Mode" => gpu.compute_mode = text(),
            "GPU Recovery Action" => gpu.recovery_action = text(),
            "GPU Virtualization Mode/Virtualization Mode" | "Virtualization Mode" => {
                gpu.virtualization = text();
            }
            "GSP Firmware Version" => {
                gpu.gsp_version = text();
                *gsp_line = Some(*line);
            }
            "Fabric/State" => gpu.fabric_state = text(),
            "Fabric/Status" => gpu.fabric_status = text(),
            "PCI/Bus Id" | "Bus Id" => gpu.address = gpu.address.or(PciAddress::parse(value)),
            "PCI/Device Id" | "Device Id" => gpu.device_id = device_id(value),
            "FB Memory Usage/Total" => memory_total = mib(value),
            "FB Memory Usage/Used" => memory_used = mib(value),
            "vGPU Software Licensed Product/License Status" | "License Status" => {
                gpu.license = text();
            }
            _ => {}
        }
    }
    gpu.memory_mib = memory_used.zip(memory_total);
}

fn switch(value: &str) -> Option<bool> {
    match value {
        "Enabled" => Some(true),
        "Disabled" => Some(false),
        _ => None,
    }
}

/// `0x233510DE`: device above vendor.
fn device_id(value: &str) -> Option<u16> {
    let both = u32::from_str_radix(value.strip_prefix("0x")?, 16).ok()?;
    u16::try_from(both >> 16).ok()
}

fn mib(value: &str) -> Option<u64> {
    value.strip_suffix("MiB")?.trim().parse().ok()
}
