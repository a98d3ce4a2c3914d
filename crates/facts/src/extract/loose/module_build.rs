//! Builds of the kernel module that failed: DKMS, akmods, NVIDIA's installer, and the compiler's own
//! messages in make.log.

use super::Line;
use super::pattern::{Lazy, captures, group, matches, pattern};
use crate::model::Facts;
use crate::model::module_message::{BuildFault, DkmsRow, ModuleMessage};
use crate::observed::Seen;

pattern! {
    /// DKMS: `Error! Bad return status for module build on kernel: 6.4.6-1 (x86_64)`.
    DKMS_BUILD = r"(?i)\bbad return status for module build on kernel:?\s*(?P<kernel>[\w.+~-]+)?"
}
pattern! {
    /// Failures that name nvidia: DKMS's autoinstall, the installer, akmods.
    NVIDIA_BUILD = r"(?i)\bautoinstall on (?P<kernel>[\w.+~-]+)\S* failed for [^\n]*\bnvidia|\bFailed to run [`'][^`'\n]*dkms build[^`'\n]*-m nvidia(?:[^`'\n]*?-k (?P<k>[\w.+~-]+))?[^\n]*[`']|\bUnable to build the NVIDIA kernel module|\bnvidia kernel module was not created|\bnvidia(?:-uvm|-drm|-modeset)?\.ko failed to build\b|\bBuilding and installing nvidia-kmod\b[^\n]*\bFAILED\b|\bBuilding kmod-nvidia\S* for kernel (?P<akmod>[\w.+~-]+) failed|/var/lib/dkms/nvidia[\w.-]*/[^\s/]+/build/make\.log for more|^\*\*\* Failed [\w ]{2,40} check\. Bailing out!|\bmake(?:\[\d+\])?: \*\*\* \[[^\]\n]*/(?:nvidia[\w./-]*\.o|(?:dkms|src)/nvidia[\w.-]*/[^\]\n]*)\] Error \d"
}
pattern! {
    /// What a person says of it.
    TOLD = r"(?i)\bnvidia\b[^.\n]{0,20}\b(?:(?:kernel )?modules?|dkms)\b[^.\n]{0,24}\b(?:doesn[’']?t|does not|won[’']?t|will not|fails? to|failed to|can[’']?t|cannot|unable to) (?:be )?(?:build|built|compiled?)\b|\bnvidia\b[^.\n]{0,20}\bdrivers?\b[^.\n]{0,16}\b(?:doesn[’']?t|does not|won[’']?t|fails? to|failed to) build\b"
}
pattern! {
    /// `Your kernel headers for kernel 6.4.6 cannot be found at …`, and the installer's.
    HEADERS = r"(?i)\bkernel headers for kernel (?P<kernel>[\w.+~-]*\w) cannot be found|\bUnable to find the kernel source tree for the currently running kernel|\bmodule build for kernel (?P<k>[\w.+~-]+) was skipped since the kernel headers"
}
pattern! {
    /// Installing the headers is said to have put it right.
    HEADERS_CURE = r"(?i)\b(?:fix(?:e[sd]|ing)?|solve[sd]?|works?|worked|resolve[sd]?|cure[sd]?|help(?:s|ed))\b[^.\n]{0,60}\binstall(?:ing)? (?:-y )?(?:linux-headers|kernel-(?:devel|headers)|proxmox-headers|pve-headers)|\binstall(?:ing|ed)? (?:-y )?(?:linux-headers|kernel-(?:devel|headers)|proxmox-headers|pve-headers)\S*[^.\n]{0,40}\b(?:fixe[sd]|solved?|works?|worked|resolved?|cured|help(?:s|ed))\b"
}
pattern! { HEADERS_IN_VAIN = r"(?i)\b(?:not|n['’]t|no|never|without)\b|n['’]t\b|\?" }
pattern! {
    /// A file of the driver's source, as compilers and make name it before a colon.
    OF_NVIDIA = r"(?:^|[\s/('`])(?:[\w.+~/-]*nvidia[\w.+~/-]*|nv|nv[-_][\w-]+|nv(?:link|kms)\w*|os-(?:interface|mlock|pci|registry|usermap)|uvm\w*|\w*nvswitch\w*)(?:\.[choS]|/)"
}
pattern! {
    ERROR = r"^[^\n]*?\.[chS]:\d+:(?:\d+:)? (?:fatal )?error: (?P<message>[^\n]+)"
}
pattern! { HEADER = r"^['‘]?(?P<file>[\w./-]+\.h)['’]?: No such file or directory" }
pattern! {
    INTERFACE = r"(?i)implicit declaration of function|\bundeclared\b|has no member named|too (?:few|many) arguments to function|incompatible (?:pointer )?type|incompatible function pointer|conflicting types|unknown type name|redefinition of|dereferencing pointer to incomplete|storage size of|initiali[sz]er element|invalid use of undefined|passing argument"
}
pattern! {
    FLAG = r"(?i)\b(?:gcc|cc|clang|cc1)(?:-[\d.]+)?: (?:fatal )?error: (?:unrecognized command[- ]line option|unknown argument:?|unsupported option) ?['‘`]?(?P<flag>-[\w=+.-]+)"
}
pattern! { CHECK = r"(?i)\bcompiler version check failed\b|does not match the compiler used here" }
pattern! { NO_COMPILER = r"(?i)\b(?P<name>(?:x86_64-linux-gnu-|aarch64-linux-gnu-)?(?:gcc|clang)(?:-\d+)?): (?:No such file or directory|(?:command )?not found)" }
pattern! { LICENCE = r"(?i)\bGPL-incompatible module nvidia[\w.-]* uses GPL-only symbol '?(?P<symbol>\w+)" }
pattern! { DIFFERS = r"(?i)\bthe compiler differs from the one used to build the kernel" }
pattern! {
    /// `nvidia/535.98, 6.2.6-76060206-generic, x86_64: installed`, `nvidia, 470.57, 5.4.0, x86_64:
    /// installed`, `nvidia/590.48.01: added`.
    DKMS_ROW = r"^\s*(?:[-*>]\s+)?`?(?P<name>nvidia(?:-(?:current|open|srv|tesla|legacy|kernel|driver|kmod)[\w.-]*|-\d+[\w-]*)?)(?:/|, )(?P<version>[\d.]+[\w.~-]*)(?:, (?P<kernel>\d[\w.+~-]+), [\w-]+)?: (?P<state>added|built|installed|broken)"
}

