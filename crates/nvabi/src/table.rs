//! A table of the `data/` folder: tab-separated text, the first line its header.
//!
//! The text is part of the binary; it is cut into cells when a table is first asked for, and not
//! before, so that a run pays only for the tables it reads.

use std::sync::LazyLock;

use crate::number;
use crate::tables::{ALL, SOURCES};

/// A parsed table.
#[derive(Debug)]
pub struct Table {
    name: &'static str,
    header: Vec<&'static str>,
    cells: Vec<&'static str>,
}

impl Table {
    pub(crate) fn parse(name: &'static str, text: &'static str) -> Table {
        let mut lines = text.lines();
        let header: Vec<&'static str> = lines.next().unwrap_or("").split('\t').collect();
        let mut cells = Vec::new();
        for line in lines {
            // A short line is padded, so that the cells stay a rectangle; a test refuses one.
            let padded = line.split('\t').chain(std::iter::repeat(""));
            cells.extend(padded.take(header.len()));
        }
        Table { name, header, cells }
    }

    /// The name, which is the file's name without `.tsv`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The column titles as they stand in the file, remarks in parentheses included.
    pub fn header(&self) -> &[&'static str] {
        &self.header
    }

    /// The number of rows, the header not counted.
    pub fn len(&self) -> usize {
        self.cells.len() / self.header.len().max(1)
    }

    /// True when there is no row.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Where the table as a whole comes from, as `data/sources.tsv` says.
    pub fn source(&self) -> &'static str {
        source_row(self.name).map_or("", |row| row.text("source"))
    }

    /// The place of a column. A title is known by its part before a parenthesis: `file` finds
    /// `file(under /lib/firmware/nvidia/<version>/)`.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.header.iter().position(|title| title.split('(').next() == Some(name))
    }

    /// The rows, in the order of the file.
    pub fn rows(&'static self) -> impl DoubleEndedIterator<Item = Row> + ExactSizeIterator + Clone {
        (0..self.len()).map(move |index| Row { table: self, index })
    }

    /// The first row whose cell in this column is `text`, ASCII case aside.
    pub fn find(&'static self, column: &str, text: &str) -> Option<Row> {
        self.rows().find(|row| row.text(column).eq_ignore_ascii_case(text))
    }

    /// The rows with this number in this column, by binary search: the table must be sorted by it,
    /// which `tests/order.rs` holds for each column that is searched so.
    pub(crate) fn numbered(
        &'static self,
        column: &'static str,
        wanted: u64,
    ) -> impl DoubleEndedIterator<Item = Row> + Clone {
        let (place, width) = (self.column(column).unwrap_or(0), self.header.len());
        let key = move |index: usize| {
            self.cells.get(index * width + place).and_then(|cell| number::parse(cell)).unwrap_or(0)
        };
        let first = partition_point(self.len(), |index| key(index) < wanted);
        let end = partition_point(self.len(), |index| key(index) <= wanted);
        (first..end).map(move |index| Row { table: self, index })
    }
}

/// The first index below `len` for which `before` is false.
fn partition_point(len: usize, before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, len);
    while low < high {
        let middle = low + (high - low) / 2;
        if before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// One row of a table.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    table: &'static Table,
    index: usize,
}

impl Row {
    /// The table that the row is of.
    pub fn table(&self) -> &'static Table {
        self.table
    }

    /// The line in the file, from 1; the header is line 1.
    pub fn line(&self) -> usize {
        self.index + 2
    }

    /// The cells, in the order of the columns.
    pub fn cells(&self) -> &'static [&'static str] {
        let width = self.table.header.len();
        let start = self.index * width;
        self.table.cells.get(start..start + width).unwrap_or(&[])
    }

    /// The cell of a column; `None` when the table has no such column.
    pub fn get(&self, column: &str) -> Option<&'static str> {
        let column = self.table.column(column)?;
        self.cells().get(column).copied()
    }

    /// The cell of a column that the table is known to have, or an empty text.
    pub(crate) fn text(&self, column: &str) -> &'static str {
        let cell = self.get(column);
        debug_assert!(cell.is_some(), "no column {column} in {}", self.table.name);
        cell.unwrap_or("")
    }

    /// The cell of a column as a number.
    pub(crate) fn number(&self, column: &str) -> Option<u64> {
        number::parse(self.text(column))
    }

    /// The cell of a column as a number of at most 32 bits.
    pub(crate) fn number_u32(&self, column: &str) -> Option<u32> {
        number::parse_u32(self.text(column))
    }

    /// Where the row comes from: its own source column when the table has one and the cell is
    /// filled, else the table's source.
    pub fn source(&self) -> &'static str {
        let own = source_row(self.table.name)
            .and_then(|row| row.get("source_column"))
            .and_then(|column| self.get(column))
            .filter(|text| !text.is_empty());
        own.unwrap_or_else(|| self.table.source())
    }
}

fn source_row(table: &str) -> Option<Row> {
    let sources: &'static Table = &SOURCES;
    sources.find("table", table)
}

/// All tables, each parsed by this call.
pub fn all() -> impl Iterator<Item = &'static Table> {
    ALL.iter().map(|(_, table)| -> &'static Table { table })
}

/// The names of all tables; parses none.
pub fn names() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|(name, _)| *name)
}

/// The table of that name, which is its file's name without `.tsv`.
pub fn by_name(name: &str) -> Option<&'static Table> {
    ALL.iter().find(|(known, _)| *known == name).map(|(_, table)| -> &'static Table { table })
}

/// The names of the tables that this process has parsed so far.
pub fn parsed() -> Vec<&'static str> {
    ALL.iter().filter(|(_, table)| LazyLock::get(table).is_some()).map(|(name, _)| *name).collect()
}
