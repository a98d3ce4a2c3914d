//! The same words in another form.

use facts::parse::transcript;

pub(crate) fn with_carriage_returns(text: &str) -> String {
    text.lines().flat_map(|line| [line.trim_end_matches('\r'), "\r\n"]).collect()
}

/// As tools of Windows save it: little endian, with a byte order mark.
pub(crate) fn in_utf16(text: &str) -> Vec<u8> {
    format!("\u{feff}{text}").encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// As a mail quotes it.
pub(crate) fn quoted(text: &str) -> String {
    let mark = |line: &str| if line.is_empty() { ">\n".to_owned() } else { format!("> {line}\n") };
    text.lines().map(mark).collect()
}

pub(crate) fn with_trailing_blanks(text: &str) -> String {
    let in_fence = |line: &str| line.trim_start().starts_with("```");
    let blank = |line: &str| {
        // A backslash before a blank continues nothing.
        let fixed = in_fence(line) || line.ends_with('\\');
        format!("{line}{}\n", if fixed { "" } else { "   " })
    };
    text.lines().map(blank).collect()
}

/// Another user on another host in another folder.
pub(crate) fn with_other_prompts(text: &str) -> String {
    rewrite_prompts(text, |_, command| format!("somebody@elsewhere:~/project$ {command}"))
}

/// As a terminal colors them.
pub(crate) fn with_colored_prompts(text: &str) -> String {
    rewrite_prompts(text, |prompt, command| format!("\x1b[01;32m{prompt}\x1b[00m{command}\x1b[K"))
}

/// Rewrites the lines with a prompt of a shell, given what stands before the command and the
/// command.
fn rewrite_prompts(text: &str, rewrite: impl Fn(&str, &str) -> String) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for segment in transcript::split(text) {
        let Some(command) = &segment.command else { continue };
        // What goes on over several lines begins with its first.
        let command = command.lines().next().unwrap_or_default();
        let Some(line) =
            (segment.command_line as usize).checked_sub(1).and_then(|at| lines.get_mut(at))
        else {
            continue;
        };
        let Some((prompt, rest)) =
            line.split_once(['#', '$', '%']).filter(|(p, _)| !p.contains('`'))
        else {
            continue;
        };
        if command.starts_with(rest.trim().trim_end_matches('\\').trim_end())
            && prompt.contains('@')
        {
            let sign = &line[prompt.len()..=prompt.len()];
            *line = rewrite(&format!("{prompt}{sign} "), rest.trim_start());
        }
    }
    lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect()
}
