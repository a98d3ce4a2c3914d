//! `gpudx read` of a long kernel log against the tools that people search logs with, all given the
//! same patterns.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use anyhow::Result;

use super::timing::{paired, peak_mib, quiet};
use crate::run::say;

/// How long the log is.
const LOG_BYTES: usize = 200_000_000;

/// One line in so many is the driver's.
const LINES_PER_EVENT: u32 = 5000;

/// Lines as a node of a cluster has them; `#` stands for a number.
const LINES: [&str; 14] = [
    "kernel: usb 1-#: new high-speed USB device number # using xhci_hcd",
    "kernel: EXT4-fs (sda#): mounted filesystem with ordered data mode. Quota mode: none.",
    "kernel: audit: type=1400 audit(17644#.#:#): apparmor=\"ALLOWED\" operation=\"open\" pid=#",
    "systemd[1]: Started Session # of User root.",
    "kernel: eth0: renamed from veth#",
    "kernel: docker0: port #(veth#) entered forwarding state",
    "kernel: device veth# entered promiscuous mode",
    "kernel: IPv6: ADDRCONF(NETDEV_CHANGE): veth#: link becomes ready",
    "kernel: perf: interrupt took too long (# > 2500), lowering kernel.perf_event_max_sample_rate",
    "kernel: TCP: request_sock_TCP: Possible SYN flooding on port #. Sending cookies.",
    "kernel: mce: CPU#: Core temperature above threshold, cpu clock throttled (total events = #)",
    "kubelet[#]: reconciler.go:224] \"operationExecutor.VerifyControllerAttachedVolume started\" pod=#",
    "sshd[#]: Accepted publickey for root from 10.0.#.# port # ssh2",
    "CRON[#]: (root) CMD (test -x /usr/sbin/anacron || run-parts /etc/cron.daily)",
];

const EVENTS: [&str; 6] = [
    "kernel: NVRM: Xid (PCI:0000:41:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
    "kernel: NVRM: GPU 0000:41:00.0: GPU has fallen off the bus.",
    "kernel: NVRM: Xid (PCI:0000:41:00): 31, pid=#, name=python3, Ch 00000008, intr 00000000. MMU Fault",
    "kernel: NVRM: nvAssertOkFailedNoLog: Assertion failed: GPU lost from the bus [NV_ERR_GPU_IS_LOST]",
    "kernel: nvidia-uvm: Loaded the UVM driver, major device number #.",
    "kernel: nvidia 0000:41:00.0: AER: PCIe Bus Error: severity=Uncorrectable, type=Transaction Layer",
];

/// Prints how long reading takes over what the others take, and the memory for it.
pub(super) fn run(gpudx: &Path, folder: &Path) -> Result<()> {
    let log = folder.join("kern.log");
    let log_name = log.to_string_lossy().into_owned();
    write_log(&log)?;
    let read = ["read", &log_name];
    for (tool, flags, spell, limit) in [
        ("grep", &["-c", "-E", "-f"][..], extended as fn(&str) -> String, "1"),
        ("rg", &["-c", "-f"][..], nameless as fn(&str) -> String, "2"),
    ] {
        let patterns = folder.join(format!("{tool}.patterns"));
        let lines: Vec<String> = nvabi::signature::all().map(|row| spell(row.regex)).collect();
        std::fs::write(&patterns, lines.join("\n") + "\n")?;
        let patterns_name = patterns.to_string_lossy().into_owned();
        let arguments: Vec<&str> =
            flags.iter().copied().chain([&*patterns_name, &log_name]).collect();
        let mut theirs = quiet(Path::new(tool), &arguments);
        // Given /dev/null to write to, grep stops at the first match.
        theirs.env("LC_ALL", "C").stdout(File::create(folder.join("count"))?);
        let shown = format!("{tool} {} patterns", flags.join(" "));
        let Ok((ours, theirs, ratio)) = paired(&mut quiet(gpudx, &read), &mut theirs) else {
            say(&format!(
                "| `gpudx read` of a 200 MB kernel log over `{shown}` | {tool} is not here | |"
            ));
            continue;
        };
        say(&format!(
            "| `gpudx read` of a 200 MB kernel log over `{shown}`: {:.2} s / {:.2} s | {ratio:.2} | {limit} |",
            ours.as_secs_f64(),
            theirs.as_secs_f64(),
        ));
    }
    let memory = peak_mib(gpudx, &read)?;
    say(&format!("| the same: peak memory | {memory:.0} MiB | 244 MiB |"));
    Ok(())
}

