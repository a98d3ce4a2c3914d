//! The output of a command that stands in a transcript or was captured: to the parser of what the
//! command prints.

use std::sync::Arc;

use crate::model::Facts;
use crate::observed::Origin;
use crate::parse::command_line::{self, Simple, Wrapper};
use crate::raw::{ItemName, RawItem};

mod device;
mod elision;
pub(crate) mod engine;
mod files;
mod peers;
mod python;
mod sandbox;
mod state;
mod system;
mod tasks;
mod trace;

/// One simple command with its share of the output.
pub(crate) struct Output<'a> {
    /// The command.
    pub(crate) command: &'a Simple,
    /// The whole line as it was typed.
    pub(crate) line: &'a str,
    /// The output, as a raw item with its place in the input.
    pub(crate) item: &'a RawItem,
    /// The output as text.
    pub(crate) text: &'a str,
    /// The exit status, if the transcript shows it.
    pub(crate) exit_status: Option<i32>,
}

impl Output<'_> {
    /// True when `timeout` ended the command.
    pub(crate) fn timed_out(&self) -> bool {
        let bounded =
            self.command.wrappers.iter().any(|wrapper| matches!(wrapper, Wrapper::Timeout(_)));
        bounded && self.exit_status == Some(124)
    }

    /// True when lines may be missing: through a filter, or because whoever pasted the output left
    /// some out.
    pub(crate) fn filtered(&self) -> bool {
        self.item.partial || !self.command.filters.is_empty()
    }

    /// The pattern, when the only filters are one `grep` that kept what it matched and sorting, and
    /// nothing of what it kept was left out.
    pub(crate) fn grep_pattern(&self) -> Option<String> {
        if self.item.partial { None } else { grep_pattern(self.command) }
    }

    /// The line of the command itself, which in a text stands before its output.
    pub(crate) fn typed(&self, command_line: u32) -> Origin {
        let mut item = self.item.clone();
        if let Some((_, first)) = item.cut_from.as_mut().filter(|_| command_line > 0) {
            *first = command_line;
        }
        item.origin_at(0, self.line)
    }

    /// The item under another name, for a parser that goes by names.
    pub(crate) fn renamed(&self, name: ItemName) -> RawItem {
        let mut item = self.item.clone();
        item.name = name;
        item.partial = self.filtered();
        item.filter = self.grep_pattern();
        item.exit_status = self.exit_status;
        item
    }
}

fn grep_pattern(command: &Simple) -> Option<String> {
    use command_line::Filter;
    let mut pattern = None;
    for filter in &command.filters {
        match filter {
            Filter::Grep { pattern: found, inverted: false, .. } if pattern.is_none() => {
                pattern = Some(found.clone());
            }
            Filter::Other(name) if matches!(name.as_str(), "sort" | "uniq" | "cat" | "tee") => {}
            Filter::Grep { .. } | Filter::Other(_) => return None,
        }
    }
    pattern
}

/// Reads the output of a command line. `command_line` is the line in the input on which the
/// command stands (0 when it was not part of a text).
pub(crate) fn apply(line: &str, command_line: u32, item: &RawItem, facts: &mut Facts) {
    let Some(text) = item.text() else { return };
    let commands = command_line::parse(line);
    if commands.is_empty() {
        super::loose::apply(item, &text, facts);
        return;
    }
    for share in shares(&commands, &text) {
        let piece = cut(item, &share);
        let output = Output {
            command: share.command,
            line,
            item: &piece,
            text: share.text,
            exit_status: share.exit_status.or(item.exit_status),
        };
        one(&output, command_line, facts);
    }
}

fn one(output: &Output<'_>, command_line: u32, facts: &mut Facts) {
    state::before(output, command_line, facts);
    sandbox::observe(output, command_line, facts);
    super::loose::typed(output.item, output.line, command_line, facts);
    // A trace first: what stands there is strace's output and not the program's.
    let handled = trace::apply(output, facts)
        || tasks::apply(output, facts)
        || files::apply(output, facts)
        || device::apply(output, facts)
        || system::apply(output, facts)
        || python::apply(output, facts);
    super::strace::apply(output.item, output.text, facts);
    peers::apply(output, facts);
    state::after(output, command_line, facts);
    // Whatever the command was, its output may hold messages that everybody knows.
    if handled {
        if !shows_a_log(output.command) {
            super::loose::log_lines(output.item, facts);
        }
        super::loose::messages_only(output.item, output.text, facts);
    } else {
        super::loose::apply(output.item, output.text, facts);
        super::tasks::loose(output.item, output.text, facts);
    }
}

