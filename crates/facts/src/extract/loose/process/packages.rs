//! Packages of a Linux driver: rows of dpkg, apt and rpm, and commands that install one.

use super::super::Line;
use super::super::pattern::{captures, matches, pattern};
use super::{LIMIT, push};
use crate::model::Facts;
use crate::observed::Seen;
use crate::version::DriverVersion;

pattern! {
    NAME = r"(?P<name>\b(?:libnvidia-compute-\d{3}[\w\-]*|nvidia-driver-\d{3}[\w\-]*|nvidia-utils-\d{3}[\w\-]*|nvidia-headless-[\w\-]*\d{3}[\w\-]*|nvidia-compute-utils-\d{3}[\w\-]*|libcuda1|libnvidia-ml1|cuda-drivers(?:-\d{3})?|cuda-compat-\d{1,2}-\d{1,2}|nvidia-driver-cuda-libs|nvidia-driver-libs|nvidia-libopencl1-\d{3})\b)"
}
pattern! {
    /// A row of `dpkg -l`, `apt list --installed` or `rpm -qa`.
    INSTALLED = r"^\s*(?:ii|hi)\s|\[installed|,now |^\s*[\w.\-+]+-\d[\w.~+]*-\d[\w.]*\.(?:x86_64|aarch64)\s*$"
}
pattern! { COMMAND = r"(?i)\b(?:apt(?:-get)?|dnf|yum|zypper|aptitude)\b[^\n]{0,40}\binstall\b|\binstalled\b" }
pattern! { TAKEN_OUT = r"(?i)\b(?:purg|remov|uninstall|delet)\w*|\bnot installed\b|\bnever installed\b" }

pattern! {
    /// `ii  nvidia-smi  525.85.12-1`, `libnvidia-ml1/stable,now 535.183.01-1`,
    /// `nvidia-driver-cuda-libs-570.86.15-1.el9`, `nvidia-utils 570.86.16-2`: a package with the
    /// driver's libraries or tools, and its version.
    VERSIONED = r"^\s*(?:(?:ii|hi)\s+)?(?P<name>libnvidia-compute-\d{3}[\w\-]*?|nvidia-utils(?:-\d{3}[\w\-]*?)?|nvidia-compute-utils-\d{3}[\w\-]*?|libcuda1|libnvidia-ml1|nvidia-smi|nvidia-driver-cuda-libs|nvidia-driver-libs|xorg-x11-drv-nvidia-cuda-libs)(?::amd64)?(?:\s+|/\S+\s+|-)(?:\d:)?(?P<version>\d{3}\.\d{2,3}(?:\.\d{2})?)(?:-\S|\s|$)"
}

/// Enters the driver's packages that the line shows.
pub(super) fn read(line: &Line<'_>, facts: &mut Facts) {
    versioned(line, facts);
    let Some(found) = captures(&NAME, line.text) else { return };
    let there = matches(&INSTALLED, line.text) || matches(&COMMAND, line.text);
    if there && !matches(&TAKEN_OUT, line.text) {
        facts.mentions_gpu = true;
        push(&mut facts.library.driver_packages, found["name"].to_owned(), line);
    }
}

fn versioned(line: &Line<'_>, facts: &mut Facts) {
    if !(line.has("nvidia") || line.has("libcuda1")) || line.has("[residual-config]") {
        return;
    }
    let Some(found) = captures(&VERSIONED, line.text) else { return };
    let Some(version) = DriverVersion::parse(&found["version"]) else { return };
    let known = &mut facts.library.package_versions;
    if known.len() < LIMIT {
        facts.mentions_gpu = true;
        known.push(Seen::new((found["name"].to_owned(), version), line.origin()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::loose::lines_of;

    #[test]
    fn versions_of_packages() {
        assert!(VERSIONED.is_some());
        for (text, version) in [
            (
                "ii  nvidia-smi     525.85.12-1  amd64        NVIDIA System Management Interface",
                "525.85.12",
            ),
            ("ii  libnvidia-compute-535:amd64   535.183.01-0ubuntu0.22.04.1   amd64", "535.183.01"),
            ("libnvidia-ml1/stable,now 535.183.01-1 amd64 [installed]", "535.183.01"),
            ("nvidia-driver-cuda-libs-570.86.15-1.el9.x86_64", "570.86.15"),
            ("nvidia-utils 570.86.16-2", "570.86.16"),
        ] {
            let facts = lines_of(text);
            let seen: Vec<_> =
                facts.library.package_versions.iter().map(|at| at.value.1.to_string()).collect();
            assert_eq!(seen, [version], "{text}");
        }
        for text in
            ["rc  nvidia-smi  525.85.12-1  amd64", "cuda-drivers 570.86.15", "nvidia-smi 570"]
        {
            assert!(lines_of(text).library.package_versions.is_empty(), "{text}");
        }
    }

    #[test]
    fn rows_and_commands() {
        assert!([&NAME, &INSTALLED, &COMMAND, &TAKEN_OUT].iter().all(|pattern| pattern.is_some()));
        for text in [
            "ii  libnvidia-compute-535:amd64   535.183.01-0ubuntu0.22.04.1   amd64   NVIDIA libcompute package",
            "libnvidia-compute-550/jammy-updates,now 550.120-0ubuntu0.22.04.1 amd64 [installed,automatic]",
            "sudo apt install nvidia-driver-535",
            "nvidia-driver-cuda-libs-570.86.15-1.el9.x86_64",
        ] {
            assert_eq!(lines_of(text).library.driver_packages.len(), 1, "{text}");
        }
        for text in ["apt purge libnvidia-compute-535", "rc  nvidia-driver-535  535.1 amd64"] {
            assert!(lines_of(text).library.driver_packages.is_empty(), "{text}");
        }
    }
}
