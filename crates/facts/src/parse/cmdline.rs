//! /proc/cmdline: the words of the kernel command line that matter to the GPU.

/// Words that matter as they are.
const PLAIN: [&str; 3] = ["nokaslr", "kaslr", "nomodeset"];

/// Words that matter by what stands before the equals sign (or alone).
const KEYS: [&str; 17] = [
    "amd_iommu",
    "firmware_class.path",
    "initcall_blacklist",
    "intel_iommu",
    "iommu",
    "iommu.passthrough",
    "iommu.strict",
    "lockdown",
    "modprobe.blacklist",
    "module.sig_enforce",
    "module_blacklist",
    "pci",
    "pcie_acs_override",
    "pcie_aspm",
    "rd.driver.blacklist",
    "vfio-pci.ids",
    "vfio_pci.ids",
];

/// Beginnings of words that matter: parameters of the modules themselves.
const BEGINNINGS: [&str; 3] = ["nvidia", "nouveau", "nova_core"];

/// The words of a kernel command line that matter here, in their order. Everything else (root
/// devices, consoles, keys of other software) is left out on purpose: it may hold secrets.
pub fn words_that_matter(text: &str) -> Vec<String> {
    words(text).into_iter().filter(|word| matters(word)).collect()
}

fn matters(word: &str) -> bool {
    let key = word.split('=').next().unwrap_or(word);
    PLAIN.contains(&word)
        || KEYS.contains(&key)
        || BEGINNINGS.iter().any(|beginning| word.starts_with(beginning))
}

/// Splits at blanks outside double quotes, as the kernel does.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quoted = false;
    for ch in text.chars() {
        match ch {
            '"' => quoted = !quoted,
            ch if ch.is_whitespace() && !quoted => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            ch => word.push(ch),
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_that_matter_are_kept() {
        let text = "BOOT_IMAGE=/boot/vmlinuz-6.8.12-9-pve root=/dev/mapper/pve-root ro quiet \
                    intel_iommu=on iommu=pt pcie_aspm=off nvidia-drm.modeset=1 \
                    nvidia_uvm.uvm_disable_hmm=1 nokaslr pci=realloc,nocrs token=secret \
                    modprobe.blacklist=nouveau rd.driver.blacklist=nouveau \
                    firmware_class.path=\"/opt/my firmware\"\n";
        assert_eq!(
            words_that_matter(text),
            [
                "intel_iommu=on",
                "iommu=pt",
                "pcie_aspm=off",
                "nvidia-drm.modeset=1",
                "nvidia_uvm.uvm_disable_hmm=1",
                "nokaslr",
                "pci=realloc,nocrs",
                "modprobe.blacklist=nouveau",
                "rd.driver.blacklist=nouveau",
                "firmware_class.path=/opt/my firmware",
            ]
        );
        assert!(words_that_matter("iommufd.x=1 pcid=2 root=nvidia").is_empty());
    }
}