/// Whether the command prints a kernel log, which its reader has had by then. Behind the output of
/// any other a person may have pasted lines of one.
fn shows_a_log(command: &Simple) -> bool {
    let is_log = |name: ItemName| super::log::is_kernel_log(&name);
    is_log(ItemName::Command(command.words.join(" ")))
        || command.operands().any(|word| is_log(ItemName::File(word.to_owned())))
}

struct Share<'a> {
    command: &'a Simple,
    text: &'a str,
    skipped_lines: u32,
    exit_status: Option<i32>,
}

fn cut(item: &RawItem, share: &Share<'_>) -> RawItem {
    let mut piece = RawItem::new(item.name.clone(), share.text.as_bytes());
    piece.taken_at = item.taken_at;
    piece.partial = item.partial || elision::stands_in(share.text);
    piece.cut_from = match &item.cut_from {
        Some((label, first)) => Some((Arc::clone(label), first + share.skipped_lines)),
        None if share.skipped_lines > 0 => {
            Some((item.name.to_string().into(), 1 + share.skipped_lines))
        }
        None => None,
    };
    piece
}

/// Deals the lines of an output to the commands of the line: a command that always prints one
/// line gets one, `echo $?` gets the last, and the longest-winded one gets the rest.
fn shares<'a>(commands: &'a [Simple], text: &'a str) -> Vec<Share<'a>> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut front = 0;
    let mut back = lines.len();
    let mut dealt: Vec<Option<(usize, usize)>> = vec![None; commands.len()];
    let mut first = 0;
    let mut last = commands.len();
    while first + 1 < last && front < back && prints_one_line(&commands[first]) {
        dealt[first] = Some((front, front + 1));
        front += 1;
        first += 1;
    }
    let mut status = None;
    while last > first + 1 && back > front {
        let command = &commands[last - 1];
        if asks_for_status(command) {
            status = lines[back - 1].trim().parse().ok();
        } else if !prints_one_line(command) {
            break;
        }
        dealt[last - 1] = Some((back - 1, back));
        back -= 1;
        last -= 1;
    }
    if first < last {
        dealt[last - 1] = Some((front, back));
    }
    let offset = |index: usize| lines[..index].iter().map(|line| line.len()).sum::<usize>();
    let mut out = Vec::new();
    for (index, command) in commands.iter().enumerate() {
        if asks_for_status(command) {
            continue;
        }
        let (from, to) = dealt[index].unwrap_or((front, front));
        out.push(Share {
            command,
            text: &text[offset(from)..offset(to)],
            skipped_lines: u32::try_from(from).unwrap_or(0),
            exit_status: status.filter(|_| index + 1 == last),
        });
    }
    out
}

fn asks_for_status(command: &Simple) -> bool {
    command.program() == "echo"
        && command.arguments().iter().any(|word| word.contains("$?") || word.contains("PIPESTATUS"))
}

fn prints_one_line(command: &Simple) -> bool {
    match command.program() {
        "uname"
        | "hostname"
        | "whoami"
        | "systemd-detect-virt"
        | "pveversion"
        | "arch"
        | "nproc"
        | "getenforce"
        | "readlink"
        | "realpath" => true,
        "date" | "echo" => !asks_for_status(command),
        "cat" => {
            let mut operands = command.operands();
            let first = operands.next().unwrap_or("");
            operands.next().is_none() && first.contains("/parameters/")
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(line: &str, text: &str) -> Vec<(String, String, Option<i32>)> {
        let commands = command_line::parse(line);
        shares(&commands, text)
            .into_iter()
            .map(|share| {
                (
                    share.command.program().to_owned(),
                    share.text.trim().to_owned(),
                    share.exit_status,
                )
            })
            .collect()
    }

    #[test]
    fn lines_are_dealt_to_the_commands_that_printed_them() {
        assert_eq!(
            texts("systemd-detect-virt; uname -r", "lxc\n6.8.12-9-pve\n"),
            [
                ("systemd-detect-virt".into(), "lxc".into(), None),
                ("uname".into(), "6.8.12-9-pve".into(), None)
            ]
        );
        assert_eq!(
            texts("timeout 10 python3 -c 'x'; echo $?", "124\n"),
            [("python3".into(), String::new(), Some(124))]
        );
        assert_eq!(
            texts("nvidia-smi -L; echo ${PIPESTATUS[0]}", "GPU 0: a\nGPU 1: b\n0\n"),
            [("nvidia-smi".into(), "GPU 0: a\nGPU 1: b".into(), Some(0))]
        );
        assert_eq!(texts("nvidia-smi", ""), [("nvidia-smi".into(), String::new(), None)]);
    }
}
