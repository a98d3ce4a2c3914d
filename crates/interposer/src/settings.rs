//! `GPUDX_INTERPOSE`, read once.

use core::ffi::c_int;
use std::sync::OnceLock;

/// Calls that one setting means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Site {
    /// The driver call of this number in this process, counted from 1.
    Step(u32),
    /// An ioctl with this request.
    Request(u32),
    /// An ioctl of the driver's type with this number.
    Escape(u32),
    /// `cuInit`.
    CuInit,
}

/// What is done in place of the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// It never returns.
    Hang,
    /// The process dies of SIGSEGV.
    Crash,
    /// It answers this: a CUresult, or an errno.
    Answer(c_int),
}

/// The settings of this process. One that cannot be read ends it: a misspelled fault must not
/// pass for a healthy machine.
pub(crate) fn settings() -> &'static [(Site, Action)] {
    static SETTINGS: OnceLock<Vec<(Site, Action)>> = OnceLock::new();
    SETTINGS.get_or_init(|| {
        let text = std::env::var("GPUDX_INTERPOSE").unwrap_or_default();
        let parts = text.split(',').filter(|part| !part.is_empty());
        parts.map(|part| setting(part).unwrap_or_else(|| complain(part))).collect()
    })
}

fn complain(part: &str) -> ! {
    let text = format!("GPUDX_INTERPOSE: cannot read setting {part:?}\n");
    // SAFETY: the buffer is valid for its length.
    unsafe { libc::write(2, text.as_ptr().cast(), text.len()) };
    std::process::abort()
}

fn setting(part: &str) -> Option<(Site, Action)> {
    let (site, action) = part.split_once('=')?;
    let site = match site.split_once(':') {
        None if site == "cuInit" => Site::CuInit,
        Some(("step", number)) => Site::Step(number.parse().ok()?),
        Some(("request", number)) => Site::Request(hexadecimal(number)?),
        Some(("escape", number)) => Site::Escape(hexadecimal(number)?),
        _ => return None,
    };
    let action = match action {
        "hang" => Action::Hang,
        "crash" => Action::Crash,
        number => Action::Answer(number.parse().ok()?),
    };
    Some((site, action))
}

fn hexadecimal(text: &str) -> Option<u32> {
    u32::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}
