//! Resource limits: /proc/PID/limits and the shell's `ulimit`.

use super::{At, Parsed, numbered};
use crate::model::process::Limit;

/// The names of /proc/PID/limits, from the kernel's fs/proc/base.c.
const NAMES: [&str; 16] = [
    "Max cpu time",
    "Max file size",
    "Max data size",
    "Max stack size",
    "Max core file size",
    "Max resident set",
    "Max processes",
    "Max open files",
    "Max locked memory",
    "Max address space",
    "Max file locks",
    "Max pending signals",
    "Max msgqueue size",
    "Max nice priority",
    "Max realtime priority",
    "Max realtime timeout",
];

/// The options of `ulimit` with the limit each shows.
const FLAGS: [(char, &str); 15] = [
    ('c', "Max core file size"),
    ('d', "Max data size"),
    ('e', "Max nice priority"),
    ('f', "Max file size"),
    ('i', "Max pending signals"),
    ('l', "Max locked memory"),
    ('m', "Max resident set"),
    ('n', "Max open files"),
    ('q', "Max msgqueue size"),
    ('r', "Max realtime priority"),
    ('s', "Max stack size"),
    ('t', "Max cpu time"),
    ('u', "Max processes"),
    ('v', "Max address space"),
    ('x', "Max file locks"),
];

/// The labels of shells that print no option letters (dash), with the limit each means.
const LABELS: [(&str, &str); 11] = [
    ("time", "Max cpu time"),
    ("file", "Max file size"),
    ("data", "Max data size"),
    ("stack", "Max stack size"),
    ("coredump", "Max core file size"),
    ("memory", "Max resident set"),
    ("locked memory", "Max locked memory"),
    ("process", "Max processes"),
    ("nofiles", "Max open files"),
    ("vmemory", "Max address space"),
    ("locks", "Max file locks"),
];

/// A limit by its name in /proc/PID/limits and its soft value in that file's unit.
pub type NamedLimit = At<(&'static str, Limit)>;

/// Reads /proc/PID/limits: name, soft limit, hard limit, unit.
pub fn proc_limits(text: &str) -> Parsed<Vec<NamedLimit>> {
    let mut parsed = Parsed::<Vec<NamedLimit>>::default();
    for (line, content) in numbered(text) {
        if content.trim().is_empty() || content.starts_with("Limit ") {
            continue;
        }
        match proc_line(content) {
            Some(limit) => parsed.value.push(At::new(line, limit)),
            None => parsed.complain(line, "not a line of a process's limits"),
        }
    }
    parsed
}

/// Reads the hard limits of /proc/PID/limits, up to which a process may raise the soft ones.
pub fn proc_hard_limits(text: &str) -> Vec<NamedLimit> {
    let hard = |content: &str| {
        let (name, rest) =
            NAMES.iter().find_map(|name| Some((*name, content.strip_prefix(name)?)))?;
        Some((name, limit(rest.split_whitespace().nth(1)?, 1)?))
    };
    numbered(text).filter_map(|(line, content)| Some(At::new(line, hard(content)?))).collect()
}

fn proc_line(content: &str) -> Option<(&'static str, Limit)> {
    let (name, rest) = NAMES.iter().find_map(|name| Some((*name, content.strip_prefix(name)?)))?;
    Some((name, limit(rest.split_whitespace().next()?, 1)?))
}

fn limit(word: &str, unit: u64) -> Option<Limit> {
    if word == "unlimited" {
        return Some(None);
    }
    Some(Some(word.parse::<u64>().ok()?.saturating_mul(unit)))
}

/// Reads the output of `ulimit -a` of bash, zsh, busybox or dash. Values come out in the units of
/// /proc/PID/limits, so kilobytes become bytes.
pub fn ulimit_all(text: &str) -> Parsed<Vec<NamedLimit>> {
    let mut parsed = Parsed::<Vec<NamedLimit>>::default();
    for (line, content) in numbered(text) {
        match shell_line(content) {
            Some((Some(name), limit)) => parsed.value.push(At::new(line, (name, limit))),
            Some((None, _)) => {}
            None if content.trim().is_empty() => {}
            None => parsed.complain(line, "not a line of ulimit -a"),
        }
    }
    parsed
}

/// One line of a shell; without a name for a limit that /proc/PID/limits does not have, such as
/// the size of a pipe.
fn shell_line(content: &str) -> Option<(Option<&'static str>, Limit)> {
    let (label, word) = content.trim().rsplit_once(char::is_whitespace)?;
    let scaled = ["kbytes", "(kb)", "blocks"].iter().any(|unit| label.contains(unit));
    let unit = if scaled { 1024 } else { 1 };
    let limit = limit(word, unit)?;
    let name = match option_letter(label) {
        Some(letter) => name_of_flag(letter),
        None => name_of_label(label),
    };
    Some((name, limit))
}

/// The option letter in `(kbytes, -l)`, `(-n)` or zsh's `-n: `.
fn option_letter(label: &str) -> Option<char> {
    label.split('-').skip(1).find_map(|rest| {
        let mut chars = rest.chars();
        let letter = chars.next()?;
        matches!(chars.next(), Some(')' | ':')).then_some(letter)
    })
}

fn name_of_label(label: &str) -> Option<&'static str> {
    let label = label.split('(').next()?.trim();
    LABELS.iter().find(|(known, _)| *known == label).map(|(_, name)| *name)
}

