//! A shell command line as it was typed: simple commands, what wraps them and what filters their
//! output. Enough of the shell's grammar to tell which bytes an output is made of, no more.

/// Something between the shell and the command that matters for reading the output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wrapper {
    /// `timeout N`: exit status 124 means that the command did not end in N seconds.
    Timeout(String),
    /// `docker run …`, `lxc-attach …`, `kubectl exec …`: the command ran in a container; the words
    /// up to the command.
    Container(Vec<String>),
    /// `strace …`: the output is a trace; the words up to the command.
    Strace(Vec<String>),
    /// `sudo`, `su -c`: it ran as root.
    Root,
}

/// A filter behind a pipe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Filter {
    /// `grep` with the pattern and whether lines that match were dropped (`-v`).
    Grep {
        /// The pattern.
        pattern: String,
        /// `-v`
        inverted: bool,
        /// `-i`
        ignore_case: bool,
    },
    /// Anything else that may drop or change lines.
    Other(String),
}

/// One simple command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Simple {
    /// Words of the command itself, wrappers taken off.
    pub words: Vec<String>,
    /// Variables set for it.
    pub assignments: Vec<(String, String)>,
    /// Wrappers, outermost first.
    pub wrappers: Vec<Wrapper>,
    /// Filters, in order.
    pub filters: Vec<Filter>,
}

impl Simple {
    /// The program's base name, or an empty text.
    pub fn program(&self) -> &str {
        self.words.first().map_or("", |word| word.rsplit('/').next().unwrap_or(word))
    }

    /// The words after the program.
    pub fn arguments(&self) -> &[String] {
        self.words.get(1..).unwrap_or(&[])
    }

    /// The arguments that are no options.
    pub fn operands(&self) -> impl Iterator<Item = &str> {
        self.arguments().iter().map(String::as_str).filter(|word| !word.starts_with('-'))
    }

    /// True when an argument is exactly this, or a group of short options holds the letter.
    pub fn has_option(&self, option: &str) -> bool {
        let letter = option.strip_prefix('-').filter(|rest| rest.len() == 1);
        self.arguments().iter().any(|word| {
            let grouped = word.starts_with('-') && !word.starts_with("--");
            word == option || (grouped && letter.is_some_and(|letter| word.contains(letter)))
        })
    }

    /// True when it ran in a container that its own words start or enter.
    pub fn container(&self) -> Option<&[String]> {
        self.wrappers.iter().find_map(|wrapper| match wrapper {
            Wrapper::Container(words) => Some(words.as_slice()),
            _ => None,
        })
    }
}

/// Longest command line that is looked at; anything longer is no command that a person typed.
const LIMIT: usize = 8192;

/// Splits a line at `;`, `&&` and `||` into simple commands with their filters.
pub fn parse(line: &str) -> Vec<Simple> {
    if line.len() > LIMIT {
        return Vec::new();
    }
    let mut commands = Vec::new();
    let mut pipeline: Vec<Vec<String>> = vec![Vec::new()];
    for token in tokens(line) {
        match token {
            Token::Word(word) => {
                if let Some(last) = pipeline.last_mut() {
                    last.push(word);
                }
            }
            Token::Pipe => pipeline.push(Vec::new()),
            Token::End => {
                commands.extend(simple(&std::mem::replace(&mut pipeline, vec![Vec::new()])));
            }
        }
    }
    commands.extend(simple(&pipeline));
    commands
}

enum Token {
    Word(String),
    Pipe,
    End,
}

fn tokens(line: &str) -> Vec<Token> {
    let mut out = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars().peekable();
    let mut quote: Option<char> = None;
    while let Some(ch) = chars.next() {
        match (quote, ch) {
            (Some(open), _) if ch == open => quote = None,
            (Some('"') | None, '\\') => {
                word.get_or_insert_default().extend(chars.next());
            }
            (None, '\'' | '"') => {
                quote = Some(ch);
                word.get_or_insert_default();
            }
            (None, '>' | '<') => {
                word = word.filter(|text| !text.bytes().all(|byte| byte.is_ascii_digit()));
                out.extend(word.take().map(Token::Word));
                skip_redirection(&mut chars);
            }
            (None, ';') => {
                out.extend(word.take().map(Token::Word));
                out.push(Token::End);
            }
            (None, '|' | '&') => {
                out.extend(word.take().map(Token::Word));
                let doubled = chars.next_if_eq(&ch).is_some();
                out.push(if ch == '|' && !doubled { Token::Pipe } else { Token::End });
                // `|&` pipes both streams.
                chars.next_if_eq(&'&');
            }
            (None, '#') if word.is_none() => break,
            (None, _) if ch.is_whitespace() => out.extend(word.take().map(Token::Word)),
            (Some(_) | None, _) => word.get_or_insert_default().push(ch),
        }
    }
    out.extend(word.map(Token::Word));
    out
}

