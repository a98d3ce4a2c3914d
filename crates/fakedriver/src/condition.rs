//! When an act is done: what a test's fault depends on.

use core::ffi::{CStr, c_void};

use crate::cuda;

/// One condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Condition {
    /// This variable is set to something.
    Set(String),
    /// The device of this index is visible, by CUDA_VISIBLE_DEVICES.
    Visible(u32),
    /// The effective user has this number.
    User(u32),
    /// The process is traced.
    Traced,
    /// The path of this library holds this text.
    Path(String),
    /// Something whose path holds this text is mapped into the process.
    Mapped(String),
    /// The soft limit of open files is below this.
    FewFiles(u64),
    /// The other way round.
    Not(Box<Condition>),
}

impl Condition {
    /// Reads `set:NAME`, `gpu:INDEX`, `user:UID`, `traced`, `path:TEXT`, `mapped:TEXT`,
    /// `files:N`, and any of them
    /// after `!`.
    pub(crate) fn parse(text: &str) -> Option<Condition> {
        if let Some(rest) = text.strip_prefix('!') {
            return Some(Condition::Not(Box::new(Condition::parse(rest)?)));
        }
        let (kind, value) = text.split_once(':').unwrap_or((text, ""));
        Some(match kind {
            "set" => Condition::Set(value.to_owned()),
            "gpu" => Condition::Visible(value.parse().ok()?),
            "user" => Condition::User(value.parse().ok()?),
            "traced" => Condition::Traced,
            "path" => Condition::Path(value.to_owned()),
            "mapped" => Condition::Mapped(value.to_owned()),
            "files" => Condition::FewFiles(value.parse().ok()?),
            _ => return None,
        })
    }

    /// Whether it holds in this process now.
    pub(crate) fn holds(&self) -> bool {
        match self {
            Condition::Set(name) => std::env::var_os(name).is_some_and(|value| !value.is_empty()),
            Condition::Visible(index) => is_visible(*index),
            // SAFETY: cannot fail and touches no memory.
            Condition::User(uid) => unsafe { libc::geteuid() == *uid },
            Condition::Traced => is_traced(),
            Condition::Path(text) => own_path().contains(text.as_str()),
            Condition::Mapped(text) => {
                let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
                maps.contains(text.as_str())
            }
            Condition::FewFiles(count) => open_files() < *count,
            Condition::Not(other) => !other.holds(),
        }
    }
}

/// As libcuda reads it: indices or UUIDs, and all where it is not set.
fn is_visible(index: u32) -> bool {
    let Ok(value) = std::env::var("CUDA_VISIBLE_DEVICES") else { return true };
    let mut entries = value.split(',').map(str::trim);
    entries.any(|entry| entry == index.to_string() || entry == cuda::uuid_text(index))
}

fn is_traced() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:"));
    tracer.is_some_and(|pid| pid.trim() != "0")
}

fn open_files() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is valid for the call.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    limit.rlim_cur
}

/// The path by which this copy of the library was loaded.
pub(crate) fn own_path() -> String {
    static HERE: u8 = 0;
    // SAFETY: all zeroes are a valid Dl_info; it is filled for an address in this library.
    unsafe {
        let mut info: libc::Dl_info = core::mem::zeroed();
        let here: *const c_void = core::ptr::from_ref(&HERE).cast();
        if libc::dladdr(here, &raw mut info) == 0 || info.dli_fname.is_null() {
            return String::new();
        }
        CStr::from_ptr(info.dli_fname).to_string_lossy().into_owned()
    }
}
