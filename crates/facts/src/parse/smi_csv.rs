//! `nvidia-smi --query-gpu=… --format=csv`.

use super::{At, Parsed, numbered};
use crate::model::nvml::NvmlGpu;
use crate::model::pci::PciAddress;

/// The GPUs of the output and the driver version, when it was asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SmiCsv {
    /// GPUs, one a line.
    pub gpus: Vec<At<NvmlGpu>>,
    /// Driver version as text.
    pub driver: Option<At<String>>,
}

/// Longest line that is looked at.
const LINE_LIMIT: usize = 4096;
/// Most rows that are kept.
const ROWS_LIMIT: usize = 4096;

/// Reads the output. The columns stand in its first line or, where that was left out
/// (`noheader`), in the command line.
pub fn parse(text: &str, command: Option<&str>) -> Parsed<SmiCsv> {
    let mut parsed: Parsed<SmiCsv> = Parsed::default();
    let asked = command.and_then(columns_of_command).unwrap_or_default();
    let noheader = command.is_some_and(|command| command.contains("noheader"));
    let mut columns = if noheader { asked } else { Vec::new() };
    for (number, line) in numbered(text).filter(|(_, line)| line.len() <= LINE_LIMIT) {
        if line.trim().is_empty() {
            continue;
        }
        if columns.is_empty() {
            if !is_heading(line) {
                parsed.complain(number, "no heading of nvidia-smi's columns");
                return parsed;
            }
            columns = line.split(',').map(column_name).collect();
            continue;
        }
        let mut gpu = NvmlGpu::default();
        for (column, value) in columns.iter().zip(line.split(',')) {
            set(column, value.trim(), number, &mut gpu, &mut parsed.value.driver);
        }
        if gpu != NvmlGpu::default() && parsed.value.gpus.len() < ROWS_LIMIT {
            parsed.value.gpus.push(At::new(number, gpu));
        }
    }
    parsed
}

fn columns_of_command(command: &str) -> Option<Vec<String>> {
    let (_, rest) = command.split_once("--query-gpu=")?;
    let list = rest.split_whitespace().next()?;
    Some(list.trim_matches(['"', '\'']).split(',').map(column_name).collect())
}

/// A column's name without its unit: `memory.total [MiB]`.
fn column_name(text: &str) -> String {
    text.split('[').next().unwrap_or(text).trim().to_ascii_lowercase()
}

fn is_heading(line: &str) -> bool {
    line.split(',').map(column_name).any(|column| {
        matches!(
            column.as_str(),
            "index" | "name" | "gpu_name" | "uuid" | "pci.bus_id" | "driver_version"
        )
    })
}

fn set(column: &str, value: &str, line: u32, gpu: &mut NvmlGpu, driver: &mut Option<At<String>>) {
    let text = || Some(value.to_owned());
    match column {
        "index" => gpu.index = value.parse().ok(),
        "name" | "gpu_name" => gpu.name = text(),
        "uuid" | "gpu_uuid" => gpu.uuid = text(),
        "pci.bus_id" | "gpu_bus_id" => gpu.address = PciAddress::parse(value),
        "compute_mode" => gpu.compute_mode = text(),
        "persistence_mode" => gpu.persistence = switch(value),
        "mig.mode.current" => gpu.mig = switch(value),
        "driver_version" => *driver = Some(At::new(line, value.to_owned())),
        _ => {}
    }
}

fn switch(value: &str) -> Option<bool> {
    match value {
        "Enabled" => Some(true),
        "Disabled" => Some(false),
        _ => None,
    }
}