/// Takes `>file`, `>>file`, `2>&1` and the like out of the line.
fn skip_redirection(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    while chars.next_if(|ch| matches!(ch, '>' | '<' | '&' | ' ')).is_some() {}
    while chars.next_if(|ch| !ch.is_whitespace() && !matches!(ch, ';' | '|' | '&')).is_some() {}
}

fn simple(pipeline: &[Vec<String>]) -> Option<Simple> {
    let (first, rest) = pipeline.split_first()?;
    let mut command = Simple { words: first.clone(), ..Simple::default() };
    unwrap(&mut command);
    let empty = command.words.is_empty() && command.assignments.is_empty();
    if empty && command.wrappers.is_empty() {
        return None;
    }
    command
        .filters
        .extend(rest.iter().filter(|words| !words.is_empty()).map(|words| filter(words)));
    Some(command)
}

fn filter(words: &[String]) -> Filter {
    let command = Simple { words: words.to_vec(), ..Simple::default() };
    match command.program() {
        "grep" | "egrep" | "fgrep" | "rg" => Filter::Grep {
            pattern: command.operands().next().unwrap_or("").to_owned(),
            inverted: command.has_option("-v"),
            ignore_case: command.has_option("-i"),
        },
        other => Filter::Other(other.to_owned()),
    }
}

/// Takes assignments and wrappers off the front, a bounded number of times.
fn unwrap(command: &mut Simple) {
    for _ in 0..8 {
        let Some(first) = command.words.first().cloned() else { return };
        if let Some((name, value)) = assignment(&first) {
            command.assignments.push((name, value));
            command.words.remove(0);
            continue;
        }
        let program = first.rsplit('/').next().unwrap_or(&first).to_owned();
        let taken = match program.as_str() {
            "sudo" | "doas" => {
                command.wrappers.push(Wrapper::Root);
                1 + options(&command.words[1..], &["-u", "-g", "-E", "-H", "-n"])
            }
            "time" | "nice" | "nohup" | "stdbuf" | "exec" | "command" => {
                1 + options(&command.words[1..], &[])
            }
            "env" if command.words.len() > 1 => 1 + options(&command.words[1..], &[]),
            "timeout" => {
                let before = 1 + options(&command.words[1..], &["-k", "-s"]);
                let seconds = command.words.get(before).cloned().unwrap_or_default();
                command.wrappers.push(Wrapper::Timeout(seconds));
                before + 1
            }
            "strace" | "ltrace" => {
                let takes = ["-e", "-o", "-s", "-p", "-E", "-P", "-I", "-O", "-S", "-a", "-b"];
                let taken = 1 + options_with_values(&command.words[1..], &takes);
                let words = command.words[..taken.min(command.words.len())].to_vec();
                command.wrappers.push(Wrapper::Strace(words));
                taken
            }
            "bash" | "sh" | "zsh" | "dash" if is_dash_c(&command.words) => {
                let inner = command.words.get(2).cloned().unwrap_or_default();
                if let Some(first) = parse_inner(&inner) {
                    command.words = first.words;
                    command.filters.extend(first.filters);
                    command.wrappers.extend(first.wrappers);
                    command.assignments.extend(first.assignments);
                }
                return;
            }
            _ => match container_prefix(&command.words) {
                Some(taken) => {
                    let words = command.words[..taken].to_vec();
                    command.wrappers.push(Wrapper::Container(words));
                    taken
                }
                None => return,
            },
        };
        command.words.drain(..taken.min(command.words.len()));
    }
}

/// The last simple command of a `bash -c` text: the one whose output one reads.
fn parse_inner(inner: &str) -> Option<Simple> {
    (!inner.contains("bash -c") && !inner.contains("sh -c")).then(|| parse(inner).pop()).flatten()
}

fn is_dash_c(words: &[String]) -> bool {
    words.get(1).is_some_and(|word| word.starts_with('-') && word.ends_with('c'))
}

fn assignment(word: &str) -> Option<(String, String)> {
    let (name, value) = word.split_once('=')?;
    let legal = !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && !name.starts_with(|ch: char| ch.is_ascii_digit());
    legal.then(|| (name.to_owned(), value.to_owned()))
}

