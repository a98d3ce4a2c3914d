//! Libraries between the program and the driver, as texts name them, and what they print.

use super::super::Line;
use super::super::pattern::{group, matches, pattern};
use super::push;
use crate::model::Facts;
use crate::observed::clean_excerpt;
use crate::parse::maps::is_interposer;

pattern! {
    /// A shared library by its file name, with its folder if that stands before it.
    LIBRARY = r"(?P<path>(?:/[\w.\-+/]*/)?lib[\w\-+]+\.so(?:\.\d+)*)"
}
pattern! {
    /// The lines of HAMi's shim: `[HAMI-core ERROR (pid:31 thread=… libvgpu.c:836)]: …`.
    SHIM_LINE = r"\[(?:HAMI-core|4pdvGPU)\s*(?P<level>\w+)"
}
pattern! { PRELOADED = r"(?i)\b(?:preload\w*|ld\.so\.preload|LD_PRELOAD|inject\w*|interpos\w*|hook\w*)\b" }
pattern! { DENIED = r"(?i)\b(?:no|without|not|unset|nothing|isn['’]t)\b[^\n.]{0,24}\b(?:preload\w*|LD_PRELOAD|ld\.so\.preload|libvgpu|interpos\w*|inject\w*)" }

/// Enters the libraries and complaints of the line.
pub(super) fn read(line: &Line<'_>, facts: &mut Facts) {
    if let Some(level) = group(&SHIM_LINE, line.text, "level") {
        enter("libvgpu.so", line, facts);
        if level.eq_ignore_ascii_case("error") || level.eq_ignore_ascii_case("warn") {
            push(&mut facts.library.interposer_complaints, clean_excerpt(line.text), line);
        }
        return;
    }
    if matches(&DENIED, line.text) || super::super::statement::condition(line.text).is_some() {
        return;
    }
    let Some(path) = group(&LIBRARY, line.text, "path") else { return };
    // Any library is one when the line says so; a known shim is one wherever it is named.
    let said = matches(&PRELOADED, line.text);
    if is_interposer(path) || said && !line.has("LD_PRELOAD=") {
        enter(path, line, facts);
    }
}

fn enter(path: &str, line: &Line<'_>, facts: &mut Facts) {
    let file = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    let known = &mut facts.library.interposers;
    if known.len() < super::LIMIT && !known.iter().any(|(other, _)| file(other) == file(path)) {
        known.push((path.to_owned(), line.origin()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::loose::lines_of;

    #[test]
    fn every_expression_compiles() {
        assert!(
            [&LIBRARY, &SHIM_LINE, &PRELOADED, &DENIED].iter().all(|pattern| pattern.is_some())
        );
    }

    #[test]
    fn shims_by_name_and_by_word() {
        for text in [
            "libvgpu.so is injected through LD_PRELOAD",
            "7f31a000-7f31b000 r-xp 00000000 08:01 42 /usr/local/vgpu/libvgpu.so",
            "[HAMI-core Msg(31:140:libvgpu.c:836)]: Initializing.....",
            "/etc/ld.so.preload contains /opt/shim/libgpushare.so",
        ] {
            assert_eq!(lines_of(text).library.interposers.len(), 1, "{text}");
        }
        for text in ["no libvgpu.so in the maps, nothing preloaded", "libcudart.so.12 is loaded"] {
            assert!(lines_of(text).library.interposers.is_empty(), "{text}");
        }
        let error = "[HAMI-core ERROR (pid:31 thread=139 utils.c:53)]: unable to take lock";
        assert_eq!(lines_of(error).library.interposer_complaints.len(), 1);
    }
}
