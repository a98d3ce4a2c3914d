//! The kernel log in its forms, through the signatures, up to the facts.

use crate::support::{command, file};
use facts::Facts;
use facts::extract::log;
use facts::model::pci::PciAddress;
use facts::observed::{Errno, Observed};
use facts::parse::kernel_log::{self, Clock, LogScanner, ParsedLine};
use facts::raw::{ItemName, RawItem, RawState};
use proptest::prelude::*;

const LOG: &str = include_str!("../data/kernel.log");
const LINES_OF_REPORTS: &str = include_str!("../data/kernel_lines_of_reports.tsv");
const XID: &str = "NVRM: Xid (PCI:0000:01:00): 79, pid=1, name=python, GPU has fallen off the bus.";

fn facts_of(item: &RawItem) -> Facts {
    let mut facts = Facts::default();
    log::apply(item, &mut facts);
    facts
}

/// What a line was taken for, in the words of the data file.
fn verdict(line: &ParsedLine) -> String {
    if !line.matches.is_empty() {
        let ids: Vec<&str> = line.matches.iter().map(|found| found.signature.id).collect();
        ids.join(",")
    } else if line.frames.is_empty() {
        "unlisted".to_owned()
    } else {
        "frames".to_owned()
    }
}

#[test]
fn every_kernel_line_of_the_public_reports_is_known_or_kept() {
    for row in LINES_OF_REPORTS.lines() {
        let (expected, line) = row.split_once('\t').unwrap();
        let found = LogScanner::new().line(line.as_bytes());
        assert_eq!(found.map(|line| verdict(&line)).as_deref(), Some(expected), "{line}");
    }
}

#[test]
fn every_form_of_a_line_gives_the_same_text_and_its_time() {
    let epoch = 1_796_027_761.0;
    let year = f64::from((30 + 304) * 86_400 + 8 * 3600 + 36 * 60 + 1);
    let forms = [
        (format!("[   12.345678] {XID}"), Some((12.345_678, Clock::Boot))),
        (format!("[   12.345678] [T1234] {XID}"), Some((12.345_678, Clock::Boot))),
        (format!("<4>[   12.345678] {XID}"), Some((12.345_678, Clock::Boot))),
        (format!("kern  :err   : [   12.345678] {XID}"), Some((12.345_678, Clock::Boot))),
        (format!("4,1234,12345678,-;{XID}"), Some((12.345_678, Clock::Boot))),
        (format!("[   12.345678] pve kernel: {XID}"), Some((12.345_678, Clock::Boot))),
        (
            format!("Nov 30 08:36:01 pve kernel: [   12.345678] {XID}"),
            Some((12.345_678, Clock::Boot)),
        ),
        (format!("[Mon Nov 30 08:36:01 2026] {XID}"), Some((epoch, Clock::Epoch))),
        (format!("Nov 30 08:36:01 pve kernel: {XID}"), Some((year, Clock::Year))),
        (format!("2026-11-30T08:36:01+0000 pve kernel: {XID}"), Some((epoch, Clock::Epoch))),
        (
            format!("2026-11-30T10:36:01.000000+02:00 pve kernel: {XID}"),
            Some((epoch, Clock::Epoch)),
        ),
        (format!("2026-11-30T08:36:01,000000+00:00 {XID}"), Some((epoch, Clock::Epoch))),
        (format!("<4>1 2026-11-30T08:36:01Z pve kernel - - - {XID}"), Some((epoch, Clock::Epoch))),
        (format!("Mon 2026-11-30 08:36:01 UTC pve kernel: {XID}"), Some((epoch, Clock::Epoch))),
        (format!("1796027761.000000 pve kernel: {XID}"), Some((epoch, Clock::Epoch))),
        (format!("kern: warning: [2026-11-30T08:36:01Z]: {XID}"), Some((epoch, Clock::Epoch))),
        (
            format!(
                "time=\"2026-11-30T08:36:02Z\" level=info msg=\"[   12.345678] {XID}\\n\" source=agent"
            ),
            Some((12.345_678, Clock::Boot)),
        ),
        (format!("level=info msg=\"{XID}\""), None),
        (format!("[  +0.000012] {XID}"), None),
        (format!("[Nov30 08:36] {XID}"), None),
        (format!("> [   12.345678] {XID}\r"), Some((12.345_678, Clock::Boot))),
        (format!("  - `[   12.345678] {XID}"), Some((12.345_678, Clock::Boot))),
        (
            format!("\x1b[32m[   12.345678] \x1b[0m\x1b[33mNVRM: \x1b[0m{}", &XID[6..]),
            Some((12.345_678, Clock::Boot)),
        ),
        (XID.to_owned(), None),
    ];
    for (form, time) in forms {
        let line = LogScanner::new().line(form.as_bytes()).unwrap();
        assert_eq!(line.text, XID, "{form}");
        assert_eq!(line.time.map(|stamp| (stamp.seconds, stamp.clock)), time, "{form}");
        assert_eq!(verdict(&line), "FALLEN_BUS,XID", "{form}");
        assert_eq!(line.device, PciAddress::parse("0000:01:00.0"));
    }
}

