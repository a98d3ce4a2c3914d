//! Limits as they stand in texts: rows of /proc/PID/limits, `ulimit -a` and `prlimit` without their
//! command, calls in a trace, options of an engine, and what people say that `ulimit` prints.

use super::super::Line;
use super::super::pattern::{captures, matches, pattern};
use crate::model::Facts;
use crate::model::process::Limit;
use crate::observed::{Observed, Seen};
use crate::parse::limits as parse;

pattern! {
    /// A row of `ulimit -a` ends with its option and the value.
    SHELL_ROW = r"^\s*[a-z][a-z ]+\(?[^()\n]{0,20}-(?P<flag>[nuvl])\)\s+(?P<value>\d+|unlimited)\s*$"
}
pattern! {
    PRLIMIT_ROW = r"^\s*(?P<name>NOFILE|NPROC|AS|MEMLOCK)\s+[a-z][a-z\- ]+?\s+(?P<value>\d+|unlimited)\s+(?:\d+|unlimited)\b"
}
pattern! {
    /// `getrlimit(RLIMIT_NOFILE, {rlim_cur=1024*1024, rlim_max=RLIM64_INFINITY}) = 0`
    TRACED = r"RLIMIT_(?P<name>NOFILE|NPROC|AS|MEMLOCK)\b[^{\n]{0,24}\{rlim_cur=(?P<value>[^,}\s]+)"
}
pattern! {
    /// `--ulimit memlock=-1:-1`, `LimitNOFILE=infinity`.
    OPTION = r"(?:--ulimit[ =]|\bLimit)(?P<name>nofile|NOFILE|nproc|NPROC|as|AS|memlock|MEMLOCK)\s*=\s*(?P<value>-?\d+|infinity|unlimited)\b"
}
pattern! {
    /// `ulimit -l printed 8192 in the job`, `ulimit -v 4000000`.
    SAID = r"(?i)\bulimit -[SH]{0,2}(?P<flag>[nuvl])\b[^\n\d;|&]{0,36}?(?P<value>\b\d[\d_,]*\b|\bunlimited\b)(?:\s*(?P<unit>kB|kib|kbytes|k|MB|GB|GiB|MiB)\b)?"
}
pattern! {
    SET = r"\bulimit -[SH]{0,2}(?P<flag>[nuvl]) (?P<value>\d+|unlimited)\b|\bprlimit\b[^\n]{0,60}?--(?P<name>nofile|nproc|as|memlock)=(?P<long>\d+|unlimited)"
}
pattern! { SET_TO = r#"\bulimit -[SH]{0,2}(?P<flag>[nuvl]) ["']?\$\{?(?P<name>\w{1,64})"# }
pattern! {
    /// `RLIMIT_MEMLOCK is 65536 bytes`.
    NAMED = r"(?i)\bRLIMIT_(?P<name>NOFILE|NPROC|AS|MEMLOCK)\b[^\n\d{]{0,24}?(?P<value>\b\d+\b|\bunlimited\b|\binfinity\b)(?:\s*(?P<unit>kB|kib|kbytes|MB|GB|GiB|MiB)\b)?"
}
pattern! {
    /// UCX: `Please set max locked memory (ulimit -l) to 'unlimited' (current: 64 kbytes)`.
    CURRENT = r"(?i)locked memory\b[^\n]{0,60}\(current: (?P<value>\d+) kbytes\)"
}
pattern! {
    OPEN_FILES = r"(?i)\b(?:open[- ]files?(?: limit)?|nofile|(?:file )?descriptors? limit|fd limit)\b[^\n\d=]{0,28}?(?P<value>\b\d{1,10}\b)"
}
pattern! {
    LOCKED = r"(?i)\b(?:(?:max )?locked[- ]memory(?: limit)?|memlock)\b[^\n\d=]{0,28}?(?P<value>\b\d{1,12}\b)\s*(?P<unit>kB|kib|kbytes|MB|MiB|bytes)\b"
}
pattern! {
    /// `--pids-limit 64`, `pids.max is 64`, `podPidsLimit: 1024`.
    PIDS = r"(?i)(?:--pids-limit[ =]|\bpids\.max\b[^\n\d]{0,16}|\bpodPidsLimit:\s*|\bpids_limit:\s*)(?P<value>-?\d+|max)\b"
}
pattern! {
    /// A line of limits.conf: what new logins get, not what a process has.
    CONFIGURED = r"^\s*\S+\s+(?:soft|hard|-)\s+(?:nofile|nproc|as|memlock)\b"
}

/// Rows and options, whoever printed them.
pub(super) fn rows(line: &Line<'_>, facts: &mut Facts) {
    if let Some(found) = captures(&PIDS, line.text)
        && super::super::statement::condition(line.text).is_none()
        && let Some(limit) = value(&found["value"].replace("max", "-1"), 1)
    {
        facts.process.pids_max.or_better(Observed::seen(limit, line.origin()));
    }
    if line.has("Max ") {
        for at in parse::proc_limits(line.text.trim()).value {
            push(at.value, line, facts);
        }
        return;
    }
    if let Some(found) = captures(&SHELL_ROW, line.text) {
        let flag = found["flag"].chars().next().unwrap_or('?');
        if let Some(limit) = parse::ulimit_one(flag, &found["value"]) {
            push(limit, line, facts);
        }
    } else if let Some(found) =
        captures(&PRLIMIT_ROW, line.text).or_else(|| captures(&TRACED, line.text))
    {
        enter(&found["name"], &found["value"], 1, line, facts);
    } else if let Some(found) = captures(&OPTION, line.text)
        && super::super::statement::condition(line.text).is_none()
    {
        enter(&found["name"], &found["value"], 1, line, facts);
    } else if let Some(found) = captures(&NAMED, line.text) {
        let unit = unit(found.name("unit").map_or("", |unit| unit.as_str()));
        enter(&found["name"], &found["value"], unit, line, facts);
    } else if let Some(found) = captures(&CURRENT, line.text) {
        enter("MEMLOCK", &found["value"], 1024, line, facts);
    }
}

/// `ulimit -v $memlimit`, with the variable's value somewhere before in the same text.
fn by_variable(line: &Line<'_>, facts: &mut Facts) {
    let Some(found) = captures(&SET_TO, line.text) else { return };
    let Some(text) = line.item.text() else { return };
    let name = &found["name"];
    let assigned = text.lines().take(BEFORE).find_map(|other| {
        let words = other.trim().trim_start_matches("export ");
        let value = words.strip_prefix(name)?.strip_prefix('=')?;
        let digits = value.trim().trim_matches(['"', '\'', ';']);
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.to_owned())
    });
    let flag = found["flag"].chars().next().unwrap_or('?');
    if let Some(limit) = assigned.and_then(|digits| parse::ulimit_one(flag, &digits)) {
        push(limit, line, facts);
    }
}

