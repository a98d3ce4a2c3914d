//! The machine: names, versions, boot, hypervisor.

use super::reading::{Learn, Reading, enter_complaints};
use crate::model::Facts;
use crate::observed::{Observed, Origin};
use crate::parse::{cmdline as parse, os_release as system};
use crate::raw::{RawItem, RawSet};
use crate::version::KernelRelease;

/// /etc/hostname or the kernel's own idea of it.
pub(super) fn hostname(reading: &Reading, facts: &mut Facts) {
    let name = reading.single(|text| {
        let name = text.trim();
        (!name.is_empty()).then(|| name.to_owned())
    });
    facts.host.hostname.learn(name);
}

/// /proc/sys/kernel/osrelease.
pub(super) fn osrelease(reading: &Reading, facts: &mut Facts) {
    let release = reading.single(KernelRelease::parse);
    enter_kernel(release, facts);
}

/// Enters a release and what its suffix tells.
fn enter_kernel(release: Observed<KernelRelease>, facts: &mut Facts) {
    if let Some(seen) = release.as_seen() {
        let text = seen.value.as_str();
        // Microsoft's kernel of WSL 2 says so: `5.15.153.1-microsoft-standard-WSL2`.
        if text.contains("microsoft") {
            facts.host.wsl.learn(Observed::seen(true, seen.origin.clone()));
        }
        if text.ends_with("-tegra") {
            facts.host.tegra.learn(Observed::seen(true, seen.origin.clone()));
        }
        let known = ["x86_64", "aarch64", "ppc64le"];
        if let Some(arch) = known.iter().find(|arch| text.ends_with(&format!(".{arch}"))) {
            let arch = Observed::seen((*arch).to_owned(), seen.origin.clone());
            facts.host.arch.learn(arch);
        }
    }
    facts.host.kernel.learn(release);
}

/// /proc/sys/kernel/arch, which is there from Linux 6.1 on.
pub(super) fn arch(reading: &Reading, facts: &mut Facts) {
    if reading.item.bytes().is_some() {
        let name = reading.single(|text| text.split_whitespace().next().map(str::to_owned));
        facts.host.arch.learn(name);
    }
}

/// /proc/version: `Linux version RELEASE (builder) (compiler) #build date`.
pub(super) fn proc_version(reading: &Reading, facts: &mut Facts) {
    let release = reading.single(|text| KernelRelease::parse(text.split_whitespace().nth(2)?));
    enter_kernel(release, facts);
}

/// /proc/uptime: seconds since boot, seconds idle.
pub(super) fn uptime(reading: &Reading, facts: &mut Facts) {
    let seconds = reading.single(|text| {
        let whole = text.split(['.', ' ', '\n']).next()?;
        whole.parse::<u64>().ok()
    });
    facts.host.uptime_s.learn(seconds);
}

/// /proc/cmdline: the words that matter, and the modules that it keeps out.
pub(super) fn cmdline(reading: &Reading, facts: &mut Facts) {
    let words = reading.single(|text| Some(parse::words_that_matter(text)));
    if let Some(seen) = words.as_seen() {
        for word in &seen.value {
            let Some((key, names)) = word.split_once('=') else {
                continue;
            };
            if ["modprobe.blacklist", "module_blacklist", "rd.driver.blacklist"].contains(&key) {
                let names = names.split(',').map(crate::parse::proc_modules::canonical);
                let rows = names.map(|name| (name, seen.origin.clone()));
                facts.module.kept_out.extend(rows);
            }
        }
    }
    facts.host.cmdline.learn(words);
}

/// os-release.
pub(super) fn os_release(reading: &Reading, facts: &mut Facts) {
    let Some(text) = reading.text() else { return };
    let parsed = system::os_release(text.as_str());
    if let Some(name) = parsed.value.pretty_name {
        let name = text.lines().observed(name);
        facts.host.os.learn(name);
    }
    reading.complain(&parsed.complaints, facts);
}

/// Enters the output of `pveversion`, from whatever item it was cut.
pub fn enter_pveversion(item: &RawItem, facts: &mut Facts) {
    let reading = Reading::new(item, "");
    let Some(text) = reading.text() else { return };
    let parsed = system::pveversion(text.as_str());
    if let Some(version) = parsed.value.version {
        facts.host.proxmox.learn(text.lines().observed(version));
    }
    if let Some(kernel) = parsed.value.kernel {
        let origin = text.lines().origin(kernel.line);
        if let Some(release) = KernelRelease::parse(&kernel.value) {
            enter_kernel(Observed::seen(release, origin), facts);
        }
    }
    enter_complaints(item, &parsed.complaints, facts);
}

/// Proxmox VE's version module: `sub version { return '8.4.1'; }`.
pub(super) fn pvecfg(reading: &Reading, facts: &mut Facts) {
    if reading.item.bytes().is_some() {
        facts.host.proxmox.learn(reading.single(quoted_version));
    } else if let Some(other) = reading.without_bytes() {
        facts.host.proxmox.learn(other);
    }
}

/// The first quoted word that begins with two numbers joined by a dot.
fn quoted_version(text: &str) -> Option<String> {
    let is_version = |word: &&str| {
        let mut numbers = word.split('.').map(str::parse::<u32>);
        matches!((numbers.next(), numbers.next()), (Some(Ok(_)), Some(Ok(_))))
    };
    text.split(['\'', '"']).skip(1).step_by(2).find(is_version).map(str::to_owned)
}

/// /etc/nv_tegra_release, which only Tegra systems have.
pub(super) fn tegra_release(reading: &Reading, facts: &mut Facts) {
    if reading.item.bytes().is_some() {
        let origin = reading.item.origin();
        facts.host.tegra.learn(Observed::seen(true, origin));
    }
}

