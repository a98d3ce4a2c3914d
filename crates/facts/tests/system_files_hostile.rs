//! Laws of the parsers of system files: no input makes them panic, and no line is lost.

use facts::extract::files::{
    Filter, apply, conclude, enter_ls_long, enter_lsmod, enter_ulimit_all,
};
use facts::model::Facts;
use facts::parse::{
    LineComplaint, cgroup, cmdline, container_conf, environ, id_map, kernel_config, limits,
    ls_long, modprobe_conf, mountinfo, os_release, pci_sysfs, proc_devices, proc_modules,
    proc_nvidia, proc_status,
};
use facts::raw::{ItemName, RawItem, RawSet};
use facts::wanted::WANTED;
use proptest::prelude::*;

/// Words that these formats are made of, so that random text comes near them.
const WORDS: [&str; 40] = [
    "nvidia",
    "nvidia-uvm",
    "nvidia_uvm",
    "195",
    "507",
    "0",
    "-1",
    "18446744073709551616",
    "0x10de",
    "Live",
    "-",
    ":",
    "::",
    "/",
    "/dev/nvidia0",
    "crw-rw-rw-",
    "root",
    "195,",
    "255",
    "->",
    "=",
    "options",
    "blacklist",
    "\\",
    "NVRM version:",
    "Kernel Module",
    "590.48.01",
    "CapEff:",
    "\t",
    "Max open files",
    "unlimited",
    "(kbytes, -l)",
    "CONFIG_HMM_MIRROR",
    "=y",
    "# ",
    " is not set",
    "\"",
    "'",
    "Character devices:",
    "é\u{0}\u{1b}[31m",
];

fn line() -> impl Strategy<Value = String> {
    let word = prop_oneof![prop::sample::select(&WORDS[..]).prop_map(str::to_owned), ".{0,6}"];
    prop::collection::vec(word, 0..8).prop_map(|words| words.join(" "))
}

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(line(), 0..12).prop_map(|lines| lines.join("\n"))
}

/// Lines that hold something; each must be understood or complained about.
fn full_lines(text: &str) -> Vec<u32> {
    (1u32..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()).map(|(n, _)| n).collect()
}

