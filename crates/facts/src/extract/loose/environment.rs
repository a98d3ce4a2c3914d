//! The machine as a report describes it: versions, names of GPUs, variables, parameters.

use super::Line;
use super::pattern::{captures, group, pattern};
use crate::model::Facts;
use crate::model::module::{Flavour, NvrmVersion};
use crate::observed::{Observed, Seen};
use crate::version::{CudaVersion, DriverVersion, KernelRelease};

pattern! {
    DRIVER = r"(?i)(?:\bdriver(?:[ _]version)?|\bnvidia(?: driver| open| kernel module)?|\bNVRM version|\bnvidia-driver)\b[^\d\n]{0,40}?(?P<version>\d{3}\.\d{2,3}(?:\.\d{2})?)\b(?P<rest>[^\n]{0,24})"
}
pattern! {
    /// What /sys/module/nvidia/version is said to hold.
    SYSFS = r"/sys/module/nvidia/version\b[^\d\n]{0,24}(?P<version>\d{3}\.\d{2,3}(?:\.\d{2})?)\b"
}
pattern! { KERNEL = r"(?i)\bkernel(?: version| release)?\b[^\d\n]{0,20}(?P<release>\d+\.\d+\.\d+[\w.\-+~]*)" }
pattern! { CUDA = r"(?i)\bCUDA Version:?\s*(?P<version>\d{1,2}\.\d)" }
pattern! { NVCC = r"(?i)\bCuda compilation tools, release (?P<version>\d+\.\d+)" }
pattern! { HMM = r"(?i)\buvm_disable_hmm\b(?:\s*(?:=|:|is|reads|->)\s*|\s+)(?P<value>[01YN])\b" }
pattern! {
    VARIABLE = r#"(?:^|[\s`"'(\[*])(?:export\s+|os\.environ\[["'])?(?P<name>CUDA_VISIBLE_DEVICES|NVIDIA_VISIBLE_DEVICES|NVIDIA_DRIVER_CAPABILITIES|LD_LIBRARY_PATH|LD_PRELOAD|CUDA_MPS_PIPE_DIRECTORY|CUDA_DEVICE_ORDER)(?:["']\])?[*`]{0,2}\s*[=:]\s*[*`]{0,2}(?P<value>"[^"]*"|'[^']*'|[^\s`;]*)"#
}
pattern! {
    PRODUCT = r"(?i)\b(?P<name>(?:NVIDIA )?(?:GeForce |Quadro |Tesla |TITAN )?(?:RTX PRO \d{4}(?: Blackwell)?(?: Max-Q)?(?: (?:Workstation|Server) Edition)?|RTX A?\d{3,4}(?: Ada(?: Generation)?)?(?: ?Ti)?(?: SUPER)?|GTX \d{3,4}(?: ?Ti)?(?: SUPER)?|(?:GB|GH|H|A|B|L|T|V|P|K)\d{2,3}[A-Za-z]?(?:-\w+)*))\b"
}
pattern! {
    /// What people call GeForce boards among themselves: `2x 4090`, `both 3090s`, `my 5090 card`.
    FAMILIAR = r"(?i)\b(?:\d ?[x×] ?|both |dual |two |four )(?P<counted>[2345]0[5-9]0(?: ?Ti)?)s?\b|\b(?P<plural>[2345]0[5-9]0(?: ?Ti)?)s\b|\b(?P<card>[2345]0[5-9]0(?: ?Ti)?) (?:cards?|GPUs?)\b"
}
pattern! { PCI_ID = r"\[?10de:(?P<device>[0-9a-f]{4})\]?" }
pattern! { SECCOMP = r"^\s*Seccomp:\s*(?P<mode>[012])\b" }

pub(super) fn read(line: &Line<'_>, facts: &mut Facts) {
    versions(line, facts);
    switch(line, facts);
    for text in super::statement::sentences(line.text) {
        variable(&Line { item: line.item, number: line.number, text }, facts);
    }
    products(line, facts);
    if let Some(mode) = group(&SECCOMP, line.text, "mode").and_then(|mode| mode.parse().ok()) {
        facts.sandbox.seccomp = Observed::seen(mode, line.origin());
    }
}

fn versions(line: &Line<'_>, facts: &mut Facts) {
    if let Some(found) = captures(&DRIVER, line.text)
        && let Some(version) = found.name("version").and_then(|v| DriverVersion::parse(v.as_str()))
    {
        facts.mentions_gpu = true;
        let rest = found.name("rest").map_or("", |rest| rest.as_str()).to_lowercase();
        let whole = line.text.to_lowercase();
        // The word stands before the version ("driver: open 550.144.03") or after it.
        let before = found.get(0).map_or("", |all| all.as_str()).to_lowercase();
        let is_word = |text: &str, word: &str| {
            text.split(|ch: char| !ch.is_alphanumeric()).any(|other| other == word)
        };
        let named = |word: &str| {
            is_word(&rest, word)
                || is_word(&before, word)
                || whole.contains(&format!("{word} kernel module"))
        };
        let flavour = match (named("open"), named("proprietary")) {
            (true, false) => Some(Flavour::Open),
            (false, true) => Some(Flavour::Proprietary),
            _ => None,
        };
        if line.has("NVRM version") || whole.contains("kernel module") {
            let loaded = NvrmVersion { version: version.clone(), flavour };
            facts.module.nvrm.or_better(Observed::seen(loaded, line.origin()));
        }
        // "NVML library version: 580.159" is the library's, whatever the line says of drivers; and a
        // comparison names another driver's.
        let others = ["library version", " than", "at least", ">=", "<", "require", "minimum"];
        if !others.iter().any(|word| before.contains(word)) {
            let by_smi = line.has("NVIDIA-SMI");
            let nvml = &mut facts.nvml;
            let told = if by_smi { &mut nvml.driver_version } else { &mut nvml.driver_told };
            told.or_better(Observed::seen(version, line.origin()));
        }
        if let (Some(flavour), false) = (flavour, facts.module.flavour_told.is_seen()) {
            facts.module.flavour_told = Observed::seen(flavour, line.origin());
        }
    }
    if let Some(version) = group(&SYSFS, line.text, "version").and_then(DriverVersion::parse) {
        facts.mentions_gpu = true;
        facts.nvml.driver_version.or_better(Observed::seen(version, line.origin()));
    }
    if let Some(release) = group(&KERNEL, line.text, "release").and_then(KernelRelease::parse) {
        facts.host.kernel.or_better(Observed::seen(release, line.origin()));
    }
    if let Some(version) = group(&CUDA, line.text, "version").and_then(CudaVersion::parse) {
        facts.nvml.cuda_version.or_better(Observed::seen(version, line.origin()));
    }
    if let Some(version) = group(&NVCC, line.text, "version").and_then(CudaVersion::parse) {
        facts.framework.nvcc = Observed::seen(version, line.origin());
    }
}

