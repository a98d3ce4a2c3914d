//! Rows, cells and the header row.

use super::Header;

/// A line of dashes or equal signs.
pub(super) fn is_rule(row: &str) -> bool {
    row.chars().all(|ch| matches!(ch, '+' | '-' | '=' | '|' | ' ')) && row.contains(['-', '='])
}

/// The cells between the bars, trimmed.
pub(super) fn split(row: &str) -> Vec<&str> {
    let row = row.strip_prefix('|').unwrap_or(row);
    let row = row.strip_suffix('|').unwrap_or(row);
    row.split('|').take(16).map(str::trim).collect()
}

/// The header row: `NVIDIA-SMI 535.183.01  Driver Version: 535.183.01  CUDA Version: 12.2`. From
/// about 590 on some builds say `KMD Version` and `CUDA UMD Version` instead.
pub(super) fn header(cell: &str) -> Option<Header> {
    let smi = word_after(cell, &["NVIDIA-SMI"])?;
    let driver = word_after(cell, &["Driver Version:", "KMD Version:"]);
    let cuda = word_after(cell, &["CUDA Version:", "CUDA UMD Version:"]);
    (driver.is_some() || cuda.is_some()).then_some(Header { smi: Some(smi), driver, cuda })
}

fn word_after(cell: &str, labels: &[&str]) -> Option<String> {
    let rest = labels.iter().find_map(|label| cell.split_once(label).map(|(_, rest)| rest))?;
    rest.split_ascii_whitespace().next().map(str::to_owned)
}

/// The rows of column headings, and rows that hold nothing.
pub(super) fn is_heading(cells: &[&str]) -> bool {
    const WORDS: [&str; 8] = [
        "Bus-Id",
        "Memory-Usage",
        "MIG M.",
        "Persistence",
        "Volatile",
        "Compute M.",
        "ECC",
        "GPU  ",
    ];
    cells.iter().all(|cell| cell.is_empty())
        || cells.iter().any(|cell| WORDS.iter().any(|word| cell.contains(word)))
}
