//! What modprobe, insmod, modinfo, systemd and NVIDIA's installer say of a module that they could
//! not find or load.

use super::Line;
use super::pattern::{captures, group, matches, pattern};
use crate::model::Facts;
use crate::model::module_message::{ModuleMessage, Refusal};
use crate::observed::{Seen, clean_excerpt};
use crate::parse::proc_modules::canonical;

pattern! {
    /// `modprobe: FATAL: Module nvidia not found in directory /lib/modules/6.8.0-31-generic`,
    /// `modinfo: ERROR: Module nvidia not found.`, `Failed to find module 'nvidia'`.
    NOT_FOUND = r"(?i)\b(?:module ['‘]?(?P<a>nvidia[\w-]*)['’]? not found\b(?:[^\n/]{0,20}/(?:usr/)?lib/modules/(?P<kernel>[\w.+~-]+\w))?|failed to find module ['‘](?P<b>nvidia[\w-]*)['’]|could not find module by name(?:=| )['‘](?P<c>nvidia[\w-]*)['’])"
}
pattern! {
    /// `modprobe: ERROR: could not insert 'nvidia': Key was rejected by service`,
    /// `insmod: ERROR: could not insert module ./nvidia.ko: Invalid module format`,
    /// `Failed to insert module 'nvidia': No such device`.
    REFUSED = r#"(?i)\b(?:(?:could not|failed to|can(?:no|')t) (?:insert|load)(?: the)?(?: kernel)?(?: module)?|error inserting) ['"‘`]?(?P<module>[\w./+~-]*nvidia[\w.-]*?)['"’`]?(?: \([^)\n]{0,200}\))?\s?: (?P<reason>[A-Z][^\n]{3,80})"#
}
pattern! {
    /// `modprobe: ERROR: could not insert 'vboxdrv': Key was rejected by service`, and what people
    /// say of it without the name.
    OTHER_KEY = r#"(?i)(?:\b(?:insert|load)(?: module)? ['"‘`](?P<module>[\w./+~-]+)['"’`]\s?: |(?:^|[\s"'`:]))(?:Key was rejected by service|Required key not available)|\bmodules?(?: keys?)?\b[^.\n]{0,16}\b(?:gets?|got|are|is|were|was|being)\b[^.\n]{0,8}\b(?:rejected|refused)\b"#
}
pattern! {
    /// What the installer prints when the kernel wants a signature.
    INSTALLER_KEY = r"(?i)\bkernel module failed to load\b[^\n]{0,120}\b(?:must be signed|not signed|signed by a key|Secure Boot)\b|\b(?:so )?this module must be signed with a key\b"
}
pattern! {
    /// The installer's log: `-> Kernel module load error: Exec format error`.
    INSTALLER_REASON = r"\bKernel module load error: (?P<reason>[A-Z][^\n]{3,80})"
}
pattern! {
    INSTALLER_LOAD = r"(?i)\bERROR: Unable to load the (?:kernel module '?nvidia|'?nvidia[\w-]*'? kernel module)|\bCould not load GPU driver\b"
}

pattern! {
    /// A build of the open modules by somebody else, most often to force peer-to-peer access.
    PATCHED = r"(?i)\b(?:patched|community|modified|custom|tinygrad|aikitoria)\b[^.\n]{0,40}\b(?:p2p|nvidia|driver|(?:open-gpu-)?kernel[- ]modules?)\b|\b\d{3}\.\d{2,3}(?:\.\d{2})?-p2p\b|\bP2P (?:patch|fork|driver)\b"
}

pattern! {
    SECURE_BOOT_CURE = r"(?i)\b(?:disabl\w+|turn\w* off|switch\w* off|without)\b[^.\n]{0,24}\bsecure ?-?boot\b[^.\n]{0,40}\b(?:work\w*|fix\w*|solve\w*|load\w*|cure\w*|help\w*)\b"
}
pattern! {
    WANTS_OPEN = r"(?i)\b(?:requires?|needs?|only works? with|only supports?|is only supported by)\b[^.\n]{0,32}\bopen\b\W{1,6}(?:(?:source|gpu|nvidia)\W)?(?:kernel\W)?(?:modules?|drivers?)\b"
}
pattern! { REFUSES = r"(?i)\b(?:proprietary|closed|tesla|legacy)\b[^.\n]{0,40}\b(?:reject\w*|refus\w+|fail\w*|unsupported|not (?:support|load|work|init)\w*)|\b(?:reject\w*|refus\w+)\b[^.\n]{0,24}\bproprietary\b" }