/// `uvm_disable_hmm: N` and `uvm_disable_hmm reads N`; `options … uvm_disable_hmm=1` is a wish for
/// the next load and `modprobe … uvm_disable_hmm=1` in prose a proposal.
fn switch(line: &Line<'_>, facts: &mut Facts) {
    let lower = line.text.to_lowercase();
    if lower.contains("options ") || lower.contains("modprobe") {
        return;
    }
    let Some(value) = group(&HMM, line.text, "value") else { return };
    if super::statement::condition(line.text).is_some() {
        return;
    }
    let disabled = matches!(value, "1" | "Y" | "y");
    // An assignment in prose is no reading; the module shows its parameter as Y or N.
    if matches!(value, "Y" | "N") {
        facts.mentions_gpu = true;
        facts.module.uvm_disable_hmm = Observed::seen(disabled, line.origin());
    }
}

fn variable(line: &Line<'_>, facts: &mut Facts) {
    let Some(found) = captures(&VARIABLE, line.text) else { return };
    let name = found.name("name").map_or("", |name| name.as_str());
    let value = found.name("value").map_or("", |value| value.as_str());
    // "works with LD_LIBRARY_PATH=…" is a cure that was tried, not the state of things.
    if super::statement::condition(line.text).is_some() {
        return;
    }
    let empty = is_empty_in_a_shell(found.get(0).map_or("", |all| all.as_str()), name, value);
    let value = if empty { "" } else { value.trim_matches(['"', '\'', ',']) }.to_owned();
    facts.mentions_gpu = true;
    facts.process.env.entry(name.to_owned()).or_insert_with(|| Seen::new(value, line.origin()));
}

/// `CUDA_VISIBLE_DEVICES= julia` gives the program an empty value; `CUDA_VISIBLE_DEVICES= 0` is prose.
fn is_empty_in_a_shell(assignment: &str, name: &str, value: &str) -> bool {
    let behind = assignment.split_once(name).map_or("", |(_, behind)| behind);
    let is_value = value.starts_with(|ch: char| ch.is_ascii_digit() || "\"'-/$".contains(ch))
        || ["GPU-", "MIG-", "NoDevFiles", "none", "all", "void"]
            .iter()
            .any(|word| value.starts_with(word));
    behind.starts_with("= ") && !is_value
}

fn products(line: &Line<'_>, facts: &mut Facts) {
    for found in PRODUCT.iter().flat_map(|regex| regex.captures_iter(line.text)) {
        let name = found.name("name").map_or("", |name| name.as_str());
        if facts.host.gpu_names.len() < 64 && nvabi::pci_id::by_product_name(name).is_some() {
            facts.mentions_gpu = true;
            facts.host.gpu_names.push(Seen::new(name.to_owned(), line.origin()));
        }
    }
    if let Some(found) = captures(&FAMILIAR, line.text)
        && let Some(number) = found.name("counted").or(found.name("plural")).or(found.name("card"))
    {
        let name = format!("RTX {}", number.as_str());
        if facts.host.gpu_names.len() < 64 && nvabi::pci_id::by_product_name(&name).is_some() {
            facts.mentions_gpu = true;
            facts.host.gpu_names.push(Seen::new(name, line.origin()));
        }
    }
    if facts.host.gpu_ids.len() < 64
        && let Some(device) = group(&PCI_ID, line.text, "device")
        && let Ok(device) = u16::from_str_radix(device, 16)
    {
        facts.mentions_gpu = true;
        facts.host.gpu_ids.push(Seen::new(device, line.origin()));
    }
}

#[cfg(test)]
mod tests {
    use crate::extract::loose::lines_of;

    #[test]
    fn variables_as_they_are_typed() {
        for (text, value) in [
            ("CUDA_VISIBLE_DEVICES=1,2 python3 a.py", "1,2"),
            ("CUDA_VISIBLE_DEVICES=  julia", ""),
            ("export CUDA_VISIBLE_DEVICES=", ""),
            ("I set CUDA_VISIBLE_DEVICES= 0", "0"),
            ("os.environ['CUDA_VISIBLE_DEVICES'] = '3'", "3"),
            ("CUDA_VISIBLE_DEVICES: GPU-4237e338", "GPU-4237e338"),
        ] {
            let env = lines_of(text).process.env;
            let seen = env.get("CUDA_VISIBLE_DEVICES").map(|seen| seen.value.clone());
            assert_eq!(seen.as_deref(), Some(value), "{text}");
        }
    }
}