/// The limit that an option of `ulimit` shows, by its name in /proc/PID/limits.
pub fn name_of_flag(flag: char) -> Option<&'static str> {
    FLAGS.iter().find(|(known, _)| *known == flag).map(|(_, name)| *name)
}

/// Reads the output of `ulimit -X` for one option: a number or `unlimited`.
pub fn ulimit_one(flag: char, text: &str) -> Option<(&'static str, Limit)> {
    let unit = if "cdflmsv".contains(flag) { 1024 } else { 1 };
    Some((name_of_flag(flag)?, limit(text.trim(), unit)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(parsed: &Parsed<Vec<NamedLimit>>, name: &str) -> Option<Limit> {
        parsed.value.iter().find(|at| at.value.0 == name).map(|at| at.value.1)
    }

    #[test]
    fn limits_of_a_process() {
        let parsed = proc_limits(
            "Limit                     Soft Limit           Hard Limit           Units     \n\
             Max cpu time              unlimited            unlimited            seconds   \n\
             Max open files            1024                 1048576              files     \n\
             Max locked memory         8388608              8388608              bytes     \n\
             Max realtime timeout      unlimited            unlimited            us        \n",
        );
        assert_eq!(parsed.complaints, []);
        assert_eq!(find(&parsed, "Max open files"), Some(Some(1024)));
        assert_eq!(find(&parsed, "Max cpu time"), Some(None));
        assert_eq!(find(&parsed, "Max locked memory"), Some(Some(8 << 20)));
        assert_eq!(proc_limits("Max magic   7\n").complaints.len(), 1);
    }

    #[test]
    fn ulimit_of_four_shells() {
        let shells = [
            "real-time non-blocking time  (microseconds, -R) unlimited\n\
             max locked memory           (kbytes, -l) 8192\n\
             open files                          (-n) 1024\n\
             pipe size                (512 bytes, -p) 8\n\
             virtual memory              (kbytes, -v) unlimited\n",
            "-l: locked-in-memory size (kbytes)  8192\n-n: file descriptors                1024\n\
             -v: address space (kbytes)          unlimited\n",
            "locked memory (kb)              (-l) 8192\n\
             open files                      (-n) 1024\naddress space (kb)              (-v) unlimited\n",
            "locked memory(kbytes) 8192\nnofiles              1024\nvmemory(kbytes)      unlimited\n",
        ];
        for (index, text) in shells.into_iter().enumerate() {
            let parsed = ulimit_all(text);
            assert_eq!(parsed.complaints, [], "{text}");
            assert_eq!(find(&parsed, "Max open files"), Some(Some(1024)));
            assert_eq!(find(&parsed, "Max address space"), Some(None));
            let locked = find(&parsed, "Max locked memory");
            assert_eq!(locked, Some(Some(8 << 20)), "shell {index}");
        }
    }

    #[test]
    fn one_limit_at_a_time() {
        assert_eq!(ulimit_one('n', "1024\n"), Some(("Max open files", Some(1024))));
        assert_eq!(ulimit_one('v', "4000000"), Some(("Max address space", Some(4_096_000_000))));
        assert_eq!(ulimit_one('l', "unlimited"), Some(("Max locked memory", None)));
        assert_eq!(ulimit_one('z', "1"), None);
        assert_eq!(ulimit_one('n', "bash: ulimit: bad"), None);
    }
}
