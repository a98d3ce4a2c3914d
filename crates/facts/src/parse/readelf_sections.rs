//! The output of `readelf -S` over a GSP firmware file.

use super::elf_gsp::GspSummary;
use super::{Parsed, numbered};

/// Reads the section headers. Several files in one output are one element each; `complete` is set
/// for those whose table's number of rows is the number that the header announces.
pub fn parse(text: &str) -> Parsed<Vec<GspSummary>> {
    let mut tables: Vec<Table> = Vec::new();
    for (_, line) in numbered(text) {
        let line = line.trim_start();
        if starts_table(line) {
            tables.push(Table::default());
        }
        if let Some(count) = announced_count(line) {
            if tables.last().is_none_or(|table| table.rows > 0) {
                tables.push(Table::default());
            }
            if let Some(table) = tables.last_mut() {
                table.announced = Some(count);
            }
        }
        if let Some(name) = row_name(line) {
            if tables.is_empty() {
                tables.push(Table::default());
            }
            if let Some(table) = tables.last_mut() {
                table.rows += 1;
                table.summary.add_section_name(name);
            }
        }
    }
    let found = tables.into_iter().filter(|table| table.rows > 0).map(Table::finish).collect();
    Parsed::clean(found)
}

#[derive(Default)]
struct Table {
    announced: Option<u32>,
    rows: u32,
    summary: GspSummary,
}

impl Table {
    fn finish(self) -> GspSummary {
        GspSummary { complete: self.announced == Some(self.rows), ..self.summary }
    }
}

/// A new file begins with its ELF header or, among several, with its name.
fn starts_table(line: &str) -> bool {
    line.starts_with("ELF Header:") || line.starts_with("File: ")
}

/// `Number of section headers: 17` or `There are 17 section headers, starting at offset …`.
fn announced_count(line: &str) -> Option<u32> {
    if let Some(rest) = line.strip_prefix("Number of section headers:") {
        return rest.trim().parse().ok();
    }
    let (count, rest) = line.strip_prefix("There are ")?.split_once(' ')?;
    rest.starts_with("section headers").then(|| count.parse().ok())?
}

/// The name in a row such as `[ 4] .fwsignature_gb20y PROGBITS …`; empty for the null section.
/// `readelf` without `-W` cuts long names and marks the cut with `[...]`; a cut name is no family.
fn row_name(line: &str) -> Option<&str> {
    let (number, rest) = line.strip_prefix('[')?.split_once(']')?;
    number.trim().parse::<u32>().ok()?;
    let name = rest.split_ascii_whitespace().next().unwrap_or("");
    Some(if name.starts_with('.') && !name.contains("[...]") { name } else { "" })
}