#[test]
fn a_line_within_prose_is_found() {
    let prose = format!("After an hour dmesg shows `{XID}` and nvidia-smi hangs.");
    let line = LogScanner::new().line(prose.as_bytes()).unwrap();
    assert_eq!(line.matches[1].captures["xid"], "79");
}

#[test]
fn logs_saved_by_windows_tools_are_read() {
    for units in [true, false] {
        let mut bytes = if units { vec![0xff, 0xfe] } else { Vec::new() };
        bytes.extend(LOG.encode_utf16().flat_map(u16::to_le_bytes));
        let parsed = kernel_log::parse(&bytes).value;
        assert_eq!(parsed.lines.len(), kernel_log::parse(LOG.as_bytes()).value.lines.len());
    }
}

#[test]
fn a_whole_log_becomes_facts() {
    let facts = facts_of(&command("dmesg", LOG));
    assert_eq!(facts.log.read.value(), Some(&Some(0.0)));
    let ids: Vec<&str> = facts.log.events.iter().map(|event| event.signature).collect();
    for id in ["CMDLINE", "NVRM_LOAD_OK", "UVM_LOADED", "NEED_OPEN_MODULES", "HUNG_TASK"] {
        assert!(ids.contains(&id), "{id} in {ids:?}");
    }
    let frames: Vec<&str> = facts.log.frames.iter().map(|(frame, _)| frame.as_str()).collect();
    assert_eq!(
        frames,
        [
            "__schedule",
            "uvm_api_register_gpu [nvidia_uvm]",
            "uvm_ioctl_entry [nvidia_uvm]",
            "entry_SYSCALL_64_after_hwframe"
        ]
    );
    let unlisted: Vec<&str> = facts.log.unlisted.iter().map(|origin| &*origin.excerpt).collect();
    assert!(unlisted.contains(&"NVRM: some message that no table knows"), "{unlisted:?}");
    let load = facts.log.first(&["NVRM_LOAD_OK"]).unwrap();
    assert_eq!((load.get("ver"), load.origin.line), (Some("590.48.01"), 5));
    assert_eq!(load.time_s, Some(5.301));
    assert!(facts.mentions_gpu);
}

#[test]
fn messages_over_several_lines_are_one() {
    let facts = facts_of(&command("dmesg", LOG));
    let mismatch = facts.log.first(&["NVRM_API_MISMATCH_OLD"]).unwrap();
    assert_eq!(mismatch.get("client_version"), Some("570.148.08"));
    assert_eq!(mismatch.get("kernel_version"), Some("570.148.06"));
    let refused = facts.log.first(&["NEED_OPEN_MODULES"]).unwrap();
    assert_eq!(refused.device, PciAddress::parse("0000:81:00.0"));
    assert_eq!(refused.get("pci_id"), Some("10de:2bb5"));
}

#[test]
fn the_newer_wording_of_an_api_mismatch() {
    let text = "NVRM: API mismatch: the client 'nvidia-smi' (pid 4711)\n\
                NVRM: has the version 580.95.05, but this kernel module has\n\
                NVRM: the version 575.57.08.  Please make sure that this\n\
                NVRM: kernel module and all NVIDIA driver components\n\
                NVRM: have the same version.\n";
    let facts = facts_of(&command("dmesg", text));
    let mismatch = facts.log.first(&["NVRM_API_MISMATCH"]).unwrap();
    assert_eq!(mismatch.get("client_version"), Some("580.95.05"));
    assert_eq!(mismatch.get("kernel_version"), Some("575.57.08"));
    assert!(facts.log.unlisted.is_empty());
}

