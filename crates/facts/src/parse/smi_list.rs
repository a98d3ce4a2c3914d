//! `nvidia-smi -L`: one line a GPU, below it one a MIG device.

use super::{At, Parsed, numbered};
use crate::model::nvml::NvmlGpu;

/// A MIG device of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MigDevice {
    /// Index of the GPU above it, if one stands above it.
    pub gpu: Option<u32>,
    /// Profile, such as `1g.10gb`.
    pub profile: String,
    /// UUID, which begins with `MIG-`.
    pub uuid: String,
}

/// The list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SmiList {
    /// GPUs, in order.
    pub gpus: Vec<At<NvmlGpu>>,
    /// MIG devices, in order.
    pub mig_devices: Vec<At<MigDevice>>,
}

/// Most rows that are kept.
const ROWS_LIMIT: usize = 4096;

/// Reads the list. Lines of any other form are passed over: warnings and prompts stand between.
pub fn parse(text: &str) -> Parsed<SmiList> {
    let mut list = SmiList::default();
    for (number, line) in numbered(text).filter(|(_, line)| line.len() < 1024) {
        if list.gpus.len() + list.mig_devices.len() >= ROWS_LIMIT {
            break;
        }
        let line = line.trim();
        if let Some(gpu) = gpu_line(line) {
            list.gpus.push(At::new(number, gpu));
        } else if let Some((profile, uuid)) = mig_line(line) {
            let gpu = list.gpus.last_mut().and_then(|gpu| {
                gpu.value.mig = Some(true);
                gpu.value.index
            });
            list.mig_devices.push(At::new(number, MigDevice { gpu, profile, uuid }));
        }
    }
    Parsed::clean(list)
}

/// `GPU 0: NVIDIA H200 (UUID: GPU-…)`; very old drivers print no UUID.
fn gpu_line(line: &str) -> Option<NvmlGpu> {
    let (index, rest) = line.strip_prefix("GPU ")?.split_once(": ")?;
    let index = index.parse().ok()?;
    let (name, uuid) = match rest.split_once("(UUID: ") {
        Some((name, uuid)) => (name.trim(), uuid.strip_suffix(')')),
        None => (rest.trim(), None),
    };
    Some(NvmlGpu {
        index: Some(index),
        name: Some(name.to_owned()).filter(|name| !name.is_empty()),
        uuid: uuid.map(str::to_owned),
        ..NvmlGpu::default()
    })
}

/// `MIG 1g.10gb     Device  0: (UUID: MIG-…)`.
fn mig_line(line: &str) -> Option<(String, String)> {
    let rest = line.strip_prefix("MIG ")?;
    let (head, uuid) = rest.split_once("(UUID: ")?;
    let profile = head.split_ascii_whitespace().next()?;
    Some((profile.to_owned(), uuid.strip_suffix(')')?.to_owned()))
}
