//! The machine around the GPU in texts: guests, confidential computing, vGPU, handing GPUs over.

use super::Line;
use super::pattern::{Lazy, captures, group, matches, pattern};
use crate::model::Facts;
use crate::model::platform::{LicenseWord, VgpuSide};
use crate::observed::{Observed, Seen, clean_excerpt};
use crate::version::DriverVersion;

pattern! {
    /// What the kernel, lscpu, hostnamectl and dmidecode print in a guest.
    HYPERVISOR = r"(?i)\bHypervisor detected: (?P<kernel>[\w][\w -]{1,24})|\bHypervisor vendor:\s*(?P<lscpu>\w+)|\bDMI: (?P<dmi>QEMU|VMware|Xen|Microsoft Corporation Virtual|innotek|OpenStack|KubeVirt)|^\s*Virtualization: (?P<ctl>kvm|vmware|microsoft|xen|oracle|qemu|amazon|google)\s*$|\bManufacturer: (?P<maker>QEMU|VMware|Xen|innotek)"
}
pattern! {
    /// A guest, in the words of a person.
    GUEST = r"(?i)\b(?:inside|in|into|to|within|for|from) (?:a|an|the|my|our|this|one|each|every|any)?\s*(?:[\w.\-/]+ ){0,3}(?:VMs?|guests?|virtual machines?)\b|\bguest(?: OS| VM| kernel)?:\s|\b(?:hypervisor|guest)\s*:\s*\S|\b(?:virtuali[sz]ed|virtual machines?|VMs?|nodes?|workers?|machines?|instances?)\b[^.\n]{0,40}\b(?:on|in|under|by) (?:top of )?(?:our |an? |the )?(?:OpenStack|Proxmox|VMware|vSphere|ESXi|KubeVirt|Harvester|oVirt|XCP-ng|Hyper-V|libvirt|KVM|QEMU)\b|\bGPU passthrough\b|\bpassed[- ]through\b|\bpci[- ]?passthrough\b|\bOVMF\b|\bq35\b|\bSeaBIOS\b"
}
pattern! { CC_STATE = r"(?i)\b(?:CC|Confidential Comput(?:e|ing)) (?:status|state|feature|mode)\s*(?::|=|is)\s*(?P<state>ON|OFF|enabled|disabled)\b" }
pattern! { CC_READY = r"(?i)\bGPUs? Ready State\s*(?::|=|is)\s*(?P<state>not[- ]?ready|ready)\b|\bconf-compute -grs\b[^\n]{0,40}\b(?P<told>not[- ]?ready|ready)\b|\bready state\b[^\n]{0,20}\b(?P<said>not[- ]?ready)\b" }
pattern! { CC_TOLD = r"(?i)\bconfidential (?:comput\w*|VMs?|guests?|containers?)\b|\bCC[- ](?:mode|on)\b|\bconf-compute\b|\bSEV-SNP\b|\bTDX (?:guest|VM)\b" }
pattern! {
    /// It works once the GPU is declared ready, in either order of the words.
    CC_CURED = r"(?i)\b(?:works?|worked|working|succeeds|succeeded|runs|fine|cure[sd]|fixe[sd]|solve[sd]|did the trick|success\w*)\b[^\n]{0,80}(?:-srs[ =]1|set-gpus-ready-state)|(?:-srs[ =]1|set-gpus-ready-state)\b[^\n]{0,80}\b(?:works?|worked|working|succeeds|succeeded|runs|fine|cure[sd]|fixe[sd]|solve[sd]|did the trick|success\w*)\b"
}
pattern! { DENIED = r"(?i)\b(?:not|never|still|without|no longer|fails?|failed)\b|n['’]t\b" }
pattern! { VGPU = r"(?i)\bvGPUs?\b|\bnvidia-gridd\b|\bnvidia-vgpu(?:d|-mgr)?\b|\bvgpu-kvm\b|\bGRID [A-Z]+\d+\w*-\d|\bNVIDIA [A-Z]+\d+\w*(?:-\d)?-\d+[ABCQ](?:ME)?\b|-grid\.run\b|\bvmiop_log\b" }
pattern! { VGPU_HOST = r"(?i)\bvGPU (?:host|manager)\b|\bnvidia-vgpu(?:d|-mgr)\b|\bvgpu-kvm\b|\bHost VGPU\b|\bvmiop_log\b" }
pattern! { VGPU_GUEST = r"(?i)\bvGPU guest\b|\bnvidia-gridd\b|\bvGPU\b[^.\n]{0,30}\b(?:in|inside) (?:a|the) [^.\n]{0,20}\b(?:VM|guest|instance)\b|\bVM\b[^.\n]{0,20}\b(?:with|has) (?:a|an) vGPU\b|\bGRID [A-Z]+\d+\w*-\d|-\d+[ABCQ]\b[^\n]{0,8}(?:On|Off)\b" }
pattern! {
    /// What nvidia-gridd logs, and the state that tools show.
    GRIDD_BAD = r"(?i)nvidia-gridd.{0,40}?(?:failed to (?:acquire|renew|register|update|read|parse|connect)|unlicensed|licen[sc]e not found|expired|not licensed|invalid feature type|unable to|no valid|returned error)|\bFailed to acquire (?:a )?(?:vGPU )?licen[sc]e\b|\blicen[sc]e state:? Unlicensed"
}
pattern! { GRIDD_GOOD = r"(?i)licen[sc]e (?:acquired|renewed) successfully|\bAcquired licen[sc]e\b" }
pattern! { LICENSE_TOLD = r"(?i)\b(?:licen[sc](?:e|ing)\b[^.\n]{0,60}\b(?:could not|couldn['’]t|cannot|can['’]t|failed|fails?|unable|expired|lost|unreachable|invalid|revoked|denied|timed out|missing|not (?:obtained|acquired|available))|(?:could not|couldn['’]t|cannot|can['’]t|failed to|unable to|without|no|lost)\b[^.\n]{0,40}\blicen[sc]e\b|unlicensed)\b" }
pattern! { REFUSAL = r"(?i)\bIncompatible Guest/Host drivers\b|\bGuest (?:driver|VGP?[UX] version)\b[^\n]{0,60}\b(?:older|newer|incompatible|not compatible|mismatch|not supported)\b|\bHost VG[PX]U? version\b[^\n]{0,60}\b(?:older|newer|incompatible)\b|\bvGPU\b[^.\n]{0,40}\b(?:version mismatch|incompatible (?:guest|host|driver))" }
pattern! { VMIOP_VERSION = r"(?i)\bvmiop_log: Driver Version:\s*(?P<version>\d{3}\.[\d.]*\d)" }
pattern! { UNBIND = r"(?i)\b(?:unbind\w*|nodedev-detach|driverctl|rebind\w*|detach\w*|driver/unbind)\b(?:[^.\n]|\.\w){0,60}\b(?:hangs?|hung|stuck|blocks?|blocked|never returns?|does not return|doesn['’]t return|freezes)\b|\b(?:hangs?|hung|stuck|blocked)\b(?:[^.\n]|\.\w){0,30}\b(?:unbind\w*|nodedev-detach|driver/unbind)\b" }
pattern! { VFIO = r"(?i)\b(?:is )?(?:already )?bound to vfio-pci\b|\bdrivers/vfio-pci\s*$" }