#[test]
fn only_a_whole_log_or_one_filtered_for_the_driver_counts_as_read() {
    let read = |partial, filter: Option<&str>| {
        let mut item = command("dmesg", XID);
        item.partial = partial;
        item.filter = filter.map(str::to_owned);
        facts_of(&item).log.read.is_seen()
    };
    assert!(read(false, None));
    assert!(read(true, Some("NVRM")));
    assert!(read(true, Some("nvidia|nvrm")));
    assert!(!read(true, Some("usb")));
    assert!(!read(true, None));
    let text = RawItem::new(ItemName::Text("report".to_owned()), XID.as_bytes());
    let facts = facts_of(&text);
    assert!(facts.log.read.is_unknown());
    assert_eq!(facts.log.xids().count(), 1);
}

#[test]
fn a_refused_log_is_refused_and_not_empty() {
    let refused = command("dmesg", "dmesg: read kernel buffer failed: Operation not permitted\n");
    assert!(matches!(facts_of(&refused).log.read, Observed::Denied(Errno::EPERM, _)));
    let state = RawState::Denied(Errno::EACCES);
    let kmsg = RawItem::with_state(ItemName::File("/dev/kmsg".to_owned()), state);
    assert!(matches!(facts_of(&kmsg).log.read, Observed::Denied(Errno::EACCES, _)));
}

#[test]
fn lines_that_say_nothing_about_a_gpu_do_not_count_as_a_mention() {
    let facts =
        facts_of(&file("/var/log/kern.log", "[ 1.0] pci 0000:00:02.0: Adding to iommu group 3\n"));
    assert_eq!(facts.log.events.len(), 1);
    assert!(!facts.mentions_gpu);
}

#[test]
fn an_endless_line_is_cut_and_a_flood_is_counted() {
    let mut line = vec![b'x'; 300_000];
    line.extend_from_slice(XID.as_bytes());
    assert!(LogScanner::new().line(&line).is_none());
    line.splice(0..0, format!("{XID} ").into_bytes());
    let found = LogScanner::new().line(&line).unwrap();
    assert!(found.text.len() <= kernel_log::LINE_LIMIT_BYTES);

    let flood = format!("{XID}\n").repeat(20_010);
    let parsed = kernel_log::parse(flood.as_bytes());
    assert_eq!(parsed.value.lines.len(), 20_000);
    assert_eq!(parsed.value.line_count, 20_010);
    assert!(parsed.complaints[0].problem.starts_with("10 more lines"));
}

#[test]
fn a_message_with_escaped_line_ends_is_read_line_by_line() {
    let lines = [
        "NVRM: The NVIDIA GPU 0000:81:00.0 (PCI ID: 10de:1b38)",
        "NVRM: installed in this system is not supported by the",
        "NVRM: NVIDIA 535.54.03 driver release.",
    ];
    for end in ["\\x0a", "#012", "\\n"] {
        let text = format!("\n[   12.5] {}\nlast\n", lines.join(end));
        let parsed = kernel_log::parse(text.as_bytes()).value;
        let texts: Vec<&str> = parsed.lines.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(texts, lines);
        assert!(parsed.lines.iter().all(|line| line.number == 2 && line.time.is_some()));
        assert_eq!(parsed.line_count, 3);
        let refusal = &parsed.lines[1].matches[0];
        assert_eq!(refusal.captures.get("version").map(String::as_str), Some("535.54.03"));
    }
}

proptest! {
    /// Reading a whole text skips from literal to literal; it must find what line by line is found.
    #[test]
    fn whole_text_and_single_lines_agree(lines in prop::collection::vec(0_usize..8, 0..200)) {
        let kinds = [
            XID,
            "",
            "audit: nothing of interest",
            " uvm_spin_loop+0x1/0x2 [nvidia_uvm]",
            "NVRM: not listed",
            "\r",
            "NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x62:0x65:1784)",
            "nvidia",
        ];
        let text: Vec<&str> = lines.iter().map(|index| kinds[*index]).collect();
        let text = text.join("\n");
        let mut scanner = LogScanner::new();
        let mut whole = Vec::new();
        scanner.text(text.as_bytes(), |line| whole.push((line.number, line.text)));
        let mut single_scanner = LogScanner::new();
        let mut single = Vec::new();
        for line in text.lines() {
            if let Some(line) = single_scanner.line(line.as_bytes()) {
                single.push((line.number, line.text));
            }
        }
        prop_assert_eq!(whole, single);
    }
}
