//! The table that plain `nvidia-smi` draws, of all driver generations, whole or in part.
//!
//! The table grew from 79 columns (up to 525) to 91 (from 530 on), got a third line a GPU for MIG
//! in 450, and changed its header's words around 590; the cells between the bars kept their
//! order. So nothing here counts columns: a row is known by its cells.

mod cells;
mod gpu;
mod rest;

use super::{At, Parsed, numbered};
use crate::model::nvml::NvmlGpu;

/// A MIG device of the second table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MigRow {
    /// GPU index.
    pub gpu: u32,
    /// GPU instance.
    pub gpu_instance: u32,
    /// Compute instance.
    pub compute_instance: u32,
    /// MIG device index.
    pub device: u32,
}

/// A process of the last table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessRow {
    /// GPU index.
    pub gpu: u32,
    /// Process id as the table shows it (often that of another namespace).
    pub pid: u32,
    /// `C`, `G`, `C+G`, `M+C`.
    pub kind: String,
    /// Name, possibly cut short with dots.
    pub name: String,
    /// GPU memory that it holds, in MiB; `None` where the table has `N/A`.
    pub memory_mib: Option<u64>,
}

/// What the header row tells. The words `N/A` and `ERR!` are kept as they stand.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Header {
    /// Version of `nvidia-smi`, which is that of its libnvidia-ml package.
    pub smi: Option<String>,
    /// Version of the kernel module as NVML tells it.
    pub driver: Option<String>,
    /// CUDA version that the driver supports; from 418 on. `N/A` when nvidia-smi found no libcuda.
    pub cuda: Option<String>,
}

/// The table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SmiTable {
    /// The header row.
    pub header: Option<At<Header>>,
    /// The GPUs, in order.
    pub gpus: Vec<At<NvmlGpu>>,
    /// Words of rows that say `ERR!`, by the index of the GPU.
    pub errors: Vec<At<u32>>,
    /// MIG devices.
    pub mig_devices: Vec<At<MigRow>>,
    /// Processes.
    pub processes: Vec<At<ProcessRow>>,
    /// True when the process table is there and says that there is none.
    pub no_processes: bool,
}

impl SmiTable {
    /// True when nothing of a table was found.
    pub fn is_empty(&self) -> bool {
        *self == SmiTable::default()
    }
}

/// Which of the three tables a line belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Gpus,
    MigDevices,
    Processes,
}

/// Longest line that is looked at; the widest table has 91 columns.
const LINE_LIMIT: usize = 1024;
/// Most rows of one kind that are kept.
const ROWS_LIMIT: usize = 4096;

/// Reads the table, or what is there of it.
pub fn parse(text: &str) -> Parsed<SmiTable> {
    let mut reader = Reader { part: Part::Gpus, in_gpu: false, parsed: Parsed::default() };
    for (number, line) in numbered(text) {
        // Quoted tables come with marks in front; the first bar or corner begins the row.
        let start = line.find(['|', '+']).filter(|start| *start < 16);
        let Some(row) = start.and_then(|start| line.get(start..)) else {
            continue;
        };
        if line.len() <= LINE_LIMIT {
            reader.row(number, row.trim_end());
        }
    }
    reader.parsed
}

struct Reader {
    part: Part,
    /// True between the first line of a GPU and the rule below it.
    in_gpu: bool,
    parsed: Parsed<SmiTable>,
}

impl Reader {
    fn row(&mut self, number: u32, row: &str) {
        if cells::is_rule(row) {
            self.in_gpu = false;
            return;
        }
        let cells = cells::split(row);
        let first = cells.first().copied().unwrap_or("");
        if let Some(header) = cells::header(first) {
            self.part = Part::Gpus;
            self.parsed.value.header.get_or_insert(At::new(number, header));
        } else if first.starts_with("MIG devices:") {
            self.part = Part::MigDevices;
        } else if first.starts_with("Processes:") || first.starts_with("Compute processes:") {
            self.part = Part::Processes;
        } else {
            match self.part {
                Part::Gpus => self.gpu_row(number, &cells),
                Part::MigDevices => self.mig_row(number, &cells),
                Part::Processes => self.process_row(number, first),
            }
        }
    }

    fn gpu_row(&mut self, number: u32, cells: &[&str]) {
        let table = &mut self.parsed.value;
        let erroneous = cells.iter().any(|cell| cell.contains("ERR!"));
        if let Some(gpu) = gpu::first_line(cells) {
            self.in_gpu = true;
            if table.gpus.len() < ROWS_LIMIT {
                table.gpus.push(At::new(number, gpu));
            }
        } else if let (true, Some(gpu)) = (self.in_gpu, table.gpus.last_mut()) {
            gpu::next_line(cells, &mut gpu.value);
        } else if !cells::is_heading(cells) {
            self.parsed.complain(number, "unknown row in nvidia-smi's table");
            return;
        }
        let index = table.gpus.last().and_then(|gpu| gpu.value.index);
        if let (true, true, Some(index)) = (erroneous, self.in_gpu, index)
            && !table.errors.iter().any(|error| error.value == index)
        {
            table.errors.push(At::new(number, index));
        }
    }

    fn mig_row(&mut self, number: u32, cells: &[&str]) {
        let rows = &mut self.parsed.value.mig_devices;
        rows.extend(
            rest::mig_row(cells)
                .filter(|_| rows.len() < ROWS_LIMIT)
                .map(|row| At::new(number, row)),
        );
    }

    fn process_row(&mut self, number: u32, cell: &str) {
        let table = &mut self.parsed.value;
        if cell.contains("No running") {
            table.no_processes = true;
        } else if let Some(row) =
            rest::process_row(cell).filter(|_| table.processes.len() < ROWS_LIMIT)
        {
            table.processes.push(At::new(number, row));
        }
    }
}