fn write_log(path: &Path) -> Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    let mut numbers = Numbers(0x2545_f491_4f6c_dd1d);
    let mut written = 0;
    let mut count = 0_u32;
    while written < LOG_BYTES {
        count += 1;
        let list = if count.is_multiple_of(LINES_PER_EVENT) { &EVENTS[..] } else { &LINES[..] };
        let text = list.get(numbers.below(list.len())).copied().unwrap_or_default();
        let second = count / 20;
        let clock = (second / 86_400 % 28 + 1, second / 3600 % 24, second / 60 % 60, second % 60);
        let mut line =
            format!("Nov {:02} {:02}:{:02}:{:02} gpu-node-07 ", clock.0, clock.1, clock.2, clock.3);
        for ch in text.chars() {
            match ch {
                '#' => line.push_str(&numbers.below(100_000).to_string()),
                ch => line.push(ch),
            }
        }
        line.push('\n');
        out.write_all(line.as_bytes())?;
        written += line.len();
    }
    out.flush()?;
    Ok(())
}

/// The same numbers each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 32).unwrap_or(0) % limit.max(1)
    }
}

/// Without names of groups, which may not occur twice among several patterns.
fn nameless(regex: &str) -> String {
    let mut out = String::new();
    let mut rest = regex;
    while let Some((before, after)) = rest.split_once("(?P<") {
        out.push_str(before);
        out.push('(');
        rest = after.split_once('>').map_or("", |(_, rest)| rest);
    }
    out + rest
}

/// As an extended regular expression of POSIX, which has neither groups without a number, nor lazy
/// repetition, nor classes by letters within brackets.
fn extended(regex: &str) -> String {
    let plain = nameless(regex).replace("(?:", "(").replace("(?i)", "");
    let mut out = String::new();
    let mut chars = plain.chars().peekable();
    let (mut in_class, mut has_dash) = (false, false);
    while let Some(ch) = chars.next() {
        match ch {
            '\\' => match (chars.next(), in_class) {
                (Some('d'), true) => out.push_str("0-9"),
                (Some('d'), false) => out.push_str("[0-9]"),
                (Some('w'), true) => out.push_str("A-Za-z0-9_"),
                (Some('s'), true) => out.push_str(" \t"),
                // A dash stands for itself at the end alone.
                (Some('-'), true) => has_dash = true,
                // Within brackets a backslash stands for itself.
                (Some(other), true) => out.push(other),
                (Some(other), false) => out.extend(['\\', other]),
                (None, _) => {}
            },
            '[' if !in_class => {
                in_class = true;
                out.push(ch);
                out.extend(chars.next_if_eq(&'^'));
            }
            ']' if in_class => {
                in_class = false;
                out.extend(std::mem::take(&mut has_dash).then_some('-'));
                out.push(ch);
            }
            '+' | '*' | '?' | '}' if !in_class => {
                out.push(ch);
                chars.next_if_eq(&'?');
            }
            ch => out.push(ch),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_spelt_for_each_tool() {
        let regex = r"GPU (?P<bdf>[\d.:\-]+?): (?:a|b)\(\d{2}\)";
        assert_eq!(nameless(regex), r"GPU ([\d.:\-]+?): (?:a|b)\(\d{2}\)");
        assert_eq!(extended(regex), r"GPU ([0-9.:-]+): (a|b)\([0-9]{2}\)");
    }
}
