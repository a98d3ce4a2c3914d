//! Processes and MIG devices in nvidia-smi's output.

use crate::extract::places::Places;
use crate::model::Facts;
use crate::model::share::{GpuProcess, MigDevice};
use crate::observed::{Observed, Seen};
use crate::parse::{At, smi_list, smi_table};
use crate::raw::RawItem;

/// Most processes that are kept.
const LIMIT: usize = 4096;

/// Enters them.
pub(super) fn apply(item: &RawItem, text: &str, facts: &mut Facts) {
    let places = Places::new(item, text);
    let table = smi_table::parse(text).value;
    for At { line, value } in table.processes {
        if facts.share.processes.len() >= LIMIT {
            break;
        }
        let process = GpuProcess {
            gpu: Some(value.gpu),
            pid: value.pid,
            kind: value.kind,
            name: value.name,
            memory_mib: value.memory_mib,
        };
        // A second listing may show it with other memory.
        let same = |seen: &GpuProcess| {
            (seen.gpu, seen.pid, &seen.name) == (process.gpu, process.pid, &process.name)
        };
        let known = facts.share.processes.iter().any(|seen| same(&seen.value));
        if !known {
            facts.share.processes.push(Seen::new(process, places.at(line)));
        }
    }
    if table.no_processes && facts.share.no_processes.is_none() {
        let row = crate::parse::numbered(text).find(|(_, line)| line.contains("No running"));
        facts.share.no_processes = row.map(|(line, content)| item.origin_at(line, content));
    }
    let rows = table.mig_devices.into_iter().map(|At { line, value }| {
        (line, MigDevice { gpu: Some(value.gpu), ..MigDevice::default() })
    });
    mig(&places, rows.collect(), facts);
    let listed = smi_list::parse(text).value.mig_devices.into_iter().map(|At { line, value }| {
        let device =
            MigDevice { gpu: value.gpu, profile: Some(value.profile), uuid: Some(value.uuid) };
        (line, device)
    });
    mig(&places, listed.collect(), facts);
    no_mig(item, text, facts);
}

/// A list with UUIDs says more than the table of instances, and replaces it.
fn mig(places: &Places<'_>, devices: Vec<(u32, MigDevice)>, facts: &mut Facts) {
    let Some(line) = devices.first().map(|(line, _)| *line) else { return };
    let named = devices.iter().all(|(_, device)| device.uuid.is_some());
    if facts.share.mig_devices.is_seen() && !named {
        return;
    }
    let devices = devices.into_iter().map(|(_, device)| device).collect();
    facts.share.mig_devices = Observed::seen(devices, places.at(line));
}

/// `|  No MIG devices found |`, which the table has when the mode is on and nothing was made.
fn no_mig(item: &RawItem, text: &str, facts: &mut Facts) {
    let row = crate::parse::numbered(text).find(|(_, line)| line.contains("No MIG devices found"));
    if let Some((line, content)) = row {
        facts.share.mig_devices.or_better(Observed::Absent(item.origin_at(line, content)));
    }
}