/// How many words at the front are options, those in `valued` together with their values.
fn options(words: &[String], valued: &[&str]) -> usize {
    options_with_values(words, valued)
}

fn options_with_values(words: &[String], valued: &[&str]) -> usize {
    let mut index = 0;
    while let Some(word) = words.get(index) {
        if !word.starts_with('-') || word == "-" {
            break;
        }
        index += if valued.contains(&word.as_str()) { 2 } else { 1 };
        if word == "--" {
            break;
        }
    }
    index.min(words.len())
}

/// The number of words of a container engine's command line that stand before the command that
/// runs inside, or `None` when it is none (or when no command follows).
fn container_prefix(words: &[String]) -> Option<usize> {
    let program = words.first()?.rsplit('/').next()?;
    let verb = words.get(1).map(String::as_str);
    match (program, verb) {
        ("docker" | "nvidia-docker" | "podman" | "nerdctl", Some("run" | "exec" | "create")) => {
            let index = 2 + engine_options(&words[2..]);
            // The image or container name, then the command.
            Some((index + 1).min(words.len()))
        }
        (
            "lxc-attach" | "pct" | "lxc" | "incus" | "kubectl" | "oc" | "apptainer" | "singularity"
            | "nsenter" | "chroot" | "machinectl" | "systemd-nspawn",
            _,
        ) => {
            let separator = words.iter().position(|word| word == "--");
            separator.map(|index| index + 1)
        }
        _ => None,
    }
}

/// Options of `docker run` that take no value; all others in the form `--name value` do.
const ENGINE_FLAGS: [&str; 14] = [
    "--rm",
    "-it",
    "-ti",
    "-i",
    "-t",
    "-d",
    "-id",
    "-itd",
    "--privileged",
    "--init",
    "--detach",
    "--tty",
    "--interactive",
    "--read-only",
];

fn engine_options(words: &[String]) -> usize {
    let mut index = 0;
    while let Some(word) = words.get(index) {
        if !word.starts_with('-') {
            break;
        }
        let alone = ENGINE_FLAGS.contains(&word.as_str()) || word.contains('=');
        index += if alone { 1 } else { 2 };
    }
    index.min(words.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(line: &str) -> Simple {
        let mut commands = parse(line);
        assert_eq!(commands.len(), 1, "{line}: {commands:?}");
        commands.remove(0)
    }

    #[test]
    fn quotes_pipes_and_redirections() {
        let command = one("timeout 10 nvidia-smi -q 2>&1 | grep -E 'Product Name|GSP' | head -2");
        assert_eq!(command.words, ["nvidia-smi", "-q"]);
        assert_eq!(command.wrappers, [Wrapper::Timeout("10".into())]);
        assert!(
            matches!(&command.filters[0], Filter::Grep { pattern, .. } if pattern == "Product Name|GSP")
        );
        assert_eq!(command.filters[1], Filter::Other("head".into()));
    }

    #[test]
    fn several_commands_on_a_line() {
        let commands = parse("uname -r; pveversion && echo \"a;b\" || true");
        let programs: Vec<&str> = commands.iter().map(Simple::program).collect();
        assert_eq!(programs, ["uname", "pveversion", "echo", "true"]);
        assert_eq!(commands[2].words[1], "a;b");
    }

    #[test]
    fn containers_and_strace_are_taken_off() {
        let command = one("sudo docker run --rm --gpus all -e A=b nvidia/cuda:12.4 nvidia-smi -L");
        assert_eq!(command.words, ["nvidia-smi", "-L"]);
        assert!(command.container().unwrap().contains(&"--gpus".to_owned()));
        let command = one("pct exec 129 -- cat /proc/driver/nvidia/version");
        assert_eq!(command.program(), "cat");
        let command = one("strace -e trace=ioctl -t timeout 5 python3 -c 'x'");
        assert_eq!(command.program(), "python3");
        assert!(matches!(&command.wrappers[0], Wrapper::Strace(words) if words.len() == 4));
    }

    #[test]
    fn assignments_and_comments() {
        let command = one("CUDA_VISIBLE_DEVICES=0 LD_LIBRARY_PATH=/a ./run --x # a comment");
        assert_eq!(command.assignments.len(), 2);
        assert_eq!(command.words, ["./run", "--x"]);
        assert!(parse("   # only a comment").is_empty());
    }
}