pub(super) fn read(line: &Line<'_>, facts: &mut Facts) {
    let marks = [
        "nvidia",
        "NVIDIA",
        "signed",
        "load error",
        "ejected",
        "ey not available",
        "GPU driver",
        "GPU Driver",
    ];
    if !marks.iter().any(|word| line.has(word)) {
        return;
    }
    not_found(line, facts);
    if !refused(line, facts) {
        other_key(line, facts);
    }
    if let Some(reason) = group(&INSTALLER_REASON, line.text, "reason") {
        hear("nvidia", refusal(reason), line, facts);
    } else if matches(&INSTALLER_KEY, line.text) {
        hear("nvidia", Refusal::KeyMissing, line, facts);
    } else if matches(&INSTALLER_LOAD, line.text) {
        hear("nvidia", Refusal::Other, line, facts);
    }
}

/// What only prose tells: the build is not NVIDIA's own.
pub(super) fn read_prose(line: &Line<'_>, facts: &mut Facts) {
    let cures = |said: &str| matches(&SECURE_BOOT_CURE, said) && !said.trim_end().ends_with('?');
    if line.text.split(". ").flat_map(|part| part.split(", ")).any(cures) {
        facts.host.secure_boot_cure.get_or_insert_with(|| line.origin());
    }
    if line.has("open") && matches(&WANTS_OPEN, line.text) && matches(&REFUSES, line.text) {
        facts.module.open_wanted_told.get_or_insert_with(|| line.origin());
    }
    let marked = ["p2p", "P2P", "atch", "ommunity", "odified", "ustom", "tinygrad", "aikitoria"];
    if facts.module.patched_told.is_none()
        && marked.iter().any(|word| line.has(word))
        && matches(&PATCHED, line.text)
    {
        facts.module.patched_told = Some(Seen::new(clean_excerpt(line.text), line.origin()));
    }
}

fn not_found(line: &Line<'_>, facts: &mut Facts) {
    let Some(found) = captures(&NOT_FOUND, line.text) else { return };
    let name = ["a", "b", "c"].iter().find_map(|group| found.name(group));
    let module = canonical(name.map_or("", |name| name.as_str()));
    let kernel = found.name("kernel").map(|kernel| kernel.as_str().to_owned());
    facts.mentions_gpu = true;
    facts.module.hear(ModuleMessage::NotFound { module, kernel }, line.origin());
}

fn refused(line: &Line<'_>, facts: &mut Facts) -> bool {
    let Some(found) = captures(&REFUSED, line.text) else { return false };
    let (Some(module), Some(reason)) = (found.name("module"), found.name("reason")) else {
        return false;
    };
    hear(module.as_str(), refusal(reason.as_str()), line, facts);
    true
}

/// Modules that are built on the machine are signed with one key, so that what is said of one of
/// them tells something of the others.
fn other_key(line: &Line<'_>, facts: &mut Facts) {
    let Some(found) = captures(&OTHER_KEY, line.text).filter(|_| !line.has("load error")) else {
        return;
    };
    let module = found.name("module").map_or("", |module| module.as_str()).to_owned();
    facts.module.hear(ModuleMessage::OtherKeyRefused { module }, line.origin());
}

fn hear(module: &str, refusal: Refusal, line: &Line<'_>, facts: &mut Facts) {
    let file = module.rsplit('/').next().unwrap_or(module);
    let module = canonical(file.split(".ko").next().unwrap_or(file));
    facts.mentions_gpu = true;
    facts.module.hear(ModuleMessage::Refused { module, refusal }, line.origin());
}