const LIMIT: usize = 64;

pub(super) fn read(line: &Line<'_>, prose: bool, facts: &mut Facts) {
    hypervisor(line, facts);
    confidential(line, facts);
    vgpu(line, facts);
    if matches(&VFIO, line.text) && !line.has("NVRM:") {
        keep(line, &mut facts.platform.vfio_told);
    }
    if prose {
        if matches(&GUEST, line.text) && !line.has("://") {
            guest(line, facts);
        }
        if matches(&UNBIND, line.text) {
            facts.mentions_gpu = true;
            keep(line, &mut facts.platform.unbind_told);
        }
        if matches(&CC_TOLD, line.text) {
            keep(line, &mut facts.platform.cc_told);
        }
    }
}

fn keep(line: &Line<'_>, list: &mut Vec<Seen<String>>) {
    if list.len() < LIMIT {
        list.push(Seen::new(clean_excerpt(line.text), line.origin()));
    }
}

/// Words that name a hypervisor, and its name here.
const NAMES: [(&str, &str); 15] = [
    ("kvm", "kvm"),
    ("qemu", "kvm"),
    ("proxmox", "kvm"),
    ("libvirt", "kvm"),
    ("kubevirt", "kvm"),
    ("openstack", "kvm"),
    ("ovmf", "kvm"),
    ("q35", "kvm"),
    ("seabios", "kvm"),
    ("vmware", "vmware"),
    ("esxi", "vmware"),
    ("vsphere", "vmware"),
    ("hyper-v", "microsoft"),
    ("microsoft", "microsoft"),
    ("xen", "xen"),
];

fn name_of(text: &str) -> Option<&'static str> {
    let lower = text.to_lowercase();
    NAMES.iter().find(|(word, _)| lower.contains(word)).map(|(_, name)| *name)
}

