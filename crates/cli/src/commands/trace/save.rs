//! `gpudx trace --save FILE`: the trace and its surroundings as a bundle.
//!
//! The bundle is written beside FILE under a name of its own, which is made before the program
//! starts so that a folder that cannot be written is told at once, and gets its name when it is
//! whole. FILE itself is never overwritten.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use facts::raw::{ItemName, RawItem};
use probe::source;
use probe::trace::{self, Event};

/// Time for what surrounds the program; all of it is read without asking the driver.
const SURROUNDINGS_LIMIT: Duration = Duration::from_secs(5);
/// Most bytes of calls that are kept. The ends of the trace are kept beyond that.
const CALLS_LIMIT_BYTES: usize = 12 << 20;
/// The trace's name in the bundle.
const TRACE: &str = "trace.jsonl";

/// A bundle in the making.
pub(super) struct Saved {
    file: PathBuf,
    unfinished: Unfinished,
    out: File,
    lines: Vec<u8>,
    left_out: u64,
}

/// The file under its own name, which is removed unless the bundle is finished.
struct Unfinished(PathBuf);

impl Drop for Unfinished {
    fn drop(&mut self) {
        // It has another name by now, or nobody has a use for it.
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Saved {
    /// Makes the unfinished file.
    pub(super) fn new(file: &Path) -> Result<Saved, String> {
        let shown = file.display();
        if file.symlink_metadata().is_ok() {
            return Err(format!("{shown} exists; --save overwrites nothing"));
        }
        let name = file.file_name().ok_or_else(|| format!("{shown} names no file"))?;
        let own = format!(".{}.{}", name.to_string_lossy(), std::process::id());
        let place = file.with_file_name(own);
        let out = File::create_new(&place).map_err(|error| format!("{shown}: {error}"))?;
        let unfinished = Unfinished(place);
        Ok(Saved { file: file.to_owned(), unfinished, out, lines: Vec::new(), left_out: 0 })
    }

    /// Takes an event in.
    pub(super) fn add(&mut self, event: &Event<'_>) {
        let is_call = matches!(event, Event::Entered(_) | Event::Returned(..));
        if is_call && self.lines.len() > CALLS_LIMIT_BYTES {
            self.left_out += 1;
            return;
        }
        self.lines.extend_from_slice(trace::json_line(event).as_bytes());
        self.lines.push(b'\n');
    }

    /// Adds the surroundings and gives the bundle its name.
    pub(super) fn finish(mut self) -> Result<(), String> {
        if self.left_out > 0 {
            let text = format!("{} more records of calls are left out here", self.left_out);
            self.add(&Event::Note(&text));
        }
        let mut set = source::collect_surroundings(SURROUNDINGS_LIMIT);
        let lines = std::mem::take(&mut self.lines);
        set.push(RawItem::new(ItemName::Text(TRACE.to_owned()), lines));
        let mut out = BufWriter::new(&self.out);
        let written = source::write_bundle(&set, &mut out)
            .and_then(|()| out.flush())
            .and_then(|()| self.out.sync_all())
            .and_then(|()| named(&self.unfinished.0, &self.file));
        written.map_err(|error| format!("{}: {error}", self.file.display()))
    }
}

/// Gives a file another name, unless that is taken. Where the file system knows no second names,
/// the file is moved.
fn named(file: &Path, name: &Path) -> io::Result<()> {
    match std::fs::hard_link(file, name) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => std::fs::rename(file, name),
        linked => linked,
    }
}
