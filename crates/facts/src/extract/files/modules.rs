//! Loaded modules, what they registered and how they are set: /proc, /sys/module, modprobe.d.

use super::grep;
use super::reading::{Learn, Reading, Text, enter_complaints};
use crate::model::Facts;
use crate::model::module::{
    CharMajor, LoadedModule, MAJORS_OF_INTEREST, MODULES_OF_INTEREST, NvrmVersion,
};
use crate::observed::{Observed, Seen};
use crate::parse::modprobe_conf::{self, Directive};
use crate::parse::proc_modules::{self as parse, canonical};
use crate::parse::{At, Parsed, proc_devices as devices};
use crate::raw::RawItem;
use crate::version::DriverVersion;

/// /proc/modules.
pub(super) fn proc_modules(reading: &Reading, facts: &mut Facts) {
    match reading.without_bytes() {
        Some(other) => without_list(&other, facts),
        None => enter_modules(reading.item, parse::proc_modules, facts),
    }
}

/// Enters the output of `lsmod`, from whatever item it was cut.
pub fn enter_lsmod(item: &RawItem, facts: &mut Facts) {
    enter_modules(item, parse::lsmod, facts);
}

/// The list itself could not be read, which says of each module only that: an absent /proc/modules
/// belongs to a kernel without modules or a hidden /proc, not to a module that is not loaded.
fn without_list(other: &Observed<LoadedModule>, facts: &mut Facts) {
    if matches!(other, Observed::Absent(_)) {
        return;
    }
    for name in MODULES_OF_INTEREST {
        facts.module.loaded.entry(name.to_owned()).or_default().learn(other.clone());
    }
}

fn enter_modules(
    item: &RawItem,
    parser: fn(&str) -> Parsed<Vec<At<LoadedModule>>>,
    facts: &mut Facts,
) {
    let reading = Reading::new(item, "");
    let Some(text) = reading.text() else { return };
    let parsed = parser(text.as_str());
    let unreadable = parsed.value.is_empty() && !parsed.complaints.is_empty();
    let mut lines = text.lines();
    for at in parsed.value {
        let name = at.value.name.clone();
        if !MODULES_OF_INTEREST.contains(&name.as_str()) {
            continue;
        }
        facts.mentions_gpu |= name.starts_with("nvidia") || name == "nouveau";
        facts.module.loaded.entry(name).or_default().or_later(lines.observed(at));
    }
    // Output that is nothing but an error message is no list.
    if !unreadable {
        for name in MODULES_OF_INTEREST {
            let listed = facts.module.loaded.entry(name.to_owned()).or_default();
            if !listed.is_seen() && grep::silence_counts(item, name, true, false) {
                listed.learn(Observed::Absent(item.silence()));
            }
        }
    }
    enter_complaints(item, &parsed.complaints, facts);
}

/// /proc/devices.
pub(super) fn proc_devices(reading: &Reading, facts: &mut Facts) {
    let Some(text) = reading.text() else {
        let other = reading.without_bytes().unwrap_or_default();
        return without_majors(&other, facts);
    };
    let parsed = devices::proc_devices(text.as_str());
    let unreadable = parsed.value.is_empty() && !parsed.complaints.is_empty();
    let mut lines = text.lines();
    for at in parsed.value {
        let name = at.value.name.clone();
        if !MAJORS_OF_INTEREST.contains(&name.as_str()) {
            continue;
        }
        facts.mentions_gpu = true;
        facts.module.majors.entry(name).or_default().or_later(lines.observed(at));
    }
    if !unreadable {
        for name in MAJORS_OF_INTEREST {
            let major = facts.module.majors.entry(name.to_owned()).or_default();
            if !major.is_seen() && grep::silence_counts(reading.item, name, false, true) {
                major.learn(Observed::Absent(reading.item.silence()));
            }
        }
    }
    reading.complain(&parsed.complaints, facts);
}

/// As [`without_list`]: an absent /proc/devices belongs to a hidden /proc.
fn without_majors(other: &Observed<CharMajor>, facts: &mut Facts) {
    if matches!(other, Observed::Absent(_)) {
        return;
    }
    for name in MAJORS_OF_INTEREST {
        facts.module.majors.entry(name.to_owned()).or_default().learn(other.clone());
    }
}

/// The rows of /proc/iomem that nvidia_uvm makes for HMM.
pub(super) fn iomem(reading: &Reading, facts: &mut Facts) {
    const NAME: &str = "nvidia-uvm-hmm";
    if let Some(other) = reading.without_bytes() {
        // Without the file nothing is known of its rows.
        if !matches!(other, Observed::Absent(_)) {
            facts.module.hmm_ranges.learn(other);
        }
        return;
    }
    let Some(text) = reading.text() else { return };
    let mut rows = text.as_str().lines().filter_map(|line| iomem_row(line, NAME)).peekable();
    if rows.peek().is_some() {
        let origin = reading.item.origin_at(0, NAME);
        facts.module.hmm_ranges.or_later(Observed::seen(rows.collect(), origin));
    } else if grep::silence_counts(reading.item, NAME, false, true) {
        facts.module.hmm_ranges.learn(Observed::Absent(reading.item.silence()));
    }
}