fn hypervisor(line: &Line<'_>, facts: &mut Facts) {
    if !["ypervisor", "DMI: ", "Virtualization: ", "Manufacturer: "]
        .iter()
        .any(|mark| line.has(mark))
    {
        return;
    }
    let Some(found) = captures(&HYPERVISOR, line.text) else { return };
    let said = ["kernel", "lscpu", "dmi", "ctl", "maker"]
        .iter()
        .find_map(|name| found.name(name))
        .map_or("", |said| said.as_str());
    let name = name_of(said).map_or_else(|| said.trim().to_lowercase(), str::to_owned);
    facts.host.hypervisor.or_better(Observed::seen(name, line.origin()));
}

/// Of several statements the one that names a hypervisor comes first.
fn guest(line: &Line<'_>, facts: &mut Facts) {
    let told = &mut facts.platform.guest_told;
    if told.len() >= LIMIT {
        return;
    }
    match name_of(line.text) {
        Some(name) => told.insert(0, Seen::new(name.to_owned(), line.origin())),
        None => told.push(Seen::new("a hypervisor".to_owned(), line.origin())),
    }
}

fn confidential(line: &Line<'_>, facts: &mut Facts) {
    let lower = line.text.to_lowercase();
    if !["cc ", "confidential", "ready", "-srs"].iter().any(|mark| lower.contains(mark)) {
        return;
    }
    // Only the sentence itself: the ones around it may deny something else.
    let mut sentences = line.text.split(". ");
    if sentences.any(|said| matches(&CC_CURED, said) && !matches(&DENIED, said)) {
        keep(line, &mut facts.platform.cc_cured);
    }
    if let Some(state) = group(&CC_STATE, line.text, "state") {
        let on = matches!(state.to_ascii_lowercase().as_str(), "on" | "enabled");
        facts.mentions_gpu = true;
        facts.platform.cc_on.or_later(Observed::seen(on, line.origin()));
    }
    let Some(found) = captures(&CC_READY, line.text) else { return };
    let state = ["state", "told", "said"].iter().find_map(|name| found.name(name));
    if let Some(state) = state.filter(|_| facts.platform.cc_ready.len() < LIMIT) {
        facts.mentions_gpu = true;
        let ready = state.as_str().eq_ignore_ascii_case("ready");
        facts.platform.cc_ready.push(Seen::new(ready, line.origin()));
    }
}

fn vgpu(line: &Line<'_>, facts: &mut Facts) {
    let lower = line.text.to_lowercase();
    let marks = ["vgpu", "grid", "licen", "vmiop", "vgx", "nvidia "];
    if !marks.iter().any(|mark| lower.contains(mark)) {
        return;
    }
    if matches(&VGPU, line.text) && facts.platform.vgpu.len() < LIMIT {
        facts.mentions_gpu = true;
        let side = match (matches(&VGPU_HOST, line.text), matches(&VGPU_GUEST, line.text)) {
            (true, false) => VgpuSide::Host,
            (false, true) => VgpuSide::Guest,
            _ => VgpuSide::Either,
        };
        facts.platform.vgpu.push(Seen::new(side, line.origin()));
    }
    license(line, facts);
    if matches(&REFUSAL, line.text) {
        facts.mentions_gpu = true;
        keep(line, &mut facts.platform.vgpu_refusals);
    }
    // The manager prints its own version when it starts and the guest's when its driver loads.
    if let Some(version) =
        group(&VMIOP_VERSION, line.text, "version").and_then(DriverVersion::parse)
    {
        let seen = Observed::seen(version, line.origin());
        if facts.platform.vgpu_manager.is_seen() {
            facts.platform.vgpu_guest.or_later(seen);
        } else {
            facts.platform.vgpu_manager = seen;
        }
    }
}

