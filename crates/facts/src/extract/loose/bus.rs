//! The way between GPUs as lspci, the kernel's command line and a description of a guest tell it,
//! wherever they stand.

use super::Line;
use super::pattern::{group, matches, pattern};
use crate::model::Facts;
use crate::observed::{Observed, Seen};
use crate::parse::acs;
use crate::raw::RawItem;

pattern! { COMMAND_LINE = r"(?:\b(?:Kernel )?[Cc]ommand line:|^\s*GRUB_CMDLINE_LINUX(?:_DEFAULT)?=|^\s*BOOT_IMAGE=|^\s*options root=)\s*(?P<words>.*)$" }
pattern! {
    /// The report is about a virtual machine with a GPU inside.
    GUEST = r"(?i)\b(?:in|inside|within|to|into|of) (?:a |an |the |my |our |each |one )?(?:\w+ )?(?:VMs?|guests?|virtual machines?)\b|\b(?:KVM|QEMU|QEMU/KVM|Proxmox|ESXi|libvirt|VMware|Xen|Hyper-V|vSphere) (?:VMs?|guests?|virtual machines?)\b|\b(?:guest|VM)\s*:|\bGPU (?:passthrough|pass-through)\b"
}
pattern! { HYPERVISOR = r"(?i)\bhypervisor(?: vendor)?\s*[:=]\s*(?P<name>\w[\w/\-]*)" }

/// Reads one line.
pub(super) fn read(line: &Line<'_>, prose: bool, facts: &mut Facts) {
    if let Some(words) = group(&COMMAND_LINE, line.text, "words") {
        let words = words.trim_matches(['"', '\'']);
        let kept = crate::parse::cmdline::words_that_matter(words);
        facts.host.cmdline.or_better(Observed::seen(kept, line.origin()));
    }
    if !prose || facts.host.hypervisor.is_seen() {
        return;
    }
    if let Some(name) = group(&HYPERVISOR, line.text, "name") {
        facts.host.hypervisor = Observed::seen(name.to_lowercase(), line.origin());
    } else if matches(&GUEST, line.text) && !super::peers::hypothetical(line.text) {
        facts.host.hypervisor = Observed::seen("unknown".to_owned(), line.origin());
    }
}

/// Access control of ports anywhere in a text.
pub(super) fn ports(item: &RawItem, text: &str, facts: &mut Facts) {
    if !text.contains("ACSCtl") {
        return;
    }
    for found in acs::parse(text) {
        let origin = item.origin_of_line(found.line);
        facts.p2p.ports.push(Seen::new(found.value, origin));
    }
}