/// How many lines of a text are looked through for a variable's value.
const BEFORE: usize = 4096;

/// What a command line sets: `ulimit -n 16`, `prlimit --nproc=1 PROGRAM`, options of an engine.
pub(super) fn read_typed(line: &Line<'_>, facts: &mut Facts) {
    rows(line, facts);
    let Some(found) = captures(&SET, line.text) else { return };
    let flag = found.name("flag").and_then(|flag| flag.as_str().chars().next());
    if let Some(flag) = flag {
        if let Some(limit) = parse::ulimit_one(flag, &found["value"]) {
            push(limit, line, facts);
        }
    } else if let (Some(name), Some(long)) = (found.name("name"), found.name("long")) {
        enter(name.as_str(), long.as_str(), 1, line, facts);
    }
}

/// What a person says that a limit is. With "it works with …" a value that cures is told, and not
/// the state of things.
pub(super) fn read_prose(line: &Line<'_>, facts: &mut Facts) {
    let by_rows = matches(&CURRENT, line.text) || matches(&NAMED, line.text);
    if by_rows
        || matches(&CONFIGURED, line.text)
        || super::super::statement::condition(line.text).is_some()
    {
        return;
    }
    by_variable(line, facts);
    if let Some(found) = captures(&SAID, line.text) {
        let flag = found["flag"].to_ascii_lowercase().chars().next().unwrap_or('?');
        let digits = found["value"].replace(['_', ','], "");
        let name = parse::name_of_flag(flag);
        let told = found.name("unit").map(|unit| self::unit(unit.as_str()));
        let default = if matches!(flag, 'l' | 'v') { 1024 } else { 1 };
        if let (Some(name), Some(limit)) = (name, value(&digits, told.unwrap_or(default))) {
            push((name, limit), line, facts);
        }
        return;
    }
    if captures(&OPTION, line.text).is_some() || captures(&TRACED, line.text).is_some() {
        return;
    }
    if let Some(found) = captures(&OPEN_FILES, line.text) {
        enter("NOFILE", &found["value"], 1, line, facts);
    }
    if let Some(found) = captures(&LOCKED, line.text) {
        enter("MEMLOCK", &found["value"], unit(&found["unit"]), line, facts);
    }
}

