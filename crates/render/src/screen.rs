//! Lines of styled spans, and a grid whose last column wraps: all that the terminal needs.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use comfy_table::{ColumnConstraint, ContentArrangement, Table, Width, presets};

use crate::clean::clean;

/// How the text is to be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Columns of the terminal; what is narrower than [`NARROWEST`] is left to the terminal to
    /// fold.
    pub width: usize,
    /// Whether color may be written. It is never the only sign of anything.
    pub color: bool,
    /// Whether to print every observation with its origin.
    pub verbose: bool,
}

impl Options {
    /// The columns to lay text out in.
    pub(crate) fn columns(self) -> usize {
        self.width.clamp(NARROWEST, WIDEST)
    }
}

/// Below this many columns, wrapping costs more than it gives.
pub const NARROWEST: usize = 20;

/// Beyond this many columns a line is too long to be read.
pub const WIDEST: usize = 200;

/// What a piece of text is, which decides its color.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Role {
    /// Running text.
    #[default]
    Plain,
    /// Headings and what must be found first.
    Strong,
    /// Something is as it should be.
    Good,
    /// Something is wrong.
    Bad,
    /// Something is not known or not certain.
    Doubt,
    /// Origins and other particulars.
    Dim,
    /// A command to be typed.
    Command,
}

impl Role {
    fn style(self) -> Style {
        match self {
            Role::Plain => Style::new(),
            Role::Strong => Style::new().bold(),
            Role::Good => AnsiColor::Green.on_default(),
            Role::Bad => AnsiColor::Red.on_default().bold(),
            Role::Doubt => AnsiColor::Yellow.on_default(),
            Role::Dim => Style::new().dimmed(),
            Role::Command => AnsiColor::Cyan.on_default(),
        }
    }
}

/// Text with its role. Making one cleans the text.
#[derive(Debug, Clone)]
pub(crate) struct Span {
    text: String,
    role: Role,
}

impl Span {
    pub(crate) fn new(text: impl AsRef<str>, role: Role) -> Span {
        Span { text: clean(text.as_ref()).into_owned(), role }
    }

    pub(crate) fn plain(text: impl AsRef<str>) -> Span {
        Span::new(text, Role::Plain)
    }
}

/// A screen that is being written.
pub(crate) struct Screen<'w, W: Write> {
    out: &'w mut W,
    options: Options,
    /// An empty line is due before the next text.
    gap: bool,
}

impl<'w, W: Write> Screen<'w, W> {
    pub(crate) fn new(out: &'w mut W, options: Options) -> Self {
        Screen { out, options, gap: false }
    }

    pub(crate) fn options(&self) -> Options {
        self.options
    }

    /// Sets what follows apart by one empty line; nothing happens at the end of the screen.
    pub(crate) fn gap(&mut self) {
        self.gap = true;
    }

    /// Begins a line.
    fn begin(&mut self, indent: usize) -> io::Result<()> {
        if std::mem::take(&mut self.gap) {
            writeln!(self.out)?;
        }
        write!(self.out, "{:indent$}", "")
    }

    /// One line as it is, however long: a command must be copied whole.
    pub(crate) fn line(&mut self, spans: &[Span]) -> io::Result<()> {
        self.begin(0)?;
        for span in spans {
            self.span(&span.text, span.role)?;
        }
        writeln!(self.out)
    }

    /// A paragraph, wrapped, with every line indented.
    pub(crate) fn paragraph(&mut self, indent: usize, span: &Span) -> io::Result<()> {
        let room = self.options.columns().saturating_sub(indent).max(1);
        for line in wrap(&span.text, room) {
            self.begin(indent)?;
            self.span(&line, span.role)?;
            writeln!(self.out)?;
        }
        Ok(())
    }

    /// Rows of cells: all columns but the last are as wide as their widest cell, the last wraps.
    /// Where there is no room for that, the last cell goes below the others.
    pub(crate) fn grid(&mut self, indent: usize, rows: &[Vec<Span>]) -> io::Result<()> {
        let widths = fixed_widths(rows);
        let fixed: usize = widths.iter().map(|width| width + GAP).sum();
        if indent + fixed + LEAST_ROOM > self.options.columns() {
            return rows.iter().try_for_each(|row| self.stacked(indent, row));
        }
        rows.iter().try_for_each(|row| self.side_by_side(indent, &widths, row))
    }

