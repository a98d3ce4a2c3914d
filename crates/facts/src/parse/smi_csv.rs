//! `nvidia-smi --query-gpu=… --format=csv`.

use super::{At, Parsed, numbered};
use crate::model::health::GpuHealth;
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
    let (_, rest) = command
        .split_once("--query-gpu=")
        .or_else(|| command.split_once("--query-remapped-rows="))?;
    let list = rest.split_whitespace().next()?;
    Some(list.trim_matches(['"', '\'']).split(',').map(column_name).collect())
}

/// A column's name without its unit: `memory.total [MiB]`.
fn column_name(text: &str) -> String {
    text.split('[').next().unwrap_or(text).trim().to_ascii_lowercase()
}

fn is_heading(line: &str) -> bool {
    const NAMES: [&str; 10] = [
        "index",
        "name",
        "gpu_name",
        "uuid",
        "gpu_uuid",
        "pci.bus_id",
        "gpu_bus_id",
        "driver_version",
        "pstate",
        "utilization.gpu",
    ];
    line.split(',').map(column_name).any(|column| {
        let grouped =
            ["remapped_rows.", "pcie.link."].iter().any(|group| column.starts_with(group));
        grouped || NAMES.contains(&column.as_str())
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
        "gpu_recovery_action" => gpu.recovery_action = text(),
        "persistence_mode" => gpu.persistence = switch(value),
        "mig.mode.current" => gpu.mig = switch(value),
        "driver_version" => *driver = Some(At::new(line, value.to_owned())),
        _ => condition(column, value, &mut gpu.health),
    }
}

/// Columns that tell of the GPU's condition, of `--query-gpu` and `--query-remapped-rows`.
fn condition(column: &str, value: &str, health: &mut GpuHealth) {
    let number = || value.split_whitespace().next()?.parse::<u64>().ok();
    let small = || number().and_then(|number| u8::try_from(number).ok());
    let truth = || match value {
        "1" | "Yes" => Some(true),
        "0" | "No" => Some(false),
        _ => None,
    };
    match column {
        "pstate" => {
            health.performance_state = value.strip_prefix('P').and_then(|state| state.parse().ok());
        }
        "utilization.gpu" => health.utilization_percent = small(),
        "pcie.link.gen.current" | "pcie.link.gen.gpucurrent" => health.link.generation = small(),
        "pcie.link.gen.max" => health.link.generation_max = small(),
        "pcie.link.width.current" => health.link.width = small(),
        "pcie.link.width.max" => health.link.width_max = small(),
        "ecc.errors.uncorrected.volatile.total" => health.uncorrectable_volatile = number(),
        "ecc.errors.uncorrected.aggregate.total" => health.uncorrectable_aggregate = number(),
        "remapped_rows.uncorrectable" => health.remapped_uncorrectable = number(),
        "remapped_rows.pending" => health.remap_pending = truth(),
        "remapped_rows.failure" => health.remap_failed = truth(),
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