fn license(line: &Line<'_>, facts: &mut Facts) {
    let bad: [(&Lazy, LicenseWord); 2] =
        [(&GRIDD_BAD, LicenseWord::Refused), (&LICENSE_TOLD, LicenseWord::Unlicensed)];
    let module = line.has("taints kernel") || line.has("module license") || line.has("LICENSE");
    if module || facts.platform.licenses.len() >= LIMIT {
        return;
    }
    let word = if matches(&GRIDD_GOOD, line.text) {
        Some(LicenseWord::Licensed)
    } else {
        bad.iter().find(|(pattern, _)| matches(pattern, line.text)).map(|(_, word)| *word)
    };
    if let Some(word) = word {
        let said = clean_excerpt(line.text);
        facts.platform.licenses.push(Seen::new((word, said), line.origin()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::loose::lines_of;

    #[test]
    fn every_pattern_compiles() {
        let all: [&Lazy; 17] = [
            &CC_CURED,
            &DENIED,
            &HYPERVISOR,
            &GUEST,
            &CC_STATE,
            &CC_READY,
            &CC_TOLD,
            &VGPU,
            &VGPU_HOST,
            &VGPU_GUEST,
            &GRIDD_BAD,
            &GRIDD_GOOD,
            &LICENSE_TOLD,
            &REFUSAL,
            &VMIOP_VERSION,
            &UNBIND,
            &VFIO,
        ];
        assert!(all.iter().all(|pattern| pattern.is_some()));
    }

    #[test]
    fn hypervisors_by_what_a_guest_prints() {
        for (text, name) in [
            ("[    0.000000] Hypervisor detected: KVM", "kvm"),
            ("Hypervisor vendor:                  VMware", "vmware"),
            ("[    0.000000] DMI: QEMU Standard PC (Q35 + ICH9, 2009), BIOS 4.2", "kvm"),
            ("[    0.000000] Hypervisor detected: Microsoft Hyper-V", "microsoft"),
        ] {
            let facts = lines_of(text);
            assert_eq!(facts.host.hypervisor.value().map(String::as_str), Some(name), "{text}");
        }
        let told = lines_of("One GPU is passed through to an Ubuntu VM on Proxmox");
        assert_eq!(told.platform.guest_told.first().map(|told| told.value.as_str()), Some("kvm"));
        assert!(!told.host.hypervisor.is_seen());
    }

    #[test]
    fn confidential_computing() {
        let facts = lines_of("CC status: ON\nConfidential Compute GPUs Ready state: not-ready\n");
        assert_eq!(facts.platform.cc_on.value(), Some(&true));
        assert_eq!(facts.platform.cc_ready.first().map(|ready| ready.value), Some(false));
        let table = lines_of(
            "    CC State                   : OFF\n    CC GPUs Ready State        : Ready\n",
        );
        assert_eq!(table.platform.cc_on.value(), Some(&false));
        assert_eq!(table.platform.cc_ready.first().map(|ready| ready.value), Some(true));
    }

    #[test]
    fn declaring_ready_as_a_cure() {
        let cured = |text: &str| !lines_of(text).platform.cc_cured.is_empty();
        assert!(cured(
            "The script works after `nvidia-smi conf-compute -srs 1`. I did not need that before."
        ));
        assert!(cured(
            "after running nvidia-smi conf-compute -srs 1, my script executed successfully"
        ));
        assert!(!cured(
            "it does not work, even after nvidia-smi conf-compute -srs 1 it still fails"
        ));
    }

    #[test]
    fn vgpu_and_its_licence() {
        let facts = lines_of(
            "Mar 16 23:00:01 vm nvidia-gridd[812]: Failed to acquire license from 10.0.0.5\n",
        );
        assert_eq!(
            facts.platform.licenses.first().map(|told| told.value.0),
            Some(LicenseWord::Refused)
        );
        let good =
            lines_of("nvidia-gridd[812]: License acquired successfully. (Info: lic.example)\n");
        assert_eq!(
            good.platform.licenses.first().map(|told| told.value.0),
            Some(LicenseWord::Licensed)
        );
        let none = lines_of("nvidia: module license 'NVIDIA' taints kernel.\n");
        assert!(none.platform.licenses.is_empty() && none.platform.vgpu.is_empty());
        let log = lines_of(
            "nvidia-vgpu-mgr[9]: notice: vmiop_log: Driver Version: 550.90.05\nnvidia-vgpu-mgr[9]: notice: vmiop_log: Driver Version: 570.86.15\nerror: vmiop_log: (0x0): Incompatible Guest/Host drivers: Guest VGX version is newer than the maximum version supported by the Host. Disabling vGPU.\n",
        );
        assert_eq!(log.platform.vgpu_refusals.len(), 1);
        assert!(log.platform.vgpu_manager.is_seen() && log.platform.vgpu_guest.is_seen());
    }

    #[test]
    fn handing_over() {
        let facts = lines_of(
            "unbinding 0000:8a:00.0 from nvidia is stuck\n0000:01:00.0 is already bound to vfio-pci\n",
        );
        assert_eq!(facts.platform.unbind_told.len(), 1);
        assert_eq!(facts.platform.vfio_told.len(), 1);
    }
}