    /// Rows of a label and a text. A label that is much longer than the others stands on a line of
    /// its own, so that one long list of ids does not squeeze every text to the right edge.
    pub(crate) fn labelled(&mut self, indent: usize, rows: &[Vec<Span>]) -> io::Result<()> {
        let most = self.options.columns() * 2 / 5;
        let fits = |row: &[Span]| row.first().is_none_or(|cell| cell.text.chars().count() <= most);
        let fitting: Vec<Vec<Span>> = rows.iter().filter(|row| fits(row)).cloned().collect();
        let widths = fixed_widths(&fitting);
        let roomy =
            indent + widths.iter().sum::<usize>() + GAP + LEAST_ROOM <= self.options.columns();
        for row in rows {
            if roomy && fits(row) {
                self.side_by_side(indent, &widths, row)?;
            } else {
                self.stacked(indent, row)?;
            }
        }
        Ok(())
    }

    /// A title of three parts, the last of which is never torn apart from the others if there is
    /// room for all in one line.
    pub(crate) fn title(&mut self, word: &str, claim: &str, id: &str) -> io::Result<()> {
        let length = [word, claim, id].iter().map(|part| part.chars().count()).sum::<usize>() + 3;
        if length <= self.options.columns() {
            return self.line(&[
                Span::new(word, Role::Bad),
                Span::new(claim, Role::Strong),
                Span::plain("   "),
                Span::plain(id),
            ]);
        }
        self.paragraph(0, &Span::new(format!("{word}{claim}"), Role::Strong))?;
        self.paragraph(2, &Span::plain(id))
    }

    fn side_by_side(&mut self, indent: usize, widths: &[usize], row: &[Span]) -> io::Result<()> {
        let Some((last, head)) = row.split_last() else { return Ok(()) };
        for (number, line) in table_lines(row, widths, self.options.columns() - indent).enumerate()
        {
            self.begin(indent)?;
            let mut rest = line.as_str();
            for (cell, width) in head.iter().zip(widths) {
                let (text, after) = split_at_char(rest, width + GAP);
                let role = if number == 0 { cell.role } else { Role::Plain };
                let word = text.trim_end();
                self.span(word, role)?;
                if !after.is_empty() {
                    write!(self.out, "{}", text.get(word.len()..).unwrap_or_default())?;
                }
                rest = after;
            }
            self.span(rest, last.role)?;
            writeln!(self.out)?;
        }
        Ok(())
    }

    fn stacked(&mut self, indent: usize, row: &[Span]) -> io::Result<()> {
        let Some((last, head)) = row.split_last() else { return Ok(()) };
        self.begin(indent)?;
        for (number, cell) in head.iter().enumerate() {
            if number > 0 && !cell.text.is_empty() {
                write!(self.out, " ")?;
            }
            self.span(&cell.text, cell.role)?;
        }
        if !head.is_empty() {
            writeln!(self.out)?;
        }
        self.paragraph(indent + 2, last)
    }

    fn span(&mut self, text: &str, role: Role) -> io::Result<()> {
        let style = role.style();
        if self.options.color && !text.is_empty() && style != Style::new() {
            write!(self.out, "{style}{text}{style:#}")
        } else {
            self.out.write_all(text.as_bytes())
        }
    }
}

/// Columns between two cells.
const GAP: usize = 2;

/// The least room in which the last column is worth wrapping beside the others.
const LEAST_ROOM: usize = 24;

/// Splits after so many characters; the fixed columns hold ids and words of one column a
/// character.
fn split_at_char(text: &str, count: usize) -> (&str, &str) {
    let at = text.char_indices().nth(count).map_or(text.len(), |(at, _)| at);
    text.split_at(at)
}

fn fixed_widths(rows: &[Vec<Span>]) -> Vec<usize> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widest = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.text.chars().count()).max().unwrap_or(0)
    };
    (0..columns.saturating_sub(1)).map(widest).collect()
}

/// Lays one row out; the lines come without trailing blanks.
fn table_lines(row: &[Span], widths: &[usize], width: usize) -> impl Iterator<Item = String> {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(columns(width))
        .add_row(row.iter().map(|span| &span.text));
    let last = row.len().saturating_sub(1);
    for (index, column) in table.column_iter_mut().enumerate() {
        let gap = if index == last { 0 } else { GAP };
        column.set_padding((0, columns(gap)));
        if let Some(fixed) = widths.get(index) {
            column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(columns(fixed + gap))));
        }
    }
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.into_iter()
}

/// Wraps a text at words.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(columns(width))
        .add_row([text]);
    for column in table.column_iter_mut() {
        column.set_padding((0, 0));
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect()
}

fn columns(count: usize) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}
