//! Text that must not be read as markup.

use crate::clean::clean;

/// Escapes what Markdown and the HTML within it would take for markup, in a running text or a
/// cell of a table.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for ch in clean(text).chars() {
        match ch {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '@' => out.push_str("&#64;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '|' | '~' | '!' => {
                out.push('\\');
                out.push(ch);
            }
            _ => out.push(ch),
        }
    }
    out
}

/// A code span. The fence is longer than any run of backticks within, and a bar is escaped since
/// the span may stand in a table.
pub(crate) fn code(text: &str) -> String {
    let text = clean(text).replace('|', "\\|");
    let fence = "`".repeat(longest_run(&text) + 1);
    if text.starts_with('`') || text.ends_with('`') {
        return format!("{fence} {text} {fence}");
    }
    format!("{fence}{text}{fence}")
}

/// A fenced block that the text cannot close.
pub(crate) fn fenced(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| clean(line).into_owned()).collect();
    let text = lines.join("\n");
    let fence = "`".repeat(longest_run(&text).max(2) + 1);
    format!("{fence}sh\n{text}\n{fence}")
}

fn longest_run(text: &str) -> usize {
    text.split(|ch| ch != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_the_input_stays_text() {
        assert_eq!(escape("a_b *c* <img> | @all"), "a\\_b \\*c\\* &lt;img&gt; \\| &#64;all");
        assert_eq!(escape("[x](y)\n# h"), "\\[x\\](y) \\# h");
        assert_eq!(code("a`b"), "``a`b``");
        assert_eq!(code("`"), "`` ` ``");
        assert_eq!(fenced("echo ```\nx"), "````sh\necho ```\nx\n````");
        assert_eq!(fenced("\x1b[31mls"), "```sh\nls\n```");
    }
}
