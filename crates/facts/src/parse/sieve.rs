//! Tells in which lines of a long text any reader could find something, at the speed at which a
//! file is read. It errs towards keeping: a line without a mark says nothing to any reader, and a
//! line with one may say nothing either.

use std::sync::OnceLock;

use aho_corasick::Input;
use aho_corasick::automaton::Automaton as _;
use aho_corasick::dfa::DFA;

use super::kernel_log;

mod lanes;

/// Words that stand in what programs of this field print, besides the driver's own log lines. A
/// word is found with its first letter, or all of its letters, in either case.
const WORDS: [&str; 78] = [
    "nvidia",
    "nvrm",
    "nvml",
    "nvlink",
    "nvswitch",
    "nvproxy",
    "nccl",
    "cuda",
    "cudnn",
    "cuInit",
    "cuDevice",
    "gpu",
    "xid",
    "uvm_",
    "torch",
    "tensorflow",
    "jax",
    "vllm",
    "triton",
    "nouveau",
    "vfio",
    "iommu",
    "libcu",
    "fabric",
    "hypervisor",
    "dmi:",
    "detect-virt",
    "linux version",
    "command line:",
    "secure boot",
    "secureboot",
    "lockdown",
    "mokutil",
    "dkms",
    "modprobe",
    "insmod",
    "config_",
    "bpf_cgroup_device",
    "bpf_prog",
    "devices.allow",
    "cdi device",
    "runtime name",
    "unknown runtime",
    "device driver",
    "oci runtime",
    "runsc",
    "client sync file",
    "/dev/shm",
    "memlock",
    "rlimit",
    "ulimit",
    "open files",
    "address space",
    "bus error",
    "peer access",
    "mig devices",
    "suspend entry",
    "uname -",
    "os-release",
    "selinux",
    "avc:",
    "seccomp",
    "landlock",
    "spdm",
    "d3cold",
    "mlx5",
    "nvls",
    "shm-size",
    "shmsize",
    "locked memory",
    "pids controller",
    "pthread_create",
    "openblas",
    "temporarily unavailable",
    "/dev/char",
    "gsp",
    "access peer",
    "proc filesystem",
];

/// Which words count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marks {
    /// All that any reader knows.
    All,
    /// Those that only kernel logs bear.
    KernelLog,
}

impl Marks {
    /// Where each line begins that has a mark, in order. `covered` is given a line and the place of
    /// a mark in it; when the mark says nothing there, it tells where the search goes on.
    pub fn lines(self, text: &[u8], covered: &dyn Fn(&[u8], usize) -> Option<usize>) -> Vec<usize> {
        self.automaton().map_or_else(Vec::new, |dfa| lanes::lines_with_words(dfa, text, covered))
    }

    fn automaton(self) -> Option<&'static DFA> {
        static ALL: OnceLock<Option<DFA>> = OnceLock::new();
        static KERNEL_LOG: OnceLock<Option<DFA>> = OnceLock::new();
        let built = match self {
            Marks::All => ALL.get_or_init(|| {
                let words = WORDS.iter().flat_map(|word| spellings(word));
                DFA::new(kernel_log::marks().chain(words)).ok()
            }),
            Marks::KernelLog => KERNEL_LOG.get_or_init(|| DFA::new(kernel_log::marks()).ok()),
        };
        built.as_ref()
    }
}

/// Whether a text has a mark of any reader.
pub fn has_mark(text: &[u8]) -> bool {
    let found = Marks::All.automaton().map(|dfa| dfa.try_find(&Input::new(text)));
    matches!(found, Some(Ok(Some(_))))
}

/// True for a line of a log in which no reader could find anything. Prose bears no stamp.
pub(crate) fn is_idle_log_line(line: &str) -> bool {
    !has_mark(line.as_bytes()) && kernel_log::has_stamp(line)
}

/// `cuda`, `Cuda`, `CUDA`.
fn spellings(word: &str) -> Vec<String> {
    let mut letters = word.chars();
    let capital = letters.next().map(|first| first.to_ascii_uppercase());
    let capital: String = capital.into_iter().chain(letters).collect();
    let mut all = vec![word.to_owned(), capital, word.to_ascii_uppercase()];
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_found_in_the_usual_spellings() {
        for line in ["a CUDA error", "Nvidia", "[nvidia-drm]", "NVRM: x", "? f+0x1/0x2 [e1000e]"] {
            assert!(has_mark(line.as_bytes()), "{line}");
        }
        let text = b"libcuda.so.1\nNVRM: x\n";
        assert_eq!(Marks::All.lines(text, &|_, _| None), [0, 13]);
        assert_eq!(Marks::KernelLog.lines(text, &|_, _| None), [13]);
    }

    #[test]
    fn what_other_programs_print_has_none() {
        for line in [
            "usb 1-2: new high-speed USB device number 4 using xhci_hcd",
            "systemd[1]: Started Session 4 of User root.",
            "docker0: port 1(veth1) entered forwarding state",
            "EXT4-fs (sda1): mounted filesystem with ordered data mode. Quota mode: none.",
        ] {
            assert!(!has_mark(line.as_bytes()), "{line}");
        }
    }

    #[test]
    fn lines_of_logs_without_a_mark_are_idle_and_prose_never_is() {
        assert!(is_idle_log_line("[   12.345678] usb 1-2: new high-speed USB device"));
        assert!(is_idle_log_line("Nov 30 08:36:01 gw systemd[1]: Started Session 4."));
        assert!(!is_idle_log_line("[   12.345678] nvidia: module license"));
        assert!(!is_idle_log_line("it has been so since the update"));
    }

    /// Long texts are walked at four places at once, and words stand at every place of a line.
    #[test]
    fn the_lines_of_a_long_text_are_those_that_each_have_a_mark() {
        let mut text = Vec::new();
        let mut expected = Vec::new();
        for number in 0..5000_usize {
            let line = match number % 97 {
                0 => format!("{}NVRM:\n", "x".repeat(number % 89)),
                1 => "cuda and cuda again\n".to_owned(),
                2 => "a\n".to_owned(),
                3 => "\n".to_owned(),
                _ => format!("nothing of number {number}\n"),
            };
            if has_mark(line.as_bytes()) {
                expected.push(text.len());
            }
            text.extend(line.into_bytes());
        }
        for length in [text.len(), 4096, 4095, 1000, 7, 0] {
            let part = &text[..length];
            let within = expected.iter().copied().filter(|begin| {
                let line = part.get(*begin..).unwrap_or_default();
                has_mark(line.split(|byte| *byte == b'\n').next().unwrap_or_default())
            });
            let within: Vec<usize> = within.collect();
            assert_eq!(Marks::All.lines(part, &|_, _| None), within, "{length} bytes");
        }
    }

    #[test]
    fn a_covered_mark_does_not_count_and_what_follows_it_does() {
        let text = b"gpu7 usb\ngpu7 cuda\n";
        let covered = |_: &[u8], place: usize| (place < 4).then_some(4);
        assert_eq!(Marks::All.lines(text, &covered), [9]);
    }

    #[test]
    fn every_line_that_the_log_scanner_keeps_has_a_mark() {
        let lines = include_str!("../../tests/data/kernel_lines_of_reports.tsv");
        let mut scanner = kernel_log::LogScanner::new();
        let mut kept = 0;
        for line in lines.lines() {
            if scanner.line(line.as_bytes()).is_some() {
                kept += 1;
                assert!(has_mark(line.as_bytes()), "{line}");
            }
        }
        assert!(kept > 20);
    }
}
