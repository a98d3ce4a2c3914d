//! `nvidia-smi topo -m` and `topo -p2p …`: matrices of how GPUs are linked.

use super::{At, Parsed, numbered};

/// One cell: row, column and the word between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// Row, such as `GPU0` or `NIC0`.
    pub row: String,
    /// Column.
    pub column: String,
    /// `NV18`, `PIX`, `PXB`, `PHB`, `NODE`, `SYS`; in a peer-to-peer matrix `OK`, `CNS`, `GNS`,
    /// `TNS`, `DR`, `NS`, `U`.
    pub word: String,
}

/// Which matrix it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatrixKind {
    /// Links (`topo -m`).
    Links,
    /// Whether peer access is possible (`topo -p2p`).
    PeerStatus,
}

/// One matrix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matrix {
    /// Which it is, by its words.
    pub kind: MatrixKind,
    /// Cells off the diagonal, row by row, each with the line of its row.
    pub cells: Vec<At<Cell>>,
}

/// Most columns; sixteen GPUs and as many NICs are the largest machines.
const COLUMNS_LIMIT: usize = 128;
/// Most cells of one matrix and most matrices of one text.
const CELLS_LIMIT: usize = COLUMNS_LIMIT * COLUMNS_LIMIT;
const MATRICES_LIMIT: usize = 16;
/// Longest line that is looked at.
const LINE_LIMIT: usize = 8192;

/// Reads all matrices of a text, in order. A terminal's underlining is passed over.
pub fn parse(text: &str) -> Parsed<Vec<Matrix>> {
    let mut parsed: Parsed<Vec<Matrix>> = Parsed::default();
    let mut columns: Vec<String> = Vec::new();
    for (number, line) in numbered(text).filter(|(_, line)| line.len() <= LINE_LIMIT) {
        let line = without_escapes(line);
        let words: Vec<&str> = line.split_whitespace().collect();
        if let Some(heading) = heading(&words).filter(|_| parsed.value.len() < MATRICES_LIMIT) {
            columns = heading;
            parsed.value.push(Matrix { kind: MatrixKind::Links, cells: Vec::new() });
            continue;
        }
        let Some((first, rest)) = words.split_first() else {
            continue;
        };
        if !is_device(first) || columns.is_empty() {
            continue;
        }
        if rest.len() < columns.len() {
            parsed.complain(number, "a short row in nvidia-smi's matrix");
            continue;
        }
        if let Some(matrix) = parsed.value.last_mut() {
            matrix.add_row(number, first, &columns, rest);
        }
    }
    parsed.value.retain(|matrix| !matrix.cells.is_empty());
    parsed
}

impl Matrix {
    fn add_row(&mut self, line: u32, row: &str, columns: &[String], words: &[&str]) {
        for (column, word) in columns.iter().zip(words) {
            if !is_word(word) || self.cells.len() >= CELLS_LIMIT {
                continue;
            }
            if matches!(*word, "OK" | "CNS" | "GNS" | "TNS" | "DR" | "NS" | "U") {
                self.kind = MatrixKind::PeerStatus;
            }
            let cell =
                Cell { row: row.to_owned(), column: column.clone(), word: (*word).to_owned() };
            self.cells.push(At::new(line, cell));
        }
    }
}

/// The words of cells; `X` marks the diagonal and is left out.
fn is_word(word: &str) -> bool {
    let nvlink = word.strip_prefix("NV").is_some_and(|links| links.parse::<u8>().is_ok());
    nvlink
        || matches!(
            word,
            "PIX"
                | "PXB"
                | "PHB"
                | "NODE"
                | "SYS"
                | "SOC"
                | "OK"
                | "CNS"
                | "GNS"
                | "TNS"
                | "DR"
                | "NS"
                | "U"
                | "C2C"
        )
}

/// The line of column names: devices first, then the affinities.
fn heading(words: &[&str]) -> Option<Vec<String>> {
    let devices: Vec<String> = words
        .iter()
        .take(COLUMNS_LIMIT)
        .take_while(|word| is_device(word))
        .map(|word| (*word).to_owned())
        .collect();
    let next_is_affinity =
        words.get(devices.len()).is_none_or(|word| matches!(*word, "CPU" | "NUMA" | "GPU"));
    (!devices.is_empty() && next_is_affinity).then_some(devices)
}

/// `GPU0`, `NIC0`, and before 515 the names of the NICs themselves.
fn is_device(word: &str) -> bool {
    ["GPU", "NIC", "mlx5_", "mlx4_", "bnxt_re"].iter().any(|stem| {
        word.strip_prefix(stem).is_some_and(|rest| {
            !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_')
        })
    })
}

fn without_escapes(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("\x1b[") {
        out.push_str(before);
        rest = after.trim_start_matches(|ch: char| ch.is_ascii_digit() || ch == ';');
        rest = rest.strip_prefix(|ch: char| ch.is_ascii_alphabetic()).unwrap_or(rest);
    }
    out.push_str(rest);
    out
}
