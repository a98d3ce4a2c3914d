//! A pasted text is cut at its shell prompts: a command line and the output below it, or loose
//! text around them. Fenced or not, with the prompts of the usual shells, of containers and of
//! Python's interactive mode.

use std::sync::LazyLock;

use regex::Regex;

use super::prose_tail::prose_tail;
use super::{command_line, expression};

/// A piece of a pasted text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// The command line whose output this is; `None` for loose text.
    pub command: Option<String>,
    /// The line of the command itself, from 1; 0 for loose text.
    pub command_line: u32,
    /// The first line of the text, from 1.
    pub first_line: u32,
    /// The text, without the prompt line.
    pub text: String,
}

/// `root@pve:~# cmd`, `[user@host dir]$ cmd`, `(venv) user@host ~ % cmd`, `bash-5.1# cmd`, `/ # cmd`.
static PROMPT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    expression::compile(
        r"^\s*(?:\([\w.\-/ ]{1,40}\)\s*)*(?:\[[^\]]{1,80}\]|[\w.\-]{1,40}@[\w.\-]{1,60}(?:[: ][^$#%>]{0,120})?|[\w.\-]{1,60}:[~/][^$#%>]{0,120}|(?:ba|z|da)?sh-\d+\.\d+|[~/][\w./\-]*)\s?[$#%]\s*(?P<cmd>.*)$",
    )
});

/// A prompt sign alone: `$ cmd`, `# cmd`, `% cmd`, `➜  ~ cmd`, `host$ cmd`, `+ cmd` of a script
/// under -x. Taken only before a known program.
static BARE_PROMPT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    expression::compile(
        r"^\s*(?:(?:[\w.\-]{1,40})?[$#]|%|\+{1,3}|[➜❯λ](?:\s+[~/]\S*)?(?:\s+git:\(\S*\))?)\s+(?P<cmd>[^\s~/]\S*.*)$",
    )
});

/// A caption of a block: "Output of `nvidia-smi -L`:", "**dmesg**", "nvidia-smi:".
static CAPTION: LazyLock<Option<Regex>> = LazyLock::new(|| {
    expression::compile(
        r"^[\s#*>\-]*(?:(?i:output of|result of|here is|run(?:ning)?)\s+)?[`*]{0,3}(?P<cmd>[\w./\-][^`*:]{0,200}?)[`*]{0,3}\s*(?i:output|gives|shows|prints|says|reports)?\s*:?\s*[`*]{0,3}\s*$",
    )
});

/// Programs whose names at a bare prompt make a line a command.
const KNOWN_PROGRAMS: [&str; 82] = [
    "nvidia-smi",
    "cat",
    "ls",
    "uname",
    "lsmod",
    "dmesg",
    "journalctl",
    "modprobe",
    "modinfo",
    "lspci",
    "env",
    "printenv",
    "echo",
    "export",
    "python",
    "python3",
    "pip",
    "pip3",
    "docker",
    "podman",
    "sudo",
    "grep",
    "egrep",
    "zgrep",
    "zcat",
    "head",
    "tail",
    "strace",
    "timeout",
    "nvcc",
    "ldconfig",
    "systemctl",
    "systemd-detect-virt",
    "pveversion",
    "hostname",
    "id",
    "ulimit",
    "stat",
    "readelf",
    "strings",
    "find",
    "kubectl",
    "pct",
    "lxc-attach",
    "lxc",
    "conda",
    "mount",
    "df",
    "getenforce",
    "sysctl",
    "dkms",
    "dpkg",
    "rpm",
    "hostnamectl",
    "lsb_release",
    "rmmod",
    "insmod",
    "whoami",
    "nvidia-modprobe",
    "nvidia-container-cli",
    "mokutil",
    "gpudx",
    "runsc",
    "flatpak",
    "snap",
    "nvidia-ctk",
    "ctr",
    "crictl",
    "nerdctl",
    "ausearch",
    "findmnt",
    "sestatus",
    "bwrap",
    "time",
    "ps",
    "lsof",
    "helm",
    "aa-status",
    "microk8s",
    "k3s",
    "apptainer",
    "singularity",
];

/// Cuts a text. Every line is in exactly one segment, but for prompt lines and fences.
pub fn split(text: &str) -> Vec<Segment> {
    let mut cutter = Cutter::default();
    for (number, line) in super::numbered(text) {
        cutter.line(number, line);
    }
    cutter.finish()
}

#[derive(Default)]
struct Cutter {
    done: Vec<Segment>,
    current: Option<Segment>,
    fenced: bool,
    /// The last line that was not empty, for a caption before a fence.
    caption: Option<(u32, String)>,
    /// A command that goes on in the next line: after a backslash, or up to a here-document's end.
    open_command: Option<OpenCommand>,
}

struct OpenCommand {
    line: u32,
    text: String,
    heredoc_end: Option<String>,
}

