//! Tells in which lines of a long text any reader could find something, at the speed at which a
//! file is read. It errs towards keeping: a line without a mark says nothing to any reader, and a
//! line with one may say nothing either.

use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use super::kernel_log;

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

/// Where the next mark begins, if there is one.
pub fn next_mark(text: &[u8]) -> Option<usize> {
    automaton()?.find(text).map(|found| found.start())
}

/// Where the next mark begins that only kernel logs bear.
pub fn next_kernel_mark(text: &[u8]) -> Option<usize> {
    kernel_log::next_mark(text)
}

/// True for a line of a log in which no reader could find anything. Prose bears no stamp.
pub(crate) fn is_idle_log_line(line: &str) -> bool {
    next_mark(line.as_bytes()).is_none() && kernel_log::has_stamp(line)
}

fn automaton() -> Option<&'static AhoCorasick> {
    static AUTOMATON: OnceLock<Option<AhoCorasick>> = OnceLock::new();
    let build = || {
        let words = WORDS.iter().flat_map(|word| spellings(word));
        let marks: Vec<String> = kernel_log::marks().chain(words).collect();
        AhoCorasick::builder().kind(Some(AhoCorasickKind::DFA)).build(&marks).ok()
    };
    AUTOMATON.get_or_init(build).as_ref()
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
            assert!(next_mark(line.as_bytes()).is_some(), "{line}");
        }
        assert_eq!(next_mark(b"libcuda.so.1 and more"), Some(0));
        assert_eq!(next_kernel_mark(b"libcuda.so.1 and NVRM: x"), Some(17));
    }

    #[test]
    fn what_other_programs_print_has_none() {
        for line in [
            "usb 1-2: new high-speed USB device number 4 using xhci_hcd",
            "systemd[1]: Started Session 4 of User root.",
            "docker0: port 1(veth1) entered forwarding state",
            "EXT4-fs (sda1): mounted filesystem with ordered data mode. Quota mode: none.",
        ] {
            assert_eq!(next_mark(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn lines_of_logs_without_a_mark_are_idle_and_prose_never_is() {
        assert!(is_idle_log_line("[   12.345678] usb 1-2: new high-speed USB device"));
        assert!(is_idle_log_line("Nov 30 08:36:01 gw systemd[1]: Started Session 4."));
        assert!(!is_idle_log_line("[   12.345678] nvidia: module license"));
        assert!(!is_idle_log_line("it has been so since the update"));
    }

    #[test]
    fn every_line_that_the_log_scanner_keeps_has_a_mark() {
        let lines = include_str!("../../tests/data/kernel_lines_of_reports.tsv");
        let mut scanner = kernel_log::LogScanner::new();
        let mut kept = 0;
        for line in lines.lines() {
            if scanner.line(line.as_bytes()).is_some() {
                kept += 1;
                assert!(next_mark(line.as_bytes()).is_some(), "{line}");
            }
        }
        assert!(kept > 20);
    }
}