/// The kernel's errors as the C library words them.
fn refusal(reason: &str) -> Refusal {
    const REASONS: [(&str, Refusal); 8] = [
        ("Key was rejected by service", Refusal::KeyRejected),
        ("Required key not available", Refusal::KeyMissing),
        ("Exec format error", Refusal::WrongFormat),
        ("Invalid module format", Refusal::WrongFormat),
        ("No such device", Refusal::NoDevice),
        ("Operation not permitted", Refusal::NotPermitted),
        ("Permission denied", Refusal::PolicyDenied),
        ("Unknown symbol in module", Refusal::UnknownSymbol),
    ];
    REASONS.iter().find(|(text, _)| reason.starts_with(text)).map_or(Refusal::Other, |row| row.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::loose::lines_of;

    fn messages(text: &str) -> Vec<ModuleMessage> {
        lines_of(text).module.messages.into_iter().map(|seen| seen.value).collect()
    }

    fn refused(module: &str, refusal: Refusal) -> Vec<ModuleMessage> {
        vec![ModuleMessage::Refused { module: module.to_owned(), refusal }]
    }

    #[test]
    fn every_pattern_compiles() {
        for pattern in [
            &NOT_FOUND,
            &REFUSED,
            &OTHER_KEY,
            &INSTALLER_KEY,
            &INSTALLER_REASON,
            &INSTALLER_LOAD,
            &PATCHED,
            &WANTS_OPEN,
            &SECURE_BOOT_CURE,
            &REFUSES,
        ] {
            assert!(pattern.is_some());
        }
    }

    #[test]
    fn a_module_that_is_not_there() {
        let not_found = |module: &str, kernel: Option<&str>| {
            vec![ModuleMessage::NotFound {
                module: module.to_owned(),
                kernel: kernel.map(str::to_owned),
            }]
        };
        assert_eq!(
            messages(
                "modprobe: FATAL: Module nvidia not found in directory /lib/modules/6.8.0-31-generic"
            ),
            not_found("nvidia", Some("6.8.0-31-generic"))
        );
        assert_eq!(messages("FATAL: Module nvidia not found."), not_found("nvidia", None));
        assert_eq!(
            messages("modinfo: ERROR: Module nvidia-uvm not found."),
            not_found("nvidia_uvm", None)
        );
        assert_eq!(
            messages("modprobe: ERROR: could not find module by name 'nvidia'"),
            not_found("nvidia", None)
        );
        assert_eq!(
            messages("systemd-modules-load[311]: Failed to find module 'nvidia-current'"),
            not_found("nvidia_current", None)
        );
    }

    #[test]
    fn a_module_that_the_kernel_refused() {
        assert_eq!(
            messages("modprobe: ERROR: could not insert 'nvidia': Key was rejected by service"),
            refused("nvidia", Refusal::KeyRejected)
        );
        assert_eq!(
            messages(
                "insmod: ERROR: could not insert module ./kernel-open/nvidia.ko: Invalid module format"
            ),
            refused("nvidia", Refusal::WrongFormat)
        );
        assert_eq!(
            messages(
                "FATAL: Error inserting nvidia (/lib/modules/3.10.0/extra/nvidia.ko): Required key not available"
            ),
            refused("nvidia", Refusal::KeyMissing)
        );
        assert_eq!(
            messages(
                "systemd-modules-load[301]: Failed to insert module 'nvidia-drm': No such device"
            ),
            refused("nvidia_drm", Refusal::NoDevice)
        );
    }

    #[test]
    fn the_installers_log_gives_the_reason() {
        assert_eq!(
            messages("-> Kernel module load error: Key was rejected by service"),
            refused("nvidia", Refusal::KeyRejected)
        );
        assert_eq!(
            messages("-> Kernel module load error: Exec format error"),
            refused("nvidia", Refusal::WrongFormat)
        );
    }

    #[test]
    fn the_keys_of_others() {
        let other =
            |module: &str| vec![ModuleMessage::OtherKeyRefused { module: module.to_owned() }];
        for (text, module) in [
            ("modprobe: ERROR: could not insert 'zfs': Key was rejected by service", "zfs"),
            ("none of the modules loads: \"Key was rejected by service\"", ""),
            ("all of them say Required key not available", ""),
        ] {
            assert_eq!(messages(text), other(module), "{text}");
        }
    }

    #[test]
    fn other_modules_and_talk_are_none() {
        for text in [
            "modprobe: FATAL: Module vboxdrv not found in directory /lib/modules/6.8.0",
            "the nvidia module was found and loaded",
        ] {
            assert_eq!(messages(text), [], "{text}");
        }
    }
}
