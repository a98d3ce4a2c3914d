//! The same event on another day, in another slot, among other packages.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use regex::{Captures, Regex};

fn replaced(pattern: &str, text: &str, replace: impl Fn(&Captures<'_>) -> String) -> String {
    Regex::new(pattern)
        .unwrap()
        .replace_all(text, |found: &Captures<'_>| replace(found))
        .into_owned()
}

/// Shifts all stamps: an hour and a bit since boot, four years where there is a date.
pub(crate) fn later(text: &str) -> String {
    let text = replaced(r"\[( *)(\d+)\.(\d{6})\]", text, |found| {
        let seconds: u64 = found[2].parse().unwrap();
        // A log that begins at the boot goes on doing so.
        let later = if seconds == 0 { 0 } else { seconds + 3605 };
        let width = found[1].len() + found[2].len();
        format!("[{later:>width$}.{}]", &found[3])
    });
    let year = |year: &str| (year.parse::<u32>().unwrap() + 4).to_string();
    let text = replaced(r"\b(20\d\d)(-\d\d-\d\d[T ]\d\d:\d\d:\d\d)", &text, |found| {
        format!("{}{}", year(&found[1]), &found[2])
    });
    replaced(r"(\d\d:\d\d:\d\d )(20\d\d)\]", &text, |found| {
        format!("{}{}]", &found[1], year(&found[2]))
    })
}

/// Moves all devices to other buses, the same everywhere. What is on bus 0 belongs to the board and
/// stays.
pub(crate) fn on_other_buses(text: &str) -> String {
    let long = r"\b([0-9a-fA-F]{4,8}:)([0-9a-fA-F]{2})(:[0-9a-fA-F]{2})\b";
    let text = replaced(long, text, |found| {
        // `00000000:01:00.0` is NVML's way.
        let capitals = found[1].len() == 9;
        format!("{}{}{}", &found[1], bus(&found[2], capitals), &found[3])
    });
    // `01:00.0`, as lspci and nvidia-smi print it where there is one domain.
    let short = r"(^|[\s(\[])([0-9a-fA-F]{2})(:[0-9a-fA-F]{2}\.[0-7])\b";
    let text = replaced(&format!("(?m){short}"), &text, |found| {
        format!("{}{}{}", &found[1], bus(&found[2], false), &found[3])
    });
    replaced(r"(?m)^(\s+Bus\s+: 0x)([0-9A-F]{2})$", &text, |found| {
        format!("{}{}", &found[1], bus(&found[2], true))
    })
}

/// A bus moves to another one, no two to the same. Tools write capitals, the kernel does not.
fn bus(digits: &str, capitals: bool) -> String {
    let number = u8::from_str_radix(digits, 16).unwrap();
    let moved = match number {
        0 | 0xc0 => number,
        other => other ^ 0xc0,
    };
    if capitals || digits.bytes().any(|byte| byte.is_ascii_uppercase()) {
        format!("{moved:02X}")
    } else {
        format!("{moved:02x}")
    }
}

/// Packages that no verdict may hang on, as `pip list` and reports write them.
const UNRELATED: [&str; 18] = [
    "gcc version",
    "gcc",
    "GCC version",
    "CMake version",
    "Libc version",
    "Python version",
    "Python",
    "podman version",
    "podman",
    "numpy",
    "pandas",
    "requests",
    "transformers",
    "onnxruntime",
    "torchvision",
    "systemd",
    "glibc",
    "Node.js",
];

/// The text among other versions of packages: those that it names, and a list before it.
pub(crate) fn with_other_packages(text: &str) -> String {
    let names = UNRELATED.join("|");
    let pattern = format!(r"(?m)\b({names})((?::? +|==|-)v?\d+\.\d+\.)(\d+)\b");
    let text = replaced(&pattern, text, |found| {
        let last: u64 = found[3].parse().unwrap();
        format!("{}{}{}", &found[1], &found[2], last + 3)
    });
    let list = "numpy==2.1.3\npandas==2.2.3\nrequests==2.32.3\ntransformers==4.46.2\ntqdm==4.67.0";
    format!("```\n{list}\n```\n\n{text}")
}
