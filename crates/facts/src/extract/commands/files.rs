//! Commands that print files and folders: cat, head, grep FILE, ls.

use super::Output;
use crate::model::Facts;
use crate::observed::Errno;
use crate::raw::{ItemName, RawItem, RawState};

pub(super) fn apply(output: &Output<'_>, facts: &mut Facts) -> bool {
    match output.command.program() {
        "cat" | "zcat" | "less" | "more" | "head" | "tail" | "sed" | "awk" => {
            printed(output, facts)
        }
        "grep" | "egrep" | "fgrep" | "zgrep" | "rg" => grepped(output, facts),
        "ls" | "ll" | "dir" | "stat" => listed(output, facts),
        _ => false,
    }
}

/// Absolute paths among the operands; `sed` and `awk` have their script first.
fn paths(output: &Output<'_>) -> Vec<String> {
    output.command.operands().filter(|word| word.starts_with('/')).map(str::to_owned).collect()
}

fn printed(output: &Output<'_>, facts: &mut Facts) -> bool {
    let paths = paths(output);
    let whole = matches!(output.command.program(), "cat" | "zcat" | "less" | "more");
    match paths.as_slice() {
        [] => false,
        [path] => {
            let mut item = output.renamed(ItemName::File(concrete(path, facts)));
            item.partial |= !whole;
            enter(item, output.text, facts);
            true
        }
        several => {
            // One line a file is what parameters and sysfs attributes print.
            let lines: Vec<&str> = output.text.lines().collect();
            let headed = output.text.contains("==> /");
            if headed {
                headed_files(output, facts);
            } else if lines.len() == several.len() {
                for (index, (path, line)) in several.iter().zip(lines).enumerate() {
                    let mut item = output.renamed(ItemName::File(concrete(path, facts)));
                    shift(&mut item, index);
                    item.state = RawState::Bytes(line.as_bytes().into());
                    enter(item, line, facts);
                }
            }
            true
        }
    }
}

/// `$(uname -r)` in a path is the running kernel's release, when that is known.
fn concrete(path: &str, facts: &Facts) -> String {
    match facts.host.kernel.value() {
        Some(release) => {
            path.replace("$(uname -r)", release.as_str()).replace("`uname -r`", release.as_str())
        }
        None => path.to_owned(),
    }
}

fn shift(item: &mut RawItem, lines: usize) {
    if let Some((_, first)) = &mut item.cut_from {
        *first += u32::try_from(lines).unwrap_or(0);
    }
}

/// `head -n1 a b` prints `==> a <==` before each.
fn headed_files(output: &Output<'_>, facts: &mut Facts) {
    let mut current: Option<(String, usize, String)> = None;
    for (number, line) in output.text.lines().enumerate() {
        let header = line.strip_prefix("==> ").and_then(|rest| rest.strip_suffix(" <=="));
        if let Some(path) = header {
            finish_headed(current.take(), output, facts);
            current = Some((path.to_owned(), number + 1, String::new()));
        } else if let Some((_, _, text)) = &mut current {
            text.push_str(line);
            text.push('\n');
        }
    }
    finish_headed(current, output, facts);
}

fn finish_headed(current: Option<(String, usize, String)>, output: &Output<'_>, facts: &mut Facts) {
    let Some((path, line, text)) = current else { return };
    let mut item = output.renamed(ItemName::File(path));
    shift(&mut item, line);
    item.partial = true;
    item.state = RawState::Bytes(text.as_bytes().into());
    enter(item, &text, facts);
}

/// Enters a file item: its text, or the error that the command printed instead.
fn enter(mut item: RawItem, text: &str, facts: &mut Facts) {
    if let Some(state) = refusal(text) {
        item.state = state;
    }
    crate::extract::item(&item, facts);
}

/// `cat: /x: No such file or directory` and `Permission denied`, when nothing else was printed.
fn refusal(text: &str) -> Option<RawState> {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let line = lines.next()?;
    if lines.next().is_some() || !line.contains(": ") {
        return None;
    }
    if line.ends_with("No such file or directory") {
        Some(RawState::Absent)
    } else if line.ends_with("Permission denied") {
        Some(RawState::Denied(Errno::EACCES))
    } else if line.ends_with("Operation not permitted") {
        Some(RawState::Denied(Errno::EPERM))
    } else {
        None
    }
}

/// `grep PATTERN FILE…`: a part of a file, with the pattern that made it. With several files each
/// line begins with its file's name.
fn grepped(output: &Output<'_>, facts: &mut Facts) -> bool {
    let mut operands = output.command.operands();
    let pattern = operands.next().unwrap_or("").to_owned();
    let paths: Vec<String> =
        operands.filter(|word| word.starts_with('/')).map(str::to_owned).collect();
    let inverted = output.command.has_option("-v");
    let filter = (!inverted && !output.filtered()).then_some(pattern);
    match paths.as_slice() {
        [] => false,
        [path] if !path.contains(['*', '?', '[']) && !output.command.has_option("-r") => {
            let mut item = output.renamed(ItemName::File(concrete(path, facts)));
            item.partial = true;
            item.filter = filter;
            enter(item, output.text, facts);
            true
        }
        _ => {
            for (number, line) in output.text.lines().enumerate() {
                let Some((path, rest)) = line.split_once(':').filter(|_| line.starts_with('/'))
                else {
                    continue;
                };
                let mut item = output.renamed(ItemName::File(path.to_owned()));
                shift(&mut item, number);
                // A parameter is one line, so one line is the whole of it.
                item.partial = !path.contains("/parameters/");
                item.state = RawState::Bytes(rest.as_bytes().into());
                enter(item, rest, facts);
            }
            true
        }
    }
}

/// `ls -l` of device nodes, and names of any folder.
fn listed(output: &Output<'_>, facts: &mut Facts) -> bool {
    let paths = paths(output);
    let operands: Vec<&str> = paths.iter().map(String::as_str).collect();
    if paths.iter().any(|path| path.starts_with("/dev")) {
        let item = output.renamed(output.item.name.clone());
        crate::extract::files::enter_ls_long(&item, &operands, facts);
        return true;
    }
    let long = output.command.has_option("-l") || output.command.program() == "ll";
    match operands.as_slice() {
        [only] if !only.contains(['*', '?', '[', '{']) => {
            let folder = only.trim_end_matches('/');
            match refusal(output.text) {
                Some(_) => {
                    let item = output.renamed(ItemName::File(folder.to_owned()));
                    enter(item, output.text, facts);
                }
                None => names(output, folder, long, facts),
            }
            true
        }
        _ => false,
    }
}

/// The names in a folder, as a listing item: one a line.
fn names(output: &Output<'_>, folder: &str, long: bool, facts: &mut Facts) {
    let name_of = |line: &str| {
        let shown = line.split(" -> ").next().unwrap_or(line);
        shown.split_whitespace().next_back().map(str::to_owned)
    };
    let names: Vec<String> = if long {
        let rows = output.text.lines().filter(|line| !line.starts_with("total "));
        rows.filter_map(name_of).filter(|name| !name.starts_with('/')).collect()
    } else {
        output.text.split_whitespace().map(str::to_owned).collect()
    };
    if names.is_empty() && long && !output.text.trim().is_empty() {
        return;
    }
    let mut item = output.renamed(ItemName::File(folder.to_owned()));
    item.state = RawState::Bytes(names.join("\n").as_bytes().into());
    crate::extract::item(&item, facts);
}