fn accounted(understood: impl Iterator<Item = u32>, complaints: &[LineComplaint]) -> Vec<u32> {
    let mut lines: Vec<u32> = understood.chain(complaints.iter().map(|c| c.line)).collect();
    lines.sort_unstable();
    lines
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_line_is_understood_or_complained_about(text in text()) {
        let full = full_lines(&text);
        let parsed = proc_modules::proc_modules(&text);
        let lines = parsed.value.iter().map(|at| at.line);
        prop_assert_eq!(&accounted(lines, &parsed.complaints), &full);
        let parsed = cgroup::cgroup(&text);
        let lines = parsed.value.iter().map(|at| at.line);
        prop_assert_eq!(&accounted(lines, &parsed.complaints), &full);
        let parsed = mountinfo::mountinfo(&text);
        let lines = parsed.value.iter().map(|at| at.line);
        prop_assert_eq!(&accounted(lines, &parsed.complaints), &full);
        let parsed = proc_nvidia::params(&text);
        let lines = parsed.value.iter().map(|at| at.line);
        prop_assert_eq!(&accounted(lines, &parsed.complaints), &full);
        let parsed = id_map::id_map(&text);
        prop_assert_eq!(parsed.value.len() + parsed.complaints.len(), full.len());
    }

    #[test]
    fn no_text_makes_a_parser_panic(text in text()) {
        let lines = u32::try_from(text.lines().count()).unwrap_or(u32::MAX);
        let complaints = [
            proc_nvidia::version(&text).complaints,
            proc_nvidia::registry(&text).complaints,
            proc_nvidia::information(&text).complaints,
            proc_nvidia::power(&text).complaints,
            proc_modules::lsmod(&text).complaints,
            proc_devices::proc_devices(&text).complaints,
            kernel_config::kernel_config(&text).complaints,
            os_release::os_release(&text).complaints,
            os_release::pveversion(&text).complaints,
            pci_sysfs::bars(&text).complaints,
            pci_sysfs::uevent(&text).complaints,
            ls_long::ls_long(&text, "/dev").complaints,
            proc_status::proc_status(&text).complaints,
            limits::proc_limits(&text).complaints,
            limits::ulimit_all(&text).complaints,
            modprobe_conf::modprobe_conf(&text).complaints,
            container_conf::lxc(&text).complaints,
            container_conf::nvidia_runtime(&text).complaints,
        ];
        for complaint in complaints.iter().flatten() {
            prop_assert!((1..=lines).contains(&complaint.line), "{complaint:?}");
        }
        cmdline::words_that_matter(&text);
        environ::environ(text.as_bytes());
        pci_sysfs::link_speed_gts(&text);
        Filter::parse(&text).shows(&text, true, true);
        if let Some(node) = ls_long::node_at("/dev/nvidia0", &text) {
            prop_assert_eq!(node.path, "/dev/nvidia0");
        }
    }

    #[test]
    fn no_bytes_make_the_extractor_panic(
        row in prop::sample::select(WANTED),
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        text in text(),
        partial in any::<bool>(),
        filter in prop::option::of(line()),
    ) {
        let path = row.pattern.replace("/devices/*", "/devices/0000:01:00.0").replace('*', "7");
        let name = || ItemName::File(path.clone());
        let mut raw = RawSet::new();
        for content in [bytes, text.into_bytes()] {
            raw.push(RawItem { partial, filter: filter.clone(), ..RawItem::new(name(), content) });
        }
        let mut facts = Facts::default();
        for item in raw.items() {
            apply(item, &path, &mut facts);
            enter_lsmod(item, &mut facts);
            enter_ls_long(item, &["/dev/nvidia*"], &mut facts);
            enter_ulimit_all(item, &mut facts);
        }
        conclude(&raw, &mut facts);
    }

    #[test]
    fn a_part_without_a_filter_never_calls_anything_absent(text in text()) {
        let paths = ["/proc/modules", "/proc/devices", "/proc/iomem", "/dev", "/proc/self/environ"];
        let items = paths.map(|path| {
            let item = RawItem::new(ItemName::File(path.to_owned()), text.clone().into_bytes());
            (path, RawItem { partial: true, ..item })
        });
        let mut facts = Facts::default();
        for (path, item) in &items {
            apply(item, path, &mut facts);
        }
        prop_assert!(facts.module.loaded.values().all(|loaded| loaded.absent().is_none()));
        prop_assert!(facts.module.majors.values().all(|major| major.absent().is_none()));
        prop_assert!(facts.module.hmm_ranges.absent().is_none());
        prop_assert!(facts.node.at("/dev/nvidiactl").absent().is_none());
        prop_assert!(facts.process.env("CUDA_VISIBLE_DEVICES").absent().is_none());
    }
}

#[test]
fn one_long_line_is_read_in_time_that_grows_with_its_length() {
    let long = "a,".repeat(500_000);
    let mount = format!("1 1 0:1 / / {long} - overlay overlay {long}");
    assert_eq!(mountinfo::mountinfo(&mount).value.len(), 1);
    assert!(ls_long::ls_long(&long, "/dev").value.is_empty());
    assert_eq!(proc_modules::lsmod(&long).complaints.len(), 1);
    assert!(cmdline::words_that_matter(&long).is_empty());
    let continued = "options nvidia \\\n".repeat(100_000);
    assert_eq!(modprobe_conf::modprobe_conf(&continued).value.len(), 1);
    let devices = "1 nvidia\n".repeat(200_000);
    let item = RawItem::new(ItemName::File("/proc/devices".into()), devices.into_bytes());
    let mut facts = Facts::default();
    apply(&item, "/proc/devices", &mut facts);
    assert!(facts.module.major("nvidia").is_seen());
}
