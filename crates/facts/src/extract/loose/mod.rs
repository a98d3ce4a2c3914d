//! Loose text: prose, messages of programs, logs and outputs without a prompt. Each reader goes by
//! the shape of what a program prints and not by one report's wording; what none knows is left.

use crate::model::Facts;
use crate::parse::sieve;
use crate::raw::RawItem;

mod blocks;
mod bus;
mod cpu_build;
mod cuda;
mod denials;
mod engine;
mod environment;
mod fabric;
mod fault_words;
mod faults;
mod framework;
mod gsp;
mod hardware;
mod kernel;
mod memory;
mod module_build;
mod module_load;
mod module_paths;
mod nccl;
mod nvml;
mod opened;
mod pattern;
mod peers;
mod platform;
mod power;
mod process;
mod share;
mod statement;
mod story;
mod story_host;
mod surroundings;

pub(crate) use denials::mode_of as selinux_mode;
pub(crate) use peers::switches as peer_switches;

/// A line longer than this is cut: no message of any program is.
const LINE_LIMIT: usize = 8192;

/// No person's report is longer than this, the limit of issue trackers. In a longer text, which is
/// a log, lines without a word that matters are passed over.
const REPORT_BYTES: usize = 64 << 10;

/// Reads a loose text with every reader.
pub(crate) fn apply(item: &RawItem, text: &str, facts: &mut Facts) {
    blocks::apply(item, text, facts);
    lines(item, text, facts, true);
    facts.mentions_gpu |= NAMES.iter().any(|name| text.contains(name));
}

/// What a text that is about NVIDIA's driver names at least once.
const NAMES: [&str; 6] = ["nvidia", "NVIDIA", "Nvidia", "cuInit", "CUDA", "libcuda"];

/// Reads what a command line itself says of the process: limits that it sets, sizes, indices.
/// `command_line` is its line in the input, 0 when it was not part of a text.
pub(crate) fn typed(item: &RawItem, command: &str, command_line: u32, facts: &mut Facts) {
    let mut at = item.clone();
    if let Some((_, first)) = at.cut_from.as_mut().filter(|_| command_line > 0) {
        *first = command_line;
    }
    process::read_typed(&Line { item: &at, number: 0, text: bounded(command) }, facts);
}

/// Reads the lines of a kernel log that stand in an output which another reader has had.
pub(crate) fn log_lines(item: &RawItem, facts: &mut Facts) {
    let mut part = item.clone();
    part.name = crate::raw::ItemName::Command("dmesg".to_owned());
    part.partial = true;
    part.filter = None;
    crate::extract::log::apply(&part, facts);
}

/// Reads only the messages that any program may print, out of an output that another reader has
/// had.
pub(crate) fn messages_only(item: &RawItem, text: &str, facts: &mut Facts) {
    lines(item, text, facts, false);
}

fn lines(item: &RawItem, text: &str, facts: &mut Facts, prose: bool) {
    bus::ports(item, text, facts);
    peers::read(item, text, facts);
    engine::commands(item, text, facts);
    process::wsl_folder(item, text, facts);
    memory::at_start(item, text, facts);
    let is_long = text.len() > REPORT_BYTES;
    for (number, line) in crate::parse::numbered(text) {
        let line = bounded(line);
        if line.trim().is_empty() || is_long && sieve::is_idle_log_line(line) {
            continue;
        }
        let at = Line { item, number, text: line };
        cuda::read(&at, facts);
        nvml::read(&at, facts);
        framework::read(&at, facts);
        engine::read(&at, facts);
        bus::read(&at, prose, facts);
        cpu_build::read(&at, facts);
        fabric::read(&at, prose, facts);
        nccl::read(&at, facts);
        share::read(&at, prose, facts);
        memory::read(&at, facts);
        hardware::read(&at, prose, facts);
        platform::read(&at, prose, facts);
        power::read(&at, prose, facts);
        process::read(&at, prose, facts);
        kernel::read(&at, facts);
        module_build::read(&at, facts);
        module_load::read(&at, facts);
        module_paths::read(&at, facts);
        denials::read(&at, facts);
        opened::read(&at, facts);
        surroundings::read(&at, facts);
        story::read(&at, facts);
        if prose {
            story::read_prose(&at, facts);
            story_host::read(&at, facts);
            environment::read(&at, facts);
            statement::read(&at, facts);
            framework::read_prose(&at, facts);
            opened::read_prose(&at, facts);
            kernel::read_prose(&at, facts);
            gsp::read(&at, facts);
            module_load::read_prose(&at, facts);
        }
    }
    faults::apply(item, text, facts);
}

fn bounded(line: &str) -> &str {
    let mut end = line.len().min(LINE_LIMIT);
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    &line[..end]
}

/// One line with its place.
pub(crate) struct Line<'a> {
    item: &'a RawItem,
    number: u32,
    text: &'a str,
}

impl Line<'_> {
    fn origin(&self) -> crate::Origin {
        self.item.origin_at(self.number, self.text)
    }

    fn has(&self, word: &str) -> bool {
        self.text.contains(word)
    }
}

/// The facts of a loose text, for the tests of the readers.
#[cfg(test)]
pub(crate) fn lines_of(text: &str) -> Facts {
    let mut facts = Facts::default();
    let item = RawItem::new(crate::raw::ItemName::Text("t".to_owned()), text.as_bytes());
    lines(&item, text, &mut facts, true);
    facts
}
