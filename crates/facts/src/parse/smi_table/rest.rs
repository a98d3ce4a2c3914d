//! The tables of MIG devices and of processes.

use super::{MigRow, ProcessRow};

/// `  0    7   0   0 ` in the first cell of a row of the MIG table.
pub(super) fn mig_row(cells: &[&str]) -> Option<MigRow> {
    let mut numbers = cells.first()?.split_ascii_whitespace().map(str::parse);
    let mut next = || numbers.next()?.ok();
    Some(MigRow { gpu: next()?, gpu_instance: next()?, compute_instance: next()?, device: next()? })
}

/// `0   N/A  N/A   1234   C   python3   1000MiB`; before 450 without the two instance columns.
pub(super) fn process_row(cell: &str) -> Option<ProcessRow> {
    let mut words = cell.split_ascii_whitespace().peekable();
    let gpu = words.next()?.parse().ok()?;
    let mut head: Vec<&str> = Vec::new();
    while let Some(word) = words.peek() {
        let instance_or_pid = *word == "N/A" || word.bytes().all(|byte| byte.is_ascii_digit());
        if !instance_or_pid || head.len() == 3 {
            break;
        }
        head.push(word);
        words.next();
    }
    let pid = head.last()?.parse().ok()?;
    let kind = words.next()?.to_owned();
    let mut name: Vec<&str> = words.collect();
    let memory = name.pop_if(|word| word.ends_with("MiB") || *word == "N/A");
    let memory_mib = memory.and_then(|word| word.strip_suffix("MiB")?.parse().ok());
    Some(ProcessRow { gpu, pid, kind, name: name.join(" "), memory_mib })
}