/// Words of which each message holds one; a line without any is passed over at little cost.
const MARKS: [&str; 13] = [
    "error: ",
    "Error!",
    "ERROR:",
    "*** [",
    "nvidia",
    "NVIDIA",
    "ompiler",
    "gcc",
    "clang",
    "headers",
    "kernel source",
    "ad return",
    "Bailing out",
];

pub(super) fn read(line: &Line<'_>, facts: &mut Facts) {
    if !MARKS.iter().any(|word| line.has(word)) {
        return;
    }
    failures(line, facts);
    if let Some(fault) = fault(line.text) {
        let of_nvidia =
            matches(&OF_NVIDIA, line.text) || matches!(fault, BuildFault::LicensedSymbol(_));
        facts.module.hear(ModuleMessage::BuildFault { fault, of_nvidia }, line.origin());
    }
    if matches(&DIFFERS, line.text) {
        facts.module.hear(ModuleMessage::CompilerDiffers, line.origin());
    }
    dkms_row(line, facts);
}

fn failures(line: &Line<'_>, facts: &mut Facts) {
    let mut failed = |kernel: Option<String>, of_nvidia: bool| {
        facts.mentions_gpu |= of_nvidia;
        facts.module.hear(ModuleMessage::BuildFailed { kernel, of_nvidia }, line.origin());
    };
    if let Some(found) = captures(&NVIDIA_BUILD, line.text) {
        let kernel = ["kernel", "k", "akmod"].iter().find_map(|group| found.name(group));
        failed(kernel.map(|kernel| kernel.as_str().to_owned()), true);
    } else if matches(&TOLD, line.text) {
        failed(None, true);
    } else if let Some(found) = captures(&DKMS_BUILD, line.text) {
        let kernel = found.name("kernel").map(|kernel| kernel.as_str().to_owned());
        failed(kernel, line.text.to_lowercase().contains("nvidia"));
    }
    if matches(&HEADERS_CURE, line.text) && !matches(&HEADERS_IN_VAIN, line.text) {
        facts.module.hear(ModuleMessage::HeadersMissing { kernel: None }, line.origin());
    }
    if let Some(found) = captures(&HEADERS, line.text) {
        let kernel = found.name("kernel").or_else(|| found.name("k"));
        let kernel = kernel.map(|kernel| kernel.as_str().to_owned());
        facts.module.hear(ModuleMessage::HeadersMissing { kernel }, line.origin());
    }
}