/// The device tree's `compatible`: NUL-separated names, the board first.
pub(super) fn device_tree(reading: &Reading, facts: &mut Facts) {
    if reading.item.bytes().is_some() {
        let tegra = reading.single(|text| Some(text.contains("nvidia,tegra")));
        facts.host.tegra.learn(tegra);
    }
}

/// The folder /sys/firmware/efi: without it the machine booted the old way, and Secure Boot is
/// off.
pub(super) fn efi_folder(reading: &Reading, facts: &mut Facts) {
    if let Some(Observed::Absent(origin)) = reading.without_bytes::<bool>() {
        facts.host.secure_boot.learn(Observed::seen(false, origin));
    }
}

/// The SecureBoot variable: four bytes of attributes, then 0 or 1. A missing one says nothing,
/// since a container has no efivarfs.
pub(super) fn secure_boot(reading: &Reading, facts: &mut Facts) {
    let Some(bytes) = reading.item.bytes() else {
        if let Some(denied @ Observed::Denied(..)) = reading.without_bytes() {
            facts.host.secure_boot.learn(denied);
        }
        return;
    };
    let origin = reading.item.origin();
    if let Some(value) = bytes.get(4) {
        facts.host.secure_boot.learn(Observed::seen(*value == 1, origin));
    }
}

/// /sys/kernel/security/lockdown: `none [integrity] confidentiality`, the brackets around the one
/// in force.
pub(super) fn lockdown(reading: &Reading, facts: &mut Facts) {
    if matches!(reading.without_bytes::<String>(), Some(Observed::Absent(_))) {
        // Without the security file system, as in most containers, nothing is known.
        return;
    }
    let level = reading.single(|text| {
        let (_, rest) = text.split_once('[')?;
        rest.split_once(']').map(|(level, _)| level.to_owned())
    });
    facts.host.lockdown.learn(level);
}

/// What DMI calls the system vendor of virtual machines, with the hypervisor's name here.
const VIRTUAL_VENDORS: [(&str, &str); 14] = [
    ("QEMU", "kvm"),
    ("VMware", "vmware"),
    ("Xen", "xen"),
    ("innotek", "virtualbox"),
    ("Parallels", "parallels"),
    ("Nutanix", "kvm"),
    ("OpenStack", "kvm"),
    ("RDO", "kvm"),
    ("oVirt", "kvm"),
    ("Alibaba Cloud", "kvm"),
    ("DigitalOcean", "kvm"),
    ("Hetzner", "kvm"),
    ("Google", "kvm"),
    ("Bochs", "bochs"),
];

/// Weighs what DMI and the processor tell of a hypervisor. Only the processor's flags can say
/// `none`: a maker's name in DMI may have been handed through to a guest.
pub(super) fn conclude(raw: &RawSet, facts: &mut Facts) {
    let vendor = first_text(raw, "/sys/class/dmi/id/sys_vendor");
    let product = first_text(raw, "/sys/class/dmi/id/product_name");
    if let Some((kind, origin)) = first_text(raw, "/sys/hypervisor/type") {
        facts.host.hypervisor.learn(Observed::seen(kind, origin));
    }
    let product = product.map(|(text, _)| text).unwrap_or_default();
    if let Some((vendor, origin)) = vendor
        && let Some(name) = hypervisor_of(&vendor, &product)
    {
        facts.host.hypervisor.learn(Observed::seen(name.to_owned(), origin));
    }
    if let Some(item) = raw.files("/proc/cpuinfo").find(|item| item.bytes().is_some()) {
        from_cpuinfo(item, facts);
    }
}

fn first_text(raw: &RawSet, path: &str) -> Option<(String, Origin)> {
    let item = raw.files(path).find(|item| item.bytes().is_some_and(|bytes| !bytes.is_empty()))?;
    let text = item.text()?;
    Some((text.trim().to_owned(), item.origin_at(1, &text)))
}

fn hypervisor_of(vendor: &str, product: &str) -> Option<&'static str> {
    if vendor.starts_with("Microsoft") {
        return (product == "Virtual Machine").then_some("microsoft");
    }
    if vendor.starts_with("Amazon") {
        // Bare-metal instances call themselves `p5.metal` or the like.
        return (!product.contains("metal")).then_some("kvm");
    }
    if product.contains("KVM") || product.contains("Virtual Machine") {
        return Some("kvm");
    }
    VIRTUAL_VENDORS.iter().find(|(name, _)| vendor.starts_with(name)).map(|(_, name)| *name)
}

/// The flags of the first processor: under a hypervisor x86 has the flag of that name.
fn from_cpuinfo(item: &RawItem, facts: &mut Facts) {
    let Some(text) = item.text() else { return };
    let find = |key: &str| {
        let line = |content: &str| content.split_once(':').is_some_and(|(k, _)| k.trim() == key);
        crate::parse::numbered(&text).find(|(_, content)| line(content))
    };
    if let Some((line, flags)) = find("flags") {
        let origin = item.origin_at(line, "flags");
        facts.host.arch.learn(Observed::seen("x86_64".to_owned(), origin.clone()));
        // A part may end within the line, and the flag may stand behind the cut.
        let whole = !item.partial || text.lines().count() > line as usize;
        let name = if flags.split_whitespace().any(|flag| flag == "hypervisor") {
            Some("unknown")
        } else {
            whole.then_some("none")
        };
        if let Some(name) = name {
            facts.host.hypervisor.learn(Observed::seen(name.to_owned(), origin));
        }
    } else if let Some((line, content)) = find("CPU implementer") {
        let origin = item.origin_at(line, content);
        facts.host.arch.learn(Observed::seen("aarch64".to_owned(), origin));
    }
}