impl Cutter {
    fn line(&mut self, number: u32, line: &str) {
        if self.open_command.is_some() {
            self.continue_command(number, line);
            return;
        }
        if is_fence(line) {
            self.fence(number);
            return;
        }
        if let Some(command) = prompt(line) {
            self.start_command(number, command);
            return;
        }
        self.keep(number, line);
        if !line.trim().is_empty() {
            self.caption = Some((number, line.to_owned()));
        }
    }

    fn fence(&mut self, number: u32) {
        if !self.fenced {
            self.part_introduction();
        }
        self.close();
        self.fenced = !self.fenced;
        let caption = self.caption.take().filter(|(line, _)| number - line <= 2);
        if let (true, Some((line, text))) = (self.fenced, caption)
            && let Some(command) = captioned(&text)
        {
            self.open(Some(command), line, number + 1);
        }
    }

    /// A paragraph above a fence that ends with a colon introduces the block, and is no part of the
    /// output above it.
    fn part_introduction(&mut self) {
        let Some(segment) = self.current.as_mut().filter(|segment| segment.command.is_some())
        else {
            return;
        };
        let body = segment.text.trim_end();
        let begin = body.rfind("\n\n").map(|gap| gap + 2).filter(|_| body.ends_with(':'));
        if let Some(begin) = begin {
            let text = segment.text.split_off(begin);
            let above = super::numbered(&segment.text).count();
            let first_line = segment.first_line + u32::try_from(above).unwrap_or(0);
            self.open(None, 0, first_line);
            if let Some(introduction) = &mut self.current {
                introduction.text = text;
            }
        }
    }

    fn start_command(&mut self, number: u32, command: &str) {
        self.close();
        self.caption = None;
        let heredoc_end = heredoc(command);
        if heredoc_end.is_some() || command.ends_with('\\') {
            let text = command.trim_end_matches('\\').to_owned();
            self.open_command = Some(OpenCommand { line: number, text, heredoc_end });
        } else if command.trim().is_empty() {
            self.open(None, 0, number + 1);
        } else {
            self.open(Some(command.trim().to_owned()), number, number + 1);
        }
    }

    fn continue_command(&mut self, number: u32, line: &str) {
        let Some(open) = &mut self.open_command else { return };
        // A person's command line is short; anything longer is a text that happened to hold one.
        let too_long = open.text.len() > 8192;
        let ended = if let Some(end) = &open.heredoc_end {
            open.text.push('\n');
            open.text.push_str(line);
            line.trim() == end
        } else {
            open.text.push(' ');
            open.text.push_str(line.trim().trim_start_matches("> ").trim_end_matches('\\'));
            !line.ends_with('\\')
        };
        if (ended || too_long)
            && let Some(open) = self.open_command.take()
        {
            self.open(Some(open.text), open.line, number + 1);
        }
    }

    fn keep(&mut self, number: u32, line: &str) {
        if self.current.is_none() {
            self.open(None, 0, number);
        }
        if let Some(segment) = &mut self.current {
            segment.text.push_str(line);
            segment.text.push('\n');
        }
    }

    fn open(&mut self, command: Option<String>, command_line: u32, first_line: u32) {
        self.close();
        self.current = Some(Segment { command, command_line, first_line, text: String::new() });
    }

    fn close(&mut self) {
        let Some(mut segment) = self.current.take() else { return };
        let tail = if segment.command.is_some() { prose_tail(&segment.text) } else { None };
        if let Some((at, lines)) = tail {
            let text = segment.text.split_off(at);
            let first_line = segment.first_line + lines;
            self.done.push(segment);
            self.done.push(Segment { command: None, command_line: 0, first_line, text });
            return;
        }
        if segment.command.is_some() || !segment.text.trim().is_empty() {
            self.done.push(segment);
        }
    }

    fn finish(mut self) -> Vec<Segment> {
        if let Some(open) = self.open_command.take() {
            self.open(Some(open.text), open.line, open.line + 1);
        }
        self.close();
        self.done
    }
}

fn is_fence(line: &str) -> bool {
    let line = line.trim_start_matches([' ', '\t', '>']);
    line.starts_with("```") || line.starts_with("~~~")
}

/// Longest line that may be a prompt.
const PROMPT_LINE_LIMIT: usize = 4096;

/// Every prompt ends in one of these, but for those of an interactive Python.
const PROMPT_SIGNS: [char; 7] = ['$', '#', '%', '+', '➜', '❯', 'λ'];

/// The command behind a prompt; empty for a prompt without one.
fn prompt(line: &str) -> Option<&str> {
    if line.len() > PROMPT_LINE_LIMIT {
        return None;
    }
    if let Some(rest) = line.trim_start().strip_prefix(">>> ") {
        return Some(rest).filter(|rest| !rest.trim().is_empty());
    }
    if !line.contains(PROMPT_SIGNS) {
        return None;
    }
    if let Some(found) = PROMPT.as_ref().and_then(|regex| regex.captures(line)) {
        let command = found.name("cmd")?.as_str();
        // `[    1.234567] NVRM: #` and `/ # heading` must not pass for prompts.
        let plausible = !line.trim_start().starts_with('[') || line.contains('@') || known(command);
        let short = !line.trim_start().starts_with(['~', '/']) || known(command);
        return (plausible && short).then_some(command);
    }
    let found = BARE_PROMPT.as_ref()?.captures(line)?;
    let command = found.name("cmd")?.as_str();
    known(command).then_some(command)
}