fn unit(word: &str) -> u64 {
    match word.to_ascii_lowercase().as_str() {
        "k" | "kb" | "kib" | "kbytes" => 1 << 10,
        "mb" | "mib" => 1 << 20,
        "gb" | "gib" => 1 << 30,
        _ => 1,
    }
}

fn enter(name: &str, text: &str, unit: u64, line: &Line<'_>, facts: &mut Facts) {
    let name = match name.to_ascii_uppercase().as_str() {
        "NOFILE" => "Max open files",
        "NPROC" => "Max processes",
        "AS" => "Max address space",
        "MEMLOCK" => "Max locked memory",
        _ => return,
    };
    if let Some(limit) = value(text, unit) {
        push((name, limit), line, facts);
    }
}

/// A number, a product such as strace prints (`8192*1024`), or no limit at all.
fn value(text: &str, unit: u64) -> Option<Limit> {
    let lower = text.to_ascii_lowercase();
    if lower.contains("infinity") || lower == "unlimited" || lower == "-1" {
        return Some(None);
    }
    let mut product: u64 = 1;
    for factor in lower.split('*').take(4) {
        product = product.saturating_mul(factor.trim().parse().ok()?);
    }
    Some(Some(product.saturating_mul(unit)))
}

fn push(limit: (&'static str, Limit), line: &Line<'_>, facts: &mut Facts) {
    let told = &mut facts.process.limits_told;
    if told.len() < super::LIMIT && !told.iter().any(|seen| seen.value == limit) {
        told.push(Seen::new(limit, line.origin()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::loose::lines_of;

    fn told(text: &str) -> Vec<(&'static str, Limit)> {
        lines_of(text).process.limits_told.into_iter().map(|seen| seen.value).collect()
    }

    #[test]
    fn every_expression_compiles() {
        let all = [
            &SHELL_ROW,
            &PRLIMIT_ROW,
            &TRACED,
            &OPTION,
            &SAID,
            &NAMED,
            &CURRENT,
            &OPEN_FILES,
            &LOCKED,
            &CONFIGURED,
            &PIDS,
            &SET,
            &SET_TO,
        ];
        assert!(all.iter().all(|pattern| pattern.is_some()));
    }

    #[test]
    fn the_forms_in_which_limits_are_told() {
        for (text, name, limit) in [
            (
                "Max open files            16                   1048576              files",
                "Max open files",
                Some(16),
            ),
            ("max locked memory       (kbytes, -l) 64", "Max locked memory", Some(65536)),
            ("open files                          (-n) 1024", "Max open files", Some(1024)),
            (
                "NOFILE     max number of open files                1024   1048576 files",
                "Max open files",
                Some(1024),
            ),
            (
                "getrlimit(RLIMIT_NOFILE, {rlim_cur=1073741816, rlim_max=1073741816}) = 0",
                "Max open files",
                Some(1_073_741_816),
            ),
            (
                "prlimit64(0, RLIMIT_AS, NULL, {rlim_cur=4000000*1024, rlim_max=RLIM64_INFINITY}) = 0",
                "Max address space",
                Some(4_096_000_000),
            ),
            (
                "prlimit64(0, RLIMIT_MEMLOCK, NULL, {rlim_cur=RLIM64_INFINITY, rlim_max=RLIM64_INFINITY}) = 0",
                "Max locked memory",
                None,
            ),
            (
                "docker run --ulimit memlock=-1:-1 --ulimit stack=67108864 img",
                "Max locked memory",
                None,
            ),
            ("LimitNOFILE=infinity", "Max open files", None),
            ("In the job `ulimit -l` printed 8192.", "Max locked memory", Some(8 << 20)),
            ("ulimit -v 4000000", "Max address space", Some(4_096_000_000)),
            ("ulimit -n inside the container: 1073741816", "Max open files", Some(1_073_741_816)),
            (
                "libibverbs: Warning: RLIMIT_MEMLOCK is 65536 bytes.",
                "Max locked memory",
                Some(65536),
            ),
            (
                "ibv_reg_mr failed: Cannot allocate memory : Please set max locked memory (ulimit -l) to 'unlimited' (current: 64 kbytes)",
                "Max locked memory",
                Some(65536),
            ),
            ("the open files limit of the service is 20", "Max open files", Some(20)),
        ] {
            assert_eq!(told(text), [(name, limit)], "{text}");
        }
    }

    #[test]
    fn a_wish_is_no_reading() {
        for text in [
            "* soft memlock unlimited",
            "It works with ulimit -l unlimited",
            "after adding --ulimit nofile=65536:65536 it is fine",
        ] {
            assert_eq!(told(text), [], "{text}");
        }
    }
}
