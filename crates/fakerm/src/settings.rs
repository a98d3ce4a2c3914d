//! `GPUDX_FAKERM`, read once.

use std::ffi::CString;
use std::sync::OnceLock;
use std::time::Duration;

use crate::faults::{Action, Site};
use crate::machine::Chip;
use crate::uvm;

/// One fault.
pub(crate) struct Fault {
    /// Where.
    pub(crate) site: Site,
    /// What.
    pub(crate) action: Action,
}

/// How a node differs from what the driver would make.
pub(crate) enum NodeChange {
    /// It does not exist.
    Absent,
    /// It has these numbers.
    Numbers(u32, u32),
}

/// The settings.
pub(crate) struct Settings {
    /// Version of the pretended module.
    pub(crate) version: String,
    /// Number of GPUs.
    pub(crate) gpus: u32,
    /// Which chip all of them are.
    pub(crate) chip: Chip,
    /// Whether UVM says that pageable memory is usable.
    pub(crate) hmm: bool,
    /// Whether each driver call is made of the kernel too, for a tracer to see.
    pub(crate) pass: bool,
    /// Where driver calls are recorded.
    pub(crate) trace: Option<CString>,
    /// The driver call that never returns.
    pub(crate) hang_at_step: Option<u32>,
    /// Changed nodes by path.
    pub(crate) nodes: Vec<(String, NodeChange)>,
    /// Modes of nodes by path, where they are not 666.
    pub(crate) modes: Vec<(String, u32)>,
    /// Faults, in the order given.
    pub(crate) faults: Vec<Fault>,
}

/// The process's settings. A setting that cannot be read ends the process with a message: a test
/// that misspells its fault must not pass.
pub(crate) fn settings() -> &'static Settings {
    static SETTINGS: OnceLock<Settings> = OnceLock::new();
    SETTINGS.get_or_init(|| {
        let text = std::env::var("GPUDX_FAKERM").unwrap_or_default();
        let mut settings = Settings {
            version: "550.163.01".to_owned(),
            gpus: 1,
            chip: Chip::Ga100,
            hmm: true,
            pass: false,
            trace: None,
            hang_at_step: None,
            nodes: Vec::new(),
            modes: Vec::new(),
            faults: Vec::new(),
        };
        for setting in text.split(',').filter(|setting| !setting.is_empty()) {
            if settings.apply(setting).is_none() {
                complain(setting);
            }
        }
        settings
    })
}

fn complain(setting: &str) -> ! {
    crate::real::write(2, format!("GPUDX_FAKERM: cannot read setting {setting:?}\n").as_bytes());
    std::process::abort()
}

impl Settings {
    fn apply(&mut self, setting: &str) -> Option<()> {
        if let Some(step) = setting.strip_prefix("hang:step=") {
            self.hang_at_step = Some(step.parse().ok()?);
            return Some(());
        }
        let (name, value) = setting.split_once('=')?;
        match name {
            "version" => value.clone_into(&mut self.version),
            "gpus" => self.gpus = value.parse().ok().filter(|gpus| *gpus <= 8)?,
            "chip" => self.chip = Chip::named(value)?,
            "hmm" => self.hmm = value == "1",
            "pass" => self.pass = value == "1",
            "trace" => self.trace = Some(CString::new(value).ok()?),
            _ if name.starts_with("mode:") => {
                let mode = u32::from_str_radix(value, 8).ok()?;
                self.modes.push((name.trim_start_matches("mode:").to_owned(), mode));
            }
            _ => match name.strip_prefix("node:") {
                Some(path) => self.nodes.push((path.to_owned(), node_change(value)?)),
                None => self.faults.push(Fault { site: site(name)?, action: action(value)? }),
            },
        }
        Some(())
    }
}

fn node_change(value: &str) -> Option<NodeChange> {
    if value == "absent" {
        return Some(NodeChange::Absent);
    }
    let (major, minor) = value.split_once(':')?;
    Some(NodeChange::Numbers(major.parse().ok()?, minor.parse().ok()?))
}

fn site(name: &str) -> Option<Site> {
    let (kind, which) = name.split_once(':')?;
    Some(match kind {
        "open" => Site::Open(which.to_owned()),
        "uvm" => Site::Uvm(uvm::request_named(which).or_else(|| number(which))?),
        "control" => Site::Control(number(which)?),
        "alloc" => Site::Alloc(number(which)?),
        "escape" => Site::Escape(number(which)?),
        _ => return None,
    })
}

fn action(text: &str) -> Option<Action> {
    if let Some(errno) = errno_named(text) {
        return Some(Action::Errno(errno));
    }
    let (verb, rest) = text.split_once(':').unwrap_or((text, ""));
    Some(match verb {
        "hang" => Action::Hang,
        "spin" => Action::Spin,
        "crash" => Action::Crash,
        "dstate" => Action::DState(rest.to_owned()),
        "slow" => Action::Slow(Duration::from_millis(rest.parse().ok()?)),
        "value" => Action::Value(number(rest)?),
        "version" => Action::Version(rest.to_owned()),
        _ => Action::Status(number(text)?),
    })
}

/// A number in decimal or, with `0x`, in hexadecimal.
fn number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

fn errno_named(name: &str) -> Option<i32> {
    Some(match name {
        "EPERM" => libc::EPERM,
        "ENOENT" => libc::ENOENT,
        "EINTR" => libc::EINTR,
        "EIO" => libc::EIO,
        "ENXIO" => libc::ENXIO,
        "EAGAIN" => libc::EAGAIN,
        "ENOMEM" => libc::ENOMEM,
        "EACCES" => libc::EACCES,
        "EFAULT" => libc::EFAULT,
        "EBUSY" => libc::EBUSY,
        "ENODEV" => libc::ENODEV,
        "EINVAL" => libc::EINVAL,
        "EMFILE" => libc::EMFILE,
        "ENOTTY" => libc::ENOTTY,
        "ENOSYS" => libc::ENOSYS,
        _ => return None,
    })
}
