//! Kernel logs in the forms that people paste and programs read.

use std::fmt::Write as _;

/// One record.
#[derive(Debug, Clone)]
struct Line {
    microseconds: u64,
    priority: u8,
    text: String,
}

/// A log to be written.
#[derive(Debug, Clone, Default)]
pub struct KernelLog {
    lines: Vec<Line>,
}

impl KernelLog {
    /// An empty log.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a record of priority 4 (warning), `milliseconds` after boot.
    pub fn line(self, milliseconds: u64, text: &str) -> Self {
        self.line_with_priority(milliseconds, 4, text)
    }

    /// Adds a record with its priority: 0 emergency to 7 debug.
    pub fn line_with_priority(mut self, milliseconds: u64, priority: u8, text: &str) -> Self {
        let microseconds = milliseconds * 1000;
        self.lines.push(Line { microseconds, priority, text: text.to_owned() });
        self
    }

    /// As `dmesg` prints it: `[   12.345678] text`.
    pub fn dmesg(&self) -> String {
        self.each(|line| {
            let (seconds, rest) = (line.microseconds / 1_000_000, line.microseconds % 1_000_000);
            format!("[{seconds:5}.{rest:06}] {}", line.text)
        })
    }

    /// As `dmesg -T` prints it, the machine having booted at midnight of 1 June 2026.
    pub fn dmesg_with_dates(&self) -> String {
        self.each(|line| format!("[Mon Jun  1 {} 2026] {}", clock(line), line.text))
    }

    /// As `dmesg --color=always` prints it.
    pub fn dmesg_colored(&self) -> String {
        self.each(|line| {
            let (seconds, rest) = (line.microseconds / 1_000_000, line.microseconds % 1_000_000);
            format!("\x1b[32m[{seconds:5}.{rest:06}] \x1b[0m\x1b[31m{}\x1b[0m", line.text)
        })
    }

    /// As `journalctl -k` prints it.
    pub fn journal(&self, host: &str) -> String {
        self.each(|line| format!("Jun 01 {} {host} kernel: {}", clock(line), line.text))
    }

    /// As reading `/dev/kmsg` gives it: `priority,sequence,microseconds,-;text`.
    pub fn kmsg(&self) -> String {
        let mut log = String::new();
        for (sequence, line) in (1000..).zip(&self.lines) {
            let (priority, time) = (line.priority, line.microseconds);
            // Writing to a String cannot fail.
            let _ = writeln!(log, "{priority},{sequence},{time},-;{}", line.text);
        }
        log
    }

    fn each(&self, form: impl Fn(&Line) -> String) -> String {
        self.lines.iter().map(|line| form(line) + "\n").collect()
    }
}

/// Time of day of a machine that booted at midnight.
fn clock(line: &Line) -> String {
    let seconds = line.microseconds / 1_000_000;
    format!("{:02}:{:02}:{:02}", seconds / 3600 % 24, seconds / 60 % 60, seconds % 60)
}

/// Text with line ends as Windows has them.
pub fn with_crlf(text: &str) -> String {
    text.replace('\n', "\r\n")
}

/// Text as UTF-16, little-endian, with a byte order mark: what PowerShell's `>` writes.
pub fn as_utf16(text: &str) -> Vec<u8> {
    let mark = std::iter::once(0xfeff);
    mark.chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
}
