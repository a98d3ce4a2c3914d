//! Standard output and standard error: width, color, and a closed pipe.

use std::ffi::OsStr;
use std::io::{self, IsTerminal, Write};

use anstream::{AutoStream, ColorChoice};
use render::screen::Options;

use crate::args::ColorWhen;
use crate::exit::Exit;

/// Columns where nothing tells how many there are.
const COLUMNS: usize = 100;

/// How text is to be laid out on standard output.
pub(crate) fn options(color: ColorWhen, verbose: bool) -> Options {
    Options { width: width(), color: uses_color(color), verbose }
}

fn uses_color(when: ColorWhen) -> bool {
    match when {
        ColorWhen::Always => true,
        ColorWhen::Never => false,
        ColorWhen::Auto => {
            let stdout = io::stdout();
            stdout.is_terminal() && AutoStream::choice(&stdout) != ColorChoice::Never
        }
    }
}

/// `COLUMNS`, else the terminal's own answer, else a width that suits a file.
fn width() -> usize {
    let asked = std::env::var_os("COLUMNS").as_deref().and_then(OsStr::to_str).map(str::parse);
    if let Some(Ok(columns)) = asked
        && columns > 0
    {
        return columns;
    }
    let terminal = terminal_size::terminal_size_of(io::stdout());
    terminal.map_or(COLUMNS, |(width, _)| usize::from(width.0).max(1))
}

/// Writes a whole answer. A reader that has gone away (`| head -1`) is no failure; a full disk is.
pub(crate) fn print(exit: Exit, write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> Exit {
    let mut answer = Vec::new();
    let written = write(&mut answer).and_then(|()| {
        let mut stdout = io::stdout().lock();
        stdout.write_all(&answer)?;
        stdout.flush()
    });
    match written {
        Ok(()) => exit,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Fine,
        Err(error) => complain(&format!("cannot write the answer: {error}"), Exit::Undetermined),
    }
}

/// Says one line on standard error. There is nobody to tell when that fails.
pub(crate) fn say(message: &str) {
    let _ = writeln!(io::stderr(), "gpudx: {}", render::clean::clean(message));
}

/// Writes one line to standard error. There is nobody to tell when that fails.
pub(crate) fn complain(message: &str, exit: Exit) -> Exit {
    let line = render::clean::clean(message);
    let _ = writeln!(io::stderr(), "gpudx: {line}");
    exit
}
