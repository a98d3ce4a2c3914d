//! Log lines of programs and drivers that have nothing to do with a GPU.

use std::fmt::Write as _;

const LINES: [&str; 18] = [
    "usb 1-2: new high-speed USB device number {n} using xhci_hcd",
    "usb 1-2: New USB device found, idVendor=046d, idProduct=c52b, bcdDevice=12.11",
    "EXT4-fs (sda2): mounted filesystem with ordered data mode. Quota mode: none.",
    "audit: type=1400 audit(1764491761.{n}:61): apparmor=\"ALLOWED\" operation=\"open\" profile=\"snap.node\"",
    "systemd[1]: Started Session {n} of User root.",
    "systemd-journald[412]: Received client request to flush runtime journal.",
    "eth0: renamed from veth{n}",
    "docker0: port 3(veth{n}) entered forwarding state",
    "IPv6: ADDRCONF(NETDEV_CHANGE): veth{n}: link becomes ready",
    "perf: interrupt took too long ({n} > 2500), lowering kernel.perf_event_max_sample_rate to 79750",
    "TCP: request_sock_TCP: Possible SYN flooding on port {n}. Sending cookies.",
    "CPU4: Core temperature above threshold, cpu clock throttled (total events = {n})",
    "nvme nvme0: {n}/0/0 default/read/poll queues",
    "e1000e 0000:00:1f.6 eno1: NIC Link is Up 1000 Mbps Full Duplex, Flow Control: None",
    "input: Logitech USB Receiver as /devices/pci0000:00/0000:00:14.0/usb1/1-2/input/input{n}",
    "sd 2:0:0:0: [sdb] {n} 512-byte logical blocks",
    "workqueue: blk_mq_run_work_fn hogged CPU for >10000us {n} times, consider switching to WQ_UNBOUND",
    "CIFS: VFS: \\\\nas Send error in SessSetup = -{n}",
];

/// The text with so many lines of a log before it and as many after it, each in a block of its own.
pub(crate) fn around(text: &str, count: u32) -> String {
    let fences = text.lines().filter(|line| line.trim_start().starts_with("```")).count();
    // What was never closed would take the block for its own.
    let close = if fences % 2 == 1 { "```\n" } else { "" };
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("{}\n{text}{end}{close}\n{}", block(count, 100), block(count, 90_000))
}

fn block(count: u32, from_second: u32) -> String {
    let mut out = String::from("The log of that week:\n\n```\n");
    for (number, line) in (0..count).zip(LINES.iter().cycle()) {
        let line = line.replace("{n}", &number.to_string());
        let _ =
            writeln!(out, "[{:>5}.{:06}] {line}", from_second + number / 7, number % 7 * 141_003);
    }
    out.push_str("```\n");
    out
}
