//! One line of strace: who, when, what.

/// A line.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Line<'a> {
    /// The thread, where shown.
    pub(super) thread: Option<u32>,
    /// The rest.
    pub(super) content: Content<'a>,
}

/// What a line tells.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Content<'a> {
    /// A call, with its result unless it is unfinished.
    Call {
        /// The call's name.
        name: &'a str,
        /// The text between the parentheses, as far as it goes.
        arguments: &'a str,
        /// The result.
        result: Option<Outcome<'a>>,
    },
    /// The result of a call that an earlier line began.
    Resumed {
        /// The call's name.
        name: &'a str,
        /// The result.
        result: Outcome<'a>,
    },
    /// `+++ exited with 0 +++` or `+++ killed by SIGKILL +++`.
    Ended {
        /// The signal's name.
        killed_by: Option<&'a str>,
    },
    /// `--- SIGCHLD {…} ---`
    Signal,
}

/// What stands after the equals sign.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Outcome<'a> {
    /// The value; `None` for `?`, which is what a call that never returned has.
    pub(super) value: Option<i64>,
    /// The errno's name after a value of -1.
    pub(super) errno: Option<&'a str>,
    /// The time in angle brackets, in seconds.
    pub(super) seconds: Option<f64>,
}

/// Reads a line; `None` when it is not one of strace's.
pub(super) fn parse(text: &str) -> Option<Line<'_>> {
    let (thread, rest) = thread(text.trim());
    let content = content(bracketed(stamp(rest)))?;
    Some(Line { thread, content })
}

/// `[pid 993]`, or `993` before at least one blank and a time or a call. With `-Y` the name of the
/// program follows: `993<python3>`.
fn thread(text: &str) -> (Option<u32>, &str) {
    if let Some(rest) = text.strip_prefix("[pid")
        && let Some((number, rest)) = rest.split_once(']')
    {
        return (without_name(number.trim()).parse().ok(), rest.trim_start());
    }
    if let Some((head, rest)) = text.split_once('>')
        && let Some((number, _)) = head.split_once('<')
        && let Ok(number) = number.parse()
    {
        return (Some(number), rest.trim_start());
    }
    match text.split_once(' ') {
        Some((word, rest)) if word.bytes().all(|byte| byte.is_ascii_digit()) => {
            (word.parse().ok(), rest.trim_start())
        }
        _ => (None, text),
    }
}

fn without_name(text: &str) -> &str {
    text.split('<').next().unwrap_or(text)
}

/// Takes off what `-i` and `-n` put before a call: `[00007f2e27935011]`, `[  16]`.
fn bracketed(text: &str) -> &str {
    let Some((inside, rest)) = text.strip_prefix('[').and_then(|rest| rest.split_once(']')) else {
        return text;
    };
    let is_number = inside.trim().bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_number && !inside.trim().is_empty() { bracketed(rest.trim_start()) } else { text }
}

/// Takes the time off: `08:36:00.177932`, `1700000000.177932`, `+0.000012` or `0.000012`.
fn stamp(text: &str) -> &str {
    match text.split_once(' ') {
        Some((word, rest)) => {
            let of_time = |byte: u8| byte.is_ascii_digit() || matches!(byte, b':' | b'.' | b'+');
            let is_time = word.contains([':', '.']) && word.bytes().all(of_time);
            if is_time { stamp_again(rest.trim_start()) } else { text }
        }
        None => text,
    }
}

/// With `-r` a relative time follows the absolute one, in parentheses.
fn stamp_again(text: &str) -> &str {
    match text.strip_prefix("(+").and_then(|rest| rest.split_once(')')) {
        Some((_, rest)) => rest.trim_start(),
        None => text,
    }
}

fn content(text: &str) -> Option<Content<'_>> {
    if let Some(rest) = text.strip_prefix("+++ ") {
        let killed_by = rest.strip_prefix("killed by ").and_then(|rest| rest.split(' ').next());
        let is_end = killed_by.is_some() || rest.starts_with("exited with ");
        return is_end.then_some(Content::Ended { killed_by });
    }
    if let Some(rest) = text.strip_prefix("--- ") {
        return rest.starts_with("SIG").then_some(Content::Signal);
    }
    if let Some(rest) = text.strip_prefix("<... ") {
        let (name, rest) = rest.split_once(" resumed>")?;
        return Some(Content::Resumed { name, result: after_equals(rest)?.1 });
    }
    let (name, rest) = text.split_once('(')?;
    let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    if name.is_empty() || name.len() > 40 || !name.bytes().all(is_name) {
        return None;
    }
    Some(match after_equals(rest) {
        Some((arguments, result)) => Content::Call { name, arguments, result: Some(result) },
        None => Content::Call { name, arguments: unfinished(rest)?, result: None },
    })
}

/// The arguments of a call whose line ends without a result: `…, 0x7ffc <unfinished ...>`,
/// `…, 0x7ffc^Cstrace: Process 7 detached`, `… <detached ...>`, or the end of the text.
fn unfinished(rest: &str) -> Option<&str> {
    let marks = [" <unfinished", " <detached", "^C", "strace: Process "];
    let end = marks.iter().filter_map(|mark| rest.find(mark)).min();
    let arguments = rest.get(..end.unwrap_or(rest.len()))?;
    // Prose with a parenthesis is no call: one of strace has a comma, a descriptor or nothing.
    let is_call =
        end.is_some() || arguments.contains(", ") || arguments.ends_with(',') || rest.is_empty();
    is_call.then_some(arguments)
}

