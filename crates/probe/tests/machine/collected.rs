//! Collecting in a process of its own, and what came of it.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use facts::Layer;
use facts::raw::{ItemName, RawItem, RawSet, RawState};
use probe::source::{HostOptions, collect_host};

/// Word with which this binary collects and prints.
pub(crate) const WORD: &str = "__collect";

/// Collects as the variable DEADLINE (seconds) says, and prints each item as a line with its name
/// and state; a probe's own lines follow it.
pub(crate) fn collect_and_print() -> ! {
    let deadline = std::env::var("DEADLINE").ok().and_then(|text| text.parse().ok());
    let deadline = Duration::from_secs_f64(deadline.unwrap_or(30.0));
    let set = collect_host(&HostOptions { deadline, ..HostOptions::default() }, &mut |_| {});
    let mut out = String::new();
    for item in set.items() {
        let state = match &item.state {
            RawState::Bytes(bytes) => format!("{} bytes", bytes.len()),
            other => format!("{other:?}"),
        };
        writeln!(out, "item {} {state}", item.name).unwrap();
        if let (ItemName::Probe { .. }, Some(text)) = (&item.name, item.text()) {
            out.push_str(&text);
        }
    }
    out.push_str("collected\n");
    // Closed standard output is one of the surroundings under test.
    let _ = std::io::Write::write_all(&mut std::io::stdout(), out.as_bytes());
    std::process::exit(0);
}

/// What a collection printed.
pub(crate) struct Collected(pub(crate) String);

impl Collected {
    /// Runs a command that collects, and checks that it came to its end.
    pub(crate) fn from(command: &mut Command) -> Collected {
        let output = command.stdin(Stdio::null()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{:?}: {errors}", output.status);
        assert!(text.ends_with("collected\n"), "{text}{errors}");
        assert!(!errors.contains("panicked"), "{errors}");
        Collected(text)
    }

    /// The lines of one run of a probe; `None` when it was not run.
    pub(crate) fn probe(&self, name: &str) -> Option<&str> {
        let (_, rest) = self.0.split_once(&format!("item probe:{name} "))?;
        Some(rest.split("\nitem ").next().unwrap_or(rest))
    }

    /// How a run of a probe ended.
    pub(crate) fn outcome(&self, name: &str) -> Option<&str> {
        let lines = self.probe(name)?;
        lines.split("\"outcome\":\"").nth(1)?.split('"').next()
    }

    /// The number after `"pid":` of the end of a run.
    pub(crate) fn pid(&self, name: &str) -> u32 {
        let end = self.probe(name).unwrap().split("\"record\":\"end\"").nth(1).unwrap();
        let digits = end.split("\"pid\":").nth(1).unwrap();
        digits.split(|ch: char| !ch.is_ascii_digit()).next().unwrap().parse().unwrap()
    }
}

/// This binary, as a command that collects.
pub(crate) fn collector() -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg(WORD);
    command
}

/// A shell script in which `$0` is the collector's binary, to be run as `"$0" __collect`.
pub(crate) fn script(text: &str) -> Command {
    let mut command = Command::new("sh");
    command.args([OsStr::new("-c"), OsStr::new(text)]).arg(std::env::current_exe().unwrap());
    command
}

/// True for root; otherwise the test says that it is skipped.
pub(crate) fn is_root() -> bool {
    let is_root = Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout == b"0\n");
    if !is_root {
        println!("skipped: needs root");
    }
    is_root
}

/// The probes that need no driver.
const CALM: [&str; 9] = [
    "passive",
    "libraries",
    "pci",
    "proc-driver",
    "process",
    "sandbox",
    "kernel-log",
    "module-files",
    "frameworks",
];

pub(crate) fn a_machine_is_collected_whole() {
    let mut told = 0;
    let set = collect_host(&HostOptions::default(), &mut |waiting| told += waiting.len());
    assert!(set.live && told > 0);
    for probe in CALM {
        let item = set.probes(probe).last().unwrap().1;
        let text = item.text().unwrap_or_default();
        assert!(text.contains("\"outcome\":\"returned\""), "{probe}: {text}");
    }
    let devices = set.files("/dev").next().and_then(RawItem::text).unwrap_or_default();
    assert!(devices.lines().any(|name| name == "null"), "{devices}");
    assert!(set.files("/proc/self/status").next().is_some_and(|item| item.bytes().is_some()));
    let own = std::process::id().to_string();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let parent = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1));
        assert_ne!(parent, Some(own.as_str()), "a child is left: {stat}");
    }
}

pub(crate) fn another_root_is_only_read() {
    let root = tempfile::tempdir().unwrap();
    let put = |path: &str, content: &str| -> std::io::Result<()> {
        let place = root.path().join(path);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::write(place, content)
    };
    put("proc/modules", "nvidia 1 0 - Live 0x0\n").unwrap();
    put("proc/driver/nvidia/version", "NVRM version: x\n").unwrap();
    put("usr/lib/os-release", "ID=elsewhere\n").unwrap();
    put("sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n").unwrap();
    put("sys/bus/pci/devices/0000:01:00.0/device", "0x2335\n").unwrap();
    put("sys/bus/pci/devices/0000:02:00.0/vendor", "0x8086\n").unwrap();
    put("sys/bus/pci/devices/0000:02:00.0/device", "0x1234\n").unwrap();
    std::fs::create_dir_all(root.path().join("etc")).unwrap();
    std::os::unix::fs::symlink("/usr/lib/os-release", root.path().join("etc/os-release")).unwrap();
    let options = HostOptions { root: Some(root.path().into()), ..HostOptions::default() };
    let set = collect_host(&options, &mut |_| {});
    let text = |path: &str| text_of(&set, path);
    assert_eq!(text("/etc/os-release").as_deref(), Some("ID=elsewhere\n"));
    assert_eq!(text("/proc/modules").as_deref(), Some("nvidia 1 0 - Live 0x0\n"));
    assert_eq!(text("/sys/bus/pci/devices/0000:01:00.0/device").as_deref(), Some("0x2335\n"));
    assert_eq!(text("/sys/bus/pci/devices/0000:02:00.0/device"), None, "not NVIDIA's");
    assert!(!set.live);
    for probe in ["cuinit", "nvml", "nodes", "module", "sandbox", "process"] {
        assert!(set.probes(probe).next().is_none(), "{probe} asks this machine, not that one");
    }
}

fn text_of(set: &RawSet, path: &str) -> Option<String> {
    set.files(path).next()?.text().map(std::borrow::Cow::into_owned)
}

pub(crate) fn layers_narrow_what_is_run() {
    let options = HostOptions { layers: vec![Layer::Library], ..HostOptions::default() };
    let set = collect_host(&options, &mut |_| {});
    assert!(set.probes("libraries").next().is_some() && set.probes("passive").next().is_some());
    for probe in ["pci", "frameworks", "nvml", "cuinit"] {
        assert!(set.probes(probe).next().is_none(), "{probe} tells nothing of libraries");
    }
}