/// What stopped a compiler, when it is of the kinds that builds of kernel modules meet.
fn fault(text: &str) -> Option<BuildFault> {
    let named = |pattern: &Lazy, name: &str| group(pattern, text, name).map(str::to_owned);
    if let Some(message) = group(&ERROR, text, "message") {
        if let Some(file) = group(&HEADER, message, "file") {
            return Some(BuildFault::Header(file.to_owned()));
        }
        let message = crate::observed::clean_excerpt(message);
        return matches(&INTERFACE, &message).then_some(BuildFault::Interface(message));
    }
    if let Some(flag) = named(&FLAG, "flag") {
        return Some(BuildFault::CompilerFlag(flag));
    }
    if matches(&CHECK, text) {
        return Some(BuildFault::CompilerCheck);
    }
    if let Some(symbol) = named(&LICENCE, "symbol") {
        return Some(BuildFault::LicensedSymbol(symbol));
    }
    named(&NO_COMPILER, "name").map(BuildFault::CompilerMissing)
}

fn dkms_row(line: &Line<'_>, facts: &mut Facts) {
    const LIMIT: usize = 64;
    let Some(found) = captures(&DKMS_ROW, line.text) else { return };
    let text = |name: &str| found.name(name).map(|group| group.as_str().to_owned());
    let (Some(name), Some(version), Some(state)) = (text("name"), text("version"), text("state"))
    else {
        return;
    };
    let row = DkmsRow { name, version, kernel: text("kernel"), state };
    if facts.module.dkms.len() < LIMIT && !facts.module.dkms.iter().any(|seen| seen.value == row) {
        facts.mentions_gpu = true;
        facts.module.dkms.push(Seen::new(row, line.origin()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::loose::lines_of;

    fn messages(text: &str) -> Vec<ModuleMessage> {
        lines_of(text).module.messages.into_iter().map(|seen| seen.value).collect()
    }

    fn fault_of(text: &str) -> Option<(BuildFault, bool)> {
        messages(text).into_iter().find_map(|message| match message {
            ModuleMessage::BuildFault { fault, of_nvidia } => Some((fault, of_nvidia)),
            _ => None,
        })
    }

    #[test]
    fn headers_that_were_the_cure() {
        let told = |text: &str| lines_of(text).module.messages.len();
        for text in [
            "I found a way to manually fix the issue by running: apt-get install linux-headers-$(uname -r)",
            "Installing linux-headers-6.8.0-31-generic fixed it.",
        ] {
            assert_eq!(told(text), 1, "{text}");
        }
        for text in [
            "Installing linux-headers-6.8.0-31-generic did not help.",
            "apt install linux-headers-amd64 nvidia-driver",
        ] {
            assert_eq!(told(text), 0, "{text}");
        }
    }

    #[test]
    fn every_pattern_compiles() {
        for pattern in [
            &DKMS_BUILD,
            &NVIDIA_BUILD,
            &TOLD,
            &HEADERS,
            &HEADERS_CURE,
            &HEADERS_IN_VAIN,
            &OF_NVIDIA,
            &ERROR,
            &HEADER,
            &INTERFACE,
            &FLAG,
            &CHECK,
            &NO_COMPILER,
            &LICENCE,
            &DIFFERS,
            &DKMS_ROW,
        ] {
            assert!(pattern.is_some());
        }
    }

    #[test]
    fn failed_builds() {
        assert!(messages("make[2]: *** [scripts/Makefile.build:243: /var/lib/dkms/nvidia/535.98/build/nvidia/nv.o] Error 1").contains(&ModuleMessage::BuildFailed { kernel: None, of_nvidia: true }));
        assert!(
            messages("*** Failed PREEMPT_RT sanity check. Bailing out! ***")
                .contains(&ModuleMessage::BuildFailed { kernel: None, of_nvidia: true })
        );
        assert!(messages("make[2]: *** [/var/lib/dkms/nvidia/390.87/build/Kbuild:180: cc_version_check] Error 1").contains(&ModuleMessage::BuildFailed { kernel: None, of_nvidia: true }));
        let failed = |kernel: Option<&str>, of_nvidia| {
            vec![ModuleMessage::BuildFailed { kernel: kernel.map(str::to_owned), of_nvidia }]
        };
        assert_eq!(
            messages(
                "Error! Bad return status for module build on kernel: 6.4.6-76060406-generic (x86_64)"
            ),
            failed(Some("6.4.6-76060406-generic"), false)
        );
        assert_eq!(
            messages(
                "Consult /var/lib/dkms/nvidia-current/535.216.03/build/make.log for more information."
            ),
            failed(None, true)
        );
        assert_eq!(
            messages("dkms autoinstall on 6.17.0-5-generic/x86_64 failed for nvidia(10)"),
            failed(Some("6.17.0-5-generic"), true)
        );
        assert_eq!(
            messages(
                "ERROR: Failed to run `/usr/sbin/dkms build -m nvidia -v 535.98 -k 6.5.0-14-generic`: Error!"
            ),
            failed(Some("6.5.0-14-generic"), true)
        );
        assert_eq!(
            messages(
                "Error! Your kernel headers for kernel 6.8.0-31-generic cannot be found at /lib/modules/6.8.0-31-generic/build"
            ),
            [ModuleMessage::HeadersMissing { kernel: Some("6.8.0-31-generic".to_owned()) }]
        );
    }

    #[test]
    fn what_stopped_the_compiler() {
        let interface =
            |message: &str, of_nvidia| Some((BuildFault::Interface(message.to_owned()), of_nvidia));
        assert_eq!(
            fault_of(
                "os-mlock.c:42:12: error: implicit declaration of function 'follow_pfn'; did you mean 'follow_pte'?"
            ),
            interface(
                "implicit declaration of function 'follow_pfn'; did you mean 'follow_pte'?",
                true
            )
        );
        assert_eq!(
            fault_of(
                "/var/lib/dkms/nvidia/470.256.02/build/nvidia-drm/nvidia-drm-drv.c:88:10: fatal error: drm/drmP.h: No such file or directory"
            ),
            Some((BuildFault::Header("drm/drmP.h".to_owned()), true))
        );
        assert_eq!(
            fault_of("gcc: error: unrecognized command-line option '-ftrivial-auto-var-init=zero'"),
            Some((BuildFault::CompilerFlag("-ftrivial-auto-var-init=zero".to_owned()), false))
        );
        assert_eq!(
            fault_of(
                "FATAL: modpost: GPL-incompatible module nvidia.ko uses GPL-only symbol 'rcu_read_unlock_strict'"
            ),
            Some((BuildFault::LicensedSymbol("rcu_read_unlock_strict".to_owned()), true))
        );
        assert_eq!(
            fault_of("/bin/sh: 1: gcc-12: not found"),
            Some((BuildFault::CompilerMissing("gcc-12".to_owned()), false))
        );
    }

    #[test]
    fn other_peoples_builds_are_not_the_drivers() {
        let fault = fault_of("csrc/fused.c:12:3: error: implicit declaration of function 'foo'");
        assert_eq!(fault.map(|(_, of_nvidia)| of_nvidia), Some(false));
        let fault = fault_of("util/os-posix.c:12:3: error: implicit declaration of function 'foo'");
        assert_eq!(fault.map(|(_, of_nvidia)| of_nvidia), Some(false));
        assert_eq!(messages("the NVIDIA driver failed to compile the shader"), []);
        assert_eq!(fault_of("main.cpp:3:1: error: expected ';' before '}' token"), None);
    }

    #[test]
    fn rows_of_dkms() {
        let rows = |text: &str| -> Vec<(String, Option<String>, String)> {
            let rows = lines_of(text).module.dkms;
            rows.into_iter()
                .map(|row| (row.value.name, row.value.kernel, row.value.state))
                .collect()
        };
        let row = |name: &str, kernel: Option<&str>, state: &str| {
            vec![(name.to_owned(), kernel.map(str::to_owned), state.to_owned())]
        };
        assert_eq!(
            rows("nvidia/535.98, 6.2.6-76060206-generic, x86_64: installed"),
            row("nvidia", Some("6.2.6-76060206-generic"), "installed")
        );
        assert_eq!(
            rows("nvidia-current, 470.57.02, 5.10.0-8-amd64, x86_64: installed"),
            row("nvidia-current", Some("5.10.0-8-amd64"), "installed")
        );
        assert_eq!(rows("nvidia/590.48.01: added"), row("nvidia", None, "added"));
        assert!(rows("nvidia-fs/2.20.5, 6.8.0-31-generic, x86_64: installed").is_empty());
    }
}