/// Splits at the last `) = `, blanks before the equals sign aside.
fn after_equals(text: &str) -> Option<(&str, Outcome<'_>)> {
    let equals = text
        .rmatch_indices(" = ")
        .find(|(at, _)| text.get(..*at).is_some_and(|before| before.trim_end().ends_with(')')));
    let (at, _) = equals?;
    let before = text.get(..at)?.trim_end();
    let arguments = before.get(..before.len() - 1)?;
    let arguments = arguments.split(" <unfinished").next().unwrap_or(arguments);
    Some((arguments, outcome(text.get(at + 3..)?)))
}

fn outcome(text: &str) -> Outcome<'_> {
    let mut words = text.split_ascii_whitespace();
    let first = words.next().unwrap_or("?");
    let number = first.split('<').next().unwrap_or(first);
    let value = super::arguments::signed(number);
    let name = words.next().filter(|word| word.starts_with('E') && value == Some(-1));
    let seconds = text.rsplit_once('<').and_then(|(_, time)| time.strip_suffix('>')?.parse().ok());
    Outcome { value, errno: name, seconds }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, thread: Option<u32>, arguments: &str, result: Option<Outcome<'_>>) {
        let expected = Content::Call { name: "ioctl", arguments, result };
        assert_eq!(parse(text), Some(Line { thread, content: expected }), "{text}");
    }

    #[test]
    fn all_forms_of_a_call() {
        let zero = Some(Outcome { value: Some(0), ..Outcome::default() });
        let bare = "3, 0x25, 0x7ffc";
        check("ioctl(3, 0x25, 0x7ffc) = 0", None, bare, zero);
        check("[pid   993] ioctl(3, 0x25, 0x7ffc)   = 0", Some(993), bare, zero);
        check("993 ioctl(3, 0x25, 0x7ffc) = 0", Some(993), bare, zero);
        check("993   08:36:00.177932 ioctl(3, 0x25, 0x7ffc) = 0", Some(993), bare, zero);
        check("08:36:00 ioctl(3, 0x25, 0x7ffc) = 0", None, bare, zero);
        check("1700000000.177932 ioctl(3, 0x25, 0x7ffc) = 0", None, bare, zero);
        check("     0.000012 ioctl(3, 0x25, 0x7ffc) = 0", None, bare, zero);
        check("08:36:00 (+     0.000012) ioctl(3, 0x25, 0x7ffc) = 0", None, bare, zero);
        let timed = Some(Outcome { value: Some(0), errno: None, seconds: Some(0.25) });
        check("ioctl(3, 0x25, 0x7ffc) = 0 <0.250000>", None, bare, timed);
        let failed = Outcome { value: Some(-1), errno: Some("EINVAL"), seconds: Some(0.25) };
        let text = "ioctl(3, 0x25, 0x7ffc) = -1 EINVAL (Invalid argument) <0.250000>";
        check(text, None, bare, Some(failed));
        check("ioctl(3, 0x25, 0x7ffc <unfinished ...>", None, bare, None);
        check("ioctl(3, 0x25, 0x7ffc^Cstrace: Process 5 detached", None, bare, None);
        check("ioctl(3, 0x25, 0x7ffcstrace: Process 5 attached", None, bare, None);
        check("993<python3> ioctl(3, 0x25, 0x7ffc) = 0", Some(993), bare, zero);
        check("[pid   993<python3>] ioctl(3, 0x25, 0x7ffc) = 0", Some(993), bare, zero);
        check("993 [00007f2e27935011] ioctl(3, 0x25, 0x7ffc) = 0", Some(993), bare, zero);
        check(
            "993 08:36:00 [  16] [00007f2e27935011] ioctl(3, 0x25, 0x7ffc) = 0",
            Some(993),
            bare,
            zero,
        );
        check("ioctl(3, 0x25, 0x7ffc", None, bare, None);
        check("ioctl(3, 0x25, 0x7ffc) = ?", None, bare, Some(Outcome::default()));
        check("ioctl(3, 0x25, 0x7ffc <unfinished ...>) = ?", None, bare, Some(Outcome::default()));
    }

    #[test]
    fn other_lines() {
        let resumed = parse("[pid 7] <... ioctl resumed>) = 0 <1.5>").unwrap();
        let result = Outcome { value: Some(0), errno: None, seconds: Some(1.5) };
        assert_eq!(resumed.content, Content::Resumed { name: "ioctl", result });
        let killed = parse("+++ killed by SIGKILL +++").unwrap();
        assert_eq!(killed.content, Content::Ended { killed_by: Some("SIGKILL") });
        assert!(parse("993 --- SIGCHLD {si_signo=SIGCHLD} ---").is_some());
        for prose in
            ["cuInit (hangs)", "Hello", "", "it calls ioctl(fd) and stops", "(a, b", "+++ x"]
        {
            assert_eq!(parse(prose), None, "{prose}");
        }
    }
}
