//! The way between GPUs as lspci, the kernel's command line and a description of a guest tell it,
//! wherever they stand.

use super::Line;
use super::pattern::{group, matches, pattern};
use crate::extract::places::Places;
use crate::model::Facts;
use crate::observed::{Observed, Seen};
use crate::parse::acs;
use crate::raw::RawItem;

pattern! { COMMAND_LINE = r"(?:\b(?:Kernel )?[Cc]ommand line:|^\s*GRUB_CMDLINE_LINUX(?:_DEFAULT)?=|^\s*BOOT_IMAGE=|^\s*options root=)\s*(?P<words>.*)$" }
pattern! {
    /// The report is about a virtual machine with a GPU inside.
    GUEST = r"(?i)\b(?:in|inside|within|to|into|of) (?:a |an |the |my |our |each |one )?(?:\w+ )?(?:VMs?|guests?|virtual machines?)\b|\b(?:KVM|QEMU|QEMU/KVM|Proxmox|ESXi|libvirt|VMware|Xen|Hyper-V|vSphere) (?:VMs?|guests?|virtual machines?)\b|\b(?:guest|VM)\s*:|\bGPU (?:passthrough|pass-through)\b"
}
pattern! { NO_GUEST = r"(?i)\bbare[- ]metal\b|\b(?:not|no|isn['’]t|without|instead of|rather than|moved|from)\b.{0,12}\b(?:VMs?|guests?|virtual machines?|KVM|passthrough)\b" }

/// Reads one line.
pub(super) fn read(line: &Line<'_>, prose: bool, facts: &mut Facts) {
    if let Some(words) = group(&COMMAND_LINE, line.text, "words") {
        let words = words.trim_matches(['"', '\'']);
        let kept = crate::parse::cmdline::words_that_matter(words);
        facts.host.cmdline.or_better(Observed::seen(kept, line.origin()));
    }
    if prose
        && !facts.p2p.guest_told.is_seen()
        && matches(&GUEST, line.text)
        && !matches(&NO_GUEST, line.text)
    {
        facts.p2p.guest_told = Observed::seen((), line.origin());
    }
}

/// Access control of ports anywhere in a text.
pub(super) fn ports(item: &RawItem, text: &str, facts: &mut Facts) {
    if !text.contains("ACSCtl") {
        return;
    }
    let places = Places::new(item, text);
    for found in acs::parse(text) {
        let origin = places.at(found.line);
        facts.p2p.ports.push(Seen::new(found.value, origin));
    }
}

#[cfg(test)]
mod tests {
    use super::super::lines_of;

    #[test]
    fn command_lines_guests_and_ports() {
        let facts = lines_of(
            "[    0.000000] Command line: BOOT_IMAGE=/vmlinuz root=/dev/sda intel_iommu=on",
        );
        assert_eq!(facts.host.cmdline.value().map(Vec::len), Some(1));
        for (line, guest) in [
            ("8 GPUs in a KVM guest", true),
            ("Inside the VM nvidia-smi works", true),
            ("this is bare metal, not in a VM", false),
            ("moved from the VM to the host", false),
        ] {
            assert_eq!(lines_of(line).p2p.guest_told.is_seen(), guest, "{line}");
        }
        assert_eq!(lines_of("\t\tACSCtl:\tSrcValid+ ReqRedir+ CmpltRedir+").p2p.ports.len(), 1);
    }
}