/// `  first-last : name`, in hexadecimal, indented by depth.
fn iomem_row(line: &str, wanted: &str) -> Option<(u64, u64)> {
    let (range, name) = line.split_once(" : ")?;
    let (first, last) = range.trim().split_once('-')?;
    let range = (u64::from_str_radix(first, 16).ok()?, u64::from_str_radix(last, 16).ok()?);
    (name.trim() == wanted).then_some(range)
}

/// The module's name in /sys/module/NAME/….
fn module_name(reading: &Reading) -> String {
    canonical(reading.component(2).unwrap_or(""))
}

/// /sys/module/NAME/initstate, by which libcuda itself decides whether the module is loaded. Its
/// absence is kept as such and not called an absent module: all of /sys may be missing.
pub(super) fn initstate(reading: &Reading, facts: &mut Facts) {
    sysfs_value(reading, facts);
    if reading.item.bytes().is_some() {
        let name = module_name(reading);
        let loaded = reading.single(parse::initstate).map(|state| LoadedModule {
            name: name.clone(),
            use_count: None,
            state: Some(state.to_owned()),
        });
        facts.module.loaded.entry(name).or_default().learn(loaded);
    }
}

/// /sys/module/NAME/version; the nvidia module's stands in where its own version line is missing.
pub(super) fn sysfs_version(reading: &Reading, facts: &mut Facts) {
    sysfs_value(reading, facts);
    if module_name(reading) == "nvidia" && reading.item.bytes().is_some() {
        let version = reading.single(DriverVersion::parse);
        facts.module.nvrm.learn(version.map(|version| NvrmVersion { version, flavour: None }));
    }
}

/// Another file of /sys/module/NAME with one value.
pub(super) fn sysfs_value(reading: &Reading, facts: &mut Facts) {
    let key = format!("{}/{}", module_name(reading), reading.file_name());
    let value = reading.single(|text| Some(text.trim().to_owned()));
    facts.module.sysfs.entry(key).or_default().or_later(value);
}

/// /sys/module/nvidia_uvm/parameters/uvm_disable_hmm.
pub(super) fn uvm_disable_hmm(reading: &Reading, facts: &mut Facts) {
    facts.module.uvm_disable_hmm.or_later(reading.single(parse::parameter_bool));
}

/// Another parameter of nvidia_uvm.
pub(super) fn uvm_parameter(reading: &Reading, facts: &mut Facts) {
    let value = reading.single(|text| Some(text.trim().to_owned()));
    if let Observed::Seen(seen) = value {
        facts.module.uvm_params.insert(reading.file_name().to_owned(), seen);
    }
}

/// A parameter of another module, under `MODULE/parameters/NAME`.
pub(super) fn parameter(reading: &Reading, facts: &mut Facts) {
    let key = format!("{}/parameters/{}", module_name(reading), reading.file_name());
    let value = reading.single(|text| Some(text.trim().to_owned()));
    facts.module.sysfs.entry(key).or_default().or_later(value);
}

/// A file of modprobe.d.
pub(super) fn modprobe_conf(reading: &Reading, facts: &mut Facts) {
    let Some(text) = reading.text() else { return };
    let parsed = modprobe_conf::modprobe_conf(text.as_str());
    enter_directives(parsed.value, &text, facts);
    reading.complain(&parsed.complaints, facts);
}

fn enter_directives(directives: Vec<At<Directive>>, text: &Text, facts: &mut Facts) {
    let mut lines = text.lines();
    for at in directives {
        let Seen { value, origin } = lines.seen(at);
        match value {
            Directive::Options { module, options } if matters(&module) => {
                let rows =
                    options.into_iter().map(|option| (module.clone(), option, origin.clone()));
                facts.module.options.extend(rows);
            }
            Directive::Blacklist { module } if matters(&module) => {
                facts.module.kept_out.push((module, origin));
            }
            Directive::Install { module, command } if matters(&module) && is_refusal(&command) => {
                facts.module.kept_out.push((module, origin));
            }
            Directive::Options { .. } | Directive::Blacklist { .. } | Directive::Install { .. } => {
            }
        }
    }
}

fn matters(module: &str) -> bool {
    module.starts_with("nvidia") || MODULES_OF_INTEREST.contains(&module)
}

/// An install line that does nothing in place of loading the module.
fn is_refusal(command: &str) -> bool {
    let program = command.split_whitespace().next().unwrap_or("");
    matches!(program.rsplit('/').next(), Some("false" | "true" | ":"))
}