/// True when the first word is a program that one runs to look at a GPU stack. Prose after a `#`
/// begins with a word too, so a few further signs of prose are refused.
fn known(command: &str) -> bool {
    let Some(first) = command_line::parse(command).into_iter().next() else { return false };
    let program = first.words.first().map(String::as_str).unwrap_or_default();
    let base = program.rsplit('/').next().unwrap_or(program);
    let listed =
        KNOWN_PROGRAMS.contains(&base) || program.starts_with("./") || first.container().is_some();
    // `lspci -d 10de:` ends in a vendor.
    let argument = command.ends_with("..") || command.ends_with(" 10de:");
    let prose = command.ends_with(['.', ':', '!', '?']) && !argument;
    (listed || !first.wrappers.is_empty()) && !prose
}

/// The command that a caption names.
fn captioned(line: &str) -> Option<String> {
    if line.len() > 300 {
        return None;
    }
    if let Some((_, rest)) = line.split_once('`')
        && let Some((command, _)) = rest.split_once('`')
        && known(command)
    {
        return Some(command.to_owned());
    }
    let found = CAPTION.as_ref()?.captures(line)?;
    let command = found.name("cmd")?.as_str().trim();
    known(command).then(|| command.to_owned())
}

fn heredoc(command: &str) -> Option<String> {
    let (_, rest) = command.split_once("<<")?;
    let word = rest.trim_start_matches('-').split_whitespace().next()?;
    let word = word.trim_matches(['\'', '"']);
    let legal =
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    legal.then(|| word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(text: &str) -> Vec<(String, String)> {
        split(text)
            .into_iter()
            .filter_map(|segment| Some((segment.command?, segment.text.trim_end().to_owned())))
            .collect()
    }

    #[test]
    fn prompts_of_the_usual_shells() {
        for line in [
            "root@pve:~# uname -r",
            "[root@gpu01 ~]# uname -r",
            "(base) user@host:~/src$ uname -r",
            "user@host ~ % uname -r",
            "bash-5.1# uname -r",
            "/ # uname -r",
            "$ uname -r",
            "# uname -r",
            "➜  ~ uname -r",
            "pve:~ # uname -r",
        ] {
            let text = format!("{line}\n6.8.12-9-pve\n");
            assert_eq!(commands(&text), [("uname -r".into(), "6.8.12-9-pve".into())], "{line}");
        }
    }

    #[test]
    fn a_command_may_end_in_a_vendor() {
        let text = "$ nvidia-smi\nNo devices were found\n$ lspci -nnk -d 10de:\n01:00.0 VGA\n";
        assert_eq!(commands(text)[1], ("lspci -nnk -d 10de:".into(), "01:00.0 VGA".into()));
    }

    #[test]
    fn what_is_no_prompt() {
        for line in [
            "# CONFIG_DEVICE_PRIVATE is not set",
            "## nvidia-smi works",
            "[   12.345678] NVRM: loading NVIDIA UNIX x86_64 Kernel Module #1",
            "# Environment",
            "$HOME is set",
            "| NVIDIA-SMI 590.48.01 |",
            "# cat food is on sale.",
        ] {
            assert!(commands(line).is_empty(), "{line}");
        }
    }

    #[test]
    fn fences_end_an_output_and_captions_name_it() {
        let text =
            "Some prose.\n\nOutput of `nvidia-smi -L`:\n```\nGPU 0: NVIDIA H200\n```\nMore prose\n";
        let segments = split(text);
        let cut = segments.iter().find(|segment| segment.command.is_some()).unwrap();
        assert_eq!(cut.command.as_deref(), Some("nvidia-smi -L"));
        assert_eq!((cut.first_line, cut.text.as_str()), (5, "GPU 0: NVIDIA H200\n"));
        assert!(segments.last().unwrap().text.contains("More prose"));
        let text = "$ uname -r\n6.8.0\n\nThe log:\n\n```\nusb 1-2: x\n```\n";
        let segments = split(text);
        assert_eq!(segments[0].text, "6.8.0\n\n");
        assert_eq!((segments[1].first_line, segments[1].text.as_str()), (4, "The log:\n\n"));
    }

    #[test]
    fn heredocs_continuations_and_python() {
        let text = "$ python3 - <<'EOF'\nimport torch\nprint(1)\nEOF\n1\n$ docker run \\\n  --gpus all x nvidia-smi\nout\n>>> torch.cuda.is_available()\nFalse\n";
        let found = commands(text);
        assert_eq!(found[0].1, "1");
        assert!(found[0].0.contains("import torch"));
        assert!(found[1].0.ends_with("x nvidia-smi"));
        assert_eq!(found[2], ("torch.cuda.is_available()".into(), "False".into()));
    }
}
